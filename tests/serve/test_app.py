"""The key, hosts, CORS, limits of bodies, and the page."""

import re
import socket
import threading

import httpx
import pytest

from rejoinder.serve.server import ServerSettings
from serving import running

KEY = "a-key-that-nobody-guesses"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def strict(model):
    """A server with a key, small limits and an origin."""
    given = ServerSettings(
        api_key=KEY,
        max_texts=4,
        max_queue=8,
        max_body_bytes=1_000,
        cors_origins=("https://example.org",),
    )
    with running(model, given) as started:
        started.client.headers["Authorization"] = f"Bearer {KEY}"
        yield started


def test_a_body_that_is_too_long_is_413(strict):
    inside = b'{"inputs": "%s"}' % (b"a" * 900)
    assert strict.client.post("/embed", content=inside, headers=JSON).status_code == 200
    for length in (1_001, 3_000, 100_000):
        answer = strict.client.post("/embed", content=b"a" * length, headers=JSON)
        assert answer.status_code == 413
        assert "1,000 bytes" in answer.json()["error"]
    chunked = strict.client.post("/v1/embeddings", content=iter([b"a" * 400] * 4), headers=JSON)
    assert chunked.status_code == 413
    assert "1,000 bytes" in chunked.json()["error"]["message"]


@pytest.mark.parametrize("length", [b"-1", b"abc", b"+5", b"\xb2", b"", b"9" * 30, b"9" * 5_000])
def test_a_malformed_length_is_refused(strict, length):
    head = b"POST /embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {KEY}\r\n".encode()
    with socket.create_connection(("127.0.0.1", strict.port), timeout=120) as connection:
        connection.sendall(head + b"Content-Length: " + length + b"\r\n\r\n{}")
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65_536)
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413", b"HTTP/1.1 422")), answer


def test_too_many_texts_are_422_and_name_the_field(strict):
    answer = strict.client.post("/embed", json={"inputs": ["a"] * 5})
    assert answer.status_code == 422
    assert answer.json()["error_type"] == "Validation"
    assert re.match(r"inputs: .*\b5\b.*\b4\b", answer.json()["error"])


def test_a_full_queue_is_429_with_the_seconds_to_wait(strict):
    answers = []

    def ask():
        answers.append(strict.client.post("/embed", json={"inputs": ["a"] * 4}))

    waiting = [threading.Thread(target=ask) for _ in range(2)]
    with strict.held():
        for thread in waiting:
            thread.start()
        while strict.service.batcher.waiting < 8:
            threading.Event().wait(0.01)
        refused = strict.client.post("/embed", json={"inputs": "a"})
        openai = strict.client.post("/v1/embeddings", json={"input": "a"})
    for thread in waiting:
        thread.join(120)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["error_type"] == "Overloaded"
    assert openai.json()["error"]["type"] == "rate_limit_error"
    assert [answer.status_code for answer in answers] == [200, 200]
    assert strict.client.post("/embed", json={"inputs": "a"}).status_code == 200


@pytest.mark.parametrize(
    "header", [None, "", KEY, "Bearer", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", b"\xff"]
)
def test_without_the_key_it_is_401(strict, header):
    headers = {} if header is None else {"Authorization": header}
    with httpx.Client(base_url=strict.address, headers=headers) as client:
        assert client.post("/", json={"inputs": "a"}).status_code == 401
        answer = client.post("/embed", json={"inputs": "a"})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error_type"] == "Unauthorized"
        assert KEY not in answer.text
        openai = client.get("/v1/models")
        assert openai.status_code == 401
        assert openai.json()["error"]["code"] == "invalid_api_key"
        assert client.get("/metrics").status_code == 401
        assert client.get("/health").status_code == 200
        assert client.get("/").status_code == 200


def test_every_route_but_health_and_the_page_needs_the_key(strict):
    with httpx.Client(base_url=strict.address) as client:
        paths = strict.client.get("/openapi.json").json()["paths"]
        asked = {(method, path) for path, item in paths.items() for method in item}
        asked |= {("get", "/openapi.json"), ("post", "/health"), ("post", "/"), ("put", "/")}
        for method, path in asked - {("get", "/health")}:
            assert client.request(method, path).status_code == 401, (method, path)


def test_the_address_with_the_key_sets_a_cookie_that_opens_all_routes(strict):
    with httpx.Client(base_url=strict.address) as client:
        for wrong in ("/?key=", f"/?key={KEY}x", "/?key=%00%ff"):
            answer = client.get(wrong)
            assert (answer.status_code, answer.cookies) == (401, {}), wrong
        assert client.get(f"/metrics?key={KEY}").status_code == 401
        answer = client.get(f"/?key={KEY}#asked")
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        [cookie] = answer.headers.get_list("set-cookie")
        assert {"HttpOnly", "SameSite=strict"} <= {*cookie.split("; ")}
        assert KEY not in cookie
        assert client.get("/metrics").status_code == 200
        assert client.get("/info").json()["rejoinder"]["needs_key"]
        assert client.post("/embed", json={"inputs": "a"}).status_code == 200
        name, value = next(iter(client.cookies.items()))
    for other in (f"{name}=", f"{name}={value}0", f"{name}={KEY}", f"{name}1={value}"):
        assert httpx.get(f"{strict.address}/info", headers={"Cookie": other}).status_code == 401


def test_cors_is_off_unless_asked_for(server, strict):
    asked = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    name = "access-control-allow-origin"
    assert name not in server.client.options("/embed", headers=asked).headers
    assert name not in server.client.get("/health", headers=asked).headers
    answer = strict.client.options("/embed", headers=asked)
    assert answer.headers[name] == "https://example.org"
    other = strict.client.get("/health", headers={"Origin": "https://example.com"})
    assert name not in other.headers


def test_the_page_and_its_files_are_served_with_a_strict_policy(server):
    page = server.client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert server.client.head("/").status_code == 200


@pytest.mark.parametrize("path", ["/page/../index.html", "/page/%2e%2e/paper.toml", "/page/x.js"])
def test_no_path_reaches_the_file_system(server, path):
    assert server.client.get(path).status_code == 404


LOOPBACK = ["localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.0.0.1.:80",
            "127.8.9.10:8080", "[::1]", "[::1]:8080"]  # fmt: skip
STRANGE = ["evil.example", "127.0.0.1.evil.example", "128.0.0.1", "localhost.evil.example", "[::2]",
           "", "127.0.0.1@evil.example"]  # fmt: skip


def test_only_names_of_this_machine_are_served_on_the_loopback(model):
    with running(model, ServerSettings(allowed_hosts=("Search.example.org",))) as server:

        def status(host):
            return server.client.get("/health", headers={"Host": host}).status_code

        for host in (*LOOPBACK, "search.EXAMPLE.org.", "search.example.org:8080"):
            assert status(host) == 200, host
        for host in STRANGE:
            assert status(host) == 421, host


def test_a_trailing_slash_is_not_redirected(server):
    answer = server.client.post("/embed/", json={"inputs": "a"}, headers={"Host": "localhost"})
    assert (answer.status_code, answer.headers.get("location")) == (404, None)
