# Every target sets up what it needs: a fresh machine wants Python 3.11+, pip and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := build/peers
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# For what is installed, and for what pip builds in environments of its own.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt

.PHONY: help test lint typecheck check bench clean
help:
	@echo "make test    set up, lint, type-check, run all tests"
	@echo "make bench   set up, measure speed and memory against the dense formulation and other packages"
	@echo "make clean   remove everything that the other targets made"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "eulerscan needs Python 3.11 or newer; name one: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) pip
	$(PIP) --editable ".[all]" --group dev
	@touch $@

$(VENV)/bench: $(VENV)/dev
	$(PIP) --group bench
	@touch $@

# Without its dependencies: one of them, torchvision, brings a CUDA build of torch along.
$(PEERS)/pyect: | $(VENV)/dev
	$(PIP) --no-deps --target $(PEERS) pyect

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(VENV)/dev
	$(BIN)/mypy

check: $(VENV)/dev
	$(BIN)/python -m pytest --numprocesses 2

test: lint typecheck check

bench: $(VENV)/bench $(PEERS)/pyect
	$(BIN)/python benchmarks/transform.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
