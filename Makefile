# Two commands do everything: `make up` starts Recollect, `make test` proves that it works.
# Each makes its own .venv and installs what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ./recollect-data

.PHONY: help install develop up test lint faults soak bench docs clean

help:
	@echo "make up       start Recollect on this machine (data in $(DATA))"
	@echo "make test     run the whole test suite"
	@echo "make lint     check style and types"
	@echo "make faults   try every promise by force, write docs/promises.md (FULL=1: the full counts)"
	@echo "make soak     watch for growth under load, for SOAK_S seconds (300)"
	@echo "make bench    measure against the raw limits of this machine"
	@echo "make docs     write the generated references anew"
	@echo "make install  only make the .venv; make develop: with what tests and checks need"

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Recollect needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all]'
	@# Without a source for it Recollect starts as well, on its light embedder.
	-$(BIN)/recollect models install
	@touch $@

# What only working on Recollect needs is several times as much, and is left out of `make up`.
$(VENV)/.developing: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

develop: $(VENV)/.developing

install: $(VENV)/.installed

up: install
	$(BIN)/recollect up --data $(DATA)

# Three processes, each with its own files: most tests wait for something most of the time.
test: develop
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

lint: develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

faults: develop
	FULL=$(FULL) FAULTS_REPORT=docs/promises.md $(BIN)/python -m pytest tests/faults

soak: develop
	SOAK_S=$(or $(SOAK_S),300) $(BIN)/python -m pytest -s tests/system/whole/test_long_run.py

bench: develop
	$(BIN)/python -m benchmarks

docs: develop
	$(BIN)/python -m recollect.config.reference
	$(BIN)/python -m recollect.protocol.reference
	$(BIN)/python -m recollect.gateway.grpc.generate

clean:
	rm -rf $(VENV) build dist *.egg-info
