# The server in a container: docker compose up, or docker build -t rejoinder . (docs/serving.md)
# the slim image has no compiler, and without one encoding is slower
FROM python:3.12 AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
# without pip, which the server does not need
RUN python -m venv --without-pip /opt/rejoinder
RUN python -m pip --python /opt/rejoinder install --no-cache-dir -c constraints.txt '.[serve]'

FROM python:3.12-slim
COPY --from=build /opt/rejoinder /opt/rejoinder
ENV PATH=/opt/rejoinder/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# any id that is not root's; nothing is written, so the root file system may be read-only
USER 10001:10001
EXPOSE 8080
# asks the port that the server was started with
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import re; from urllib.request import urlopen; given = re.findall('--port.([0-9]+)', open('/proc/1/cmdline').read()); urlopen(f'http://127.0.0.1:{[8080, *given][-1]}/health')"]
ENTRYPOINT ["rejoinder", "serve", "--host", "0.0.0.0"]
