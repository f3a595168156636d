# Every target sets up what it needs: a fresh machine wants Python 3.11+, pip and make, nothing else.
PYTHON ?= python3
VENV := .venv
# On Windows, from a shell such as Git Bash: make PYTHON=python test
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
EXE := $(if $(filter Windows_NT,$(OS)),.exe)
PEERS := build/peers
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# For what is installed, and for what pip builds in environments of its own.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt
# Text files are UTF-8, on every system.
export PYTHONUTF8 := 1

.PHONY: help demo test lint typecheck check docs release bench fits gpu clean
help:
	@echo "make demo    set up, train a classifier of handwritten digits, write runs/demo/"
	@echo "make test    set up, lint, type-check, run the tests (make docs and make release have some of their own)"
	@echo "make docs    set up, build the documentation: build/docs/index.html"
	@echo "make release set up, build wheel and sdist in dist/, try them in an empty environment"
	@echo "make bench   set up, measure speed and memory against the dense formulation and other packages"
	@echo "make fits    set up, measure what fitting reaches, and how fast"
	@echo "make gpu     set up, compile the GPU kernels for five targets (Linux, no GPU needed), compare their registers with the table"
	@echo "make clean   remove everything that the other targets made"

$(BIN)/python$(EXE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "eulerscan needs Python 3.11 or newer; name one: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/all: pyproject.toml constraints.txt | $(BIN)/python$(EXE)
	$(PIP) pip
	$(PIP) --editable ".[all]"
	@touch $@

$(VENV)/dev: $(VENV)/all
	$(PIP) --group dev
	@touch $@

$(VENV)/bench: $(VENV)/dev
	$(PIP) --group bench
	@touch $@

# Without its dependencies: one of them, torchvision, brings a CUDA build of torch along.
$(PEERS)/pyect: | $(VENV)/dev
	$(PIP) --no-deps --target $(PEERS) pyect

# The tests of the package ect, which its wheel leaves out; the package itself is in the group test.
$(PEERS)/ect: | $(VENV)/dev
	mkdir -p $(PEERS)/download
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary ect --dest $(PEERS)/download ect
	mkdir -p $@ && tar --extract --gzip --file $(PEERS)/download/ect-*.tar.gz --directory $@ --strip-components 1

# For the meshes among its examples: nothing of it is imported. Without them the benchmark says so and goes on.
$(PEERS)/pyvista: | $(VENV)/dev
	-$(PIP) --no-deps --target $(PEERS) pyvista

# The grid of pixels, triangulated and weighted by intensity. Ten seconds leave time for SVMs only, which are best on validation
# shapes here; without a budget networks are tried too.
demo: $(VENV)/all
	$(BIN)/eulerscan train digits --data form=pixels --budget 10s --output runs/demo --overwrite --plots
	$(BIN)/eulerscan evaluate runs/demo/seed-0

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(VENV)/dev
	$(BIN)/mypy

# Each process of the tests would compile them for itself, at the same time.
$(VENV)/kernels: $(wildcard src/eulerscan/kernels/cpu/*.py) tests/compiling.py | $(VENV)/dev
	OMP_NUM_THREADS=1 $(BIN)/python tests/compiling.py
	@touch $@

# One thread for each of the two processes: more would wait for each other. Tests of threads ask for theirs.
check: $(VENV)/dev $(VENV)/kernels
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# Kernels are compiled while the code is checked. `make docs` and `make release` try what takes longer: .ci/run does all three.
test: $(VENV)/dev
	$(MAKE) -j 2 $(VENV)/kernels lint typecheck
	$(MAKE) check

docs: $(VENV)/dev
	$(BIN)/python -m sphinx -W -n -b html docs build/docs
	SITE=build/docs $(BIN)/python -m pytest tests/test_site.py

release: $(VENV)/dev
	rm -rf dist
	$(BIN)/python -m build
	RELEASE=dist OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/test_release.py

bench: $(VENV)/bench $(PEERS)/pyect
	$(BIN)/python benchmarks/transform.py

fits: $(VENV)/bench $(PEERS)/pyvista
	$(BIN)/python benchmarks/fitting.py

# Nothing is run on a GPU.
gpu: $(VENV)/dev
	$(BIN)/python benchmarks/gpu_kernels.py

clean:
	rm -rf $(VENV) build dist docs/_made runs/demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks docs examples -name __pycache__ -type d -prune -exec rm -rf {} +
