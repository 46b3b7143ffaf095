# Everything a stranger needs: `make demo`, `make test`. CI runs .ci/run, which is `make check` and `make test`.
VENV    ?= .venv
PYTHON  ?= python3
# A pip index to take torch from; the README says how to get a build without CUDA.
TORCH_INDEX ?=
BIN     := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help install demo test check format clean

help:
	@echo 'make demo [DATA=dump]   install into $(VENV), then extract, train, evaluate and encode'
	@echo 'make test               install, then run the tests'
	@echo 'make check              lint, types, import contracts, docstrings'
	@echo 'make format             rewrite the code in the house format'
	@echo 'make clean              remove $(VENV) and demo/'

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --index-url $(TORCH_INDEX) torch)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[extract,train,eval,data,report,docs,dev]'
	@touch $@

install: $(VENV)/.installed

demo: install
	$(BIN)/python examples/demo.py $(if $(DATA),--data $(DATA))

test: install
	$(BIN)/python -m pytest

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) demo
