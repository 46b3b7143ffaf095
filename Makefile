# All that a newcomer needs: `make demo`, `make test`. CI runs .ci/run: check, docs, test and test-integration.
VENV    ?= .venv
PYTHON  ?= python3
# A pip index to take torch from. The README says how to get a build without CUDA.
TORCH_INDEX ?=
# LOCKED=1 installs what requirements.lock names, each file checked by its SHA-256.
LOCKED  ?=
BIN     := $(VENV)/bin
# Apart from the package: what these tools need is no matter of its versions.
TOOLS   := $(VENV)/tools
# Of the slow tests, a third: 0, 1 or 2.
THIRD   ?=
# Processes that share the tests.
JOBS    ?= 2

# Pages with figures, and what writes them.
SHOWN   := README.md docs/index.md docs/use.md
COG     := PYTHONPATH=tools $(BIN)/python -m cogapp --verbosity 1 -P -p 'from figures import *'

.DEFAULT_GOAL := help
.PHONY: help install demo models test test-slow test-integration quick figures check check-kernels audit lock sbom docs format clean

help:
	@echo 'make demo [DATA=dump]   install into $(VENV), then extract, train, evaluate and encode'
	@echo 'make models DATA=data PACKAGES=npm  train and export all models that ship, in build/models'
	@echo 'make test               install, then run the tests'
	@echo 'make test-slow          kill commands, take their disk away, try rare variants'
	@echo 'make test-integration   test the wheel and frameworks, each in a fresh virtual environment'
	@echo 'make quick              English, format and lint, in seconds: before each commit'
	@echo 'make figures            write the figures of tools/figures.py into the pages'
	@echo 'make check              the same, types, import contracts, known vulnerabilities'
	@echo 'make check-kernels      test the kernels in C under the sanitizers of GCC'
	@echo 'make lock               write requirements.lock: constraints.txt with hashes'
	@echo 'make sbom               write build/sbom.json, the bill of materials (CycloneDX)'
	@echo 'make docs               build the documentation site into site/'
	@echo 'make format             rewrite the code in the house format'
	@echo 'make clean              remove $(VENV), demo/ and site/'

$(VENV)/.installed: pyproject.toml constraints.txt requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --index-url $(TORCH_INDEX) torch)
	$(if $(LOCKED),$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[extract,filter,train,eval,data,index,explore,mcp,parquet,postgresql,report,serve,spark,ray,docs,dev]'
	@touch $@

install: $(VENV)/.installed

demo: install
	$(BIN)/python examples/demo.py $(if $(DATA),--data $(DATA))

models: install
	PATH="$(abspath $(BIN)):$$PATH" tools/models.sh $(DATA) $(PACKAGES) build/models

# pytest keeps the tests as it compiles them, which takes 5 s in each process
test: export PYTHONDONTWRITEBYTECODE =
test: install
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder

test-slow: install
	$(BIN)/python -m pytest -m slow -n $(JOBS) $(if $(THIRD),--third $(THIRD))

test-integration: install
	$(BIN)/python tests/integration/run.py

quick: install
	$(PYTHON) .ci/english.py
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(COG) --check $(SHOWN)

# writes the figures of tools/figures.py into the pages that show them
figures: install
	$(COG) -r $(SHOWN)

check: quick
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(MAKE) --no-print-directory audit

check-kernels: install
	$(BIN)/python tools/check_kernels.py

$(TOOLS)/.installed:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0 pip-audit==2.10.1 uv==0.13.9 'moto[s3]==5.2.5' flask==3.1.3 flask-cors==6.0.5
	@touch $@

# without the tools, or without a registry, one line says so
audit:
	@$(MAKE) --silent $(TOOLS)/.installed >/dev/null 2>&1 || true
	@$(PYTHON) .ci/audit.py $(TOOLS)/bin/python

lock: $(TOOLS)/.installed
	UV=$(TOOLS)/bin/uv .ci/lock.sh

sbom: install $(TOOLS)/.installed
	@mkdir -p build
	$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --of JSON -o build/sbom.json $(BIN)/python
	@echo build/sbom.json

docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html; to search in it: $(BIN)/python -m http.server -d site"

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) demo site
