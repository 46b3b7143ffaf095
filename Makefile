# All that a newcomer needs: `make demo`, `make test`. CI runs .ci/run: check, docs, test and test-integration.
VENV    ?= .venv
PYTHON  ?= python3
# A pip index to take torch from. The README says how to get a build without CUDA.
TORCH_INDEX ?=
BIN     := $(VENV)/bin
# Processes that share the tests.
JOBS    ?= 2

.DEFAULT_GOAL := help
.PHONY: help install demo test test-integration check docs format clean

help:
	@echo 'make demo [DATA=dump]   install into $(VENV), then extract, train, evaluate and encode'
	@echo 'make test               install, then run the tests'
	@echo 'make test-integration   test the wheel and frameworks, each in a fresh virtual environment'
	@echo 'make check              lint, types, import contracts, docstrings'
	@echo 'make docs               build the documentation site into site/'
	@echo 'make format             rewrite the code in the house format'
	@echo 'make clean              remove $(VENV), demo/ and site/'

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --index-url $(TORCH_INDEX) torch)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[extract,train,eval,data,parquet,report,serve,spark,docs,dev]'
	@touch $@

install: $(VENV)/.installed

demo: install
	$(BIN)/python examples/demo.py $(if $(DATA),--data $(DATA))

test: install
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

test-integration: install
	$(BIN)/python tests/integration/run.py

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html; to search in it: $(BIN)/python -m http.server -d site"

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) demo site
