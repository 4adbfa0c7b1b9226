# Two commands do everything: `make up` starts Recollect, `make test` proves that it works.
# Each makes its own .venv and installs what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ./recollect-data

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help install develop up test lint faults soak bench docs site lock audit clean

help:
	@echo "make up       start Recollect on this machine (data in $(DATA))"
	@echo "make test     run the whole test suite"
	@echo "make lint     check style and types"
	@echo "make faults   try every promise by force, write docs/promises.md (FULL=1: the full counts)"
	@echo "make soak     watch for growth under load, for SOAK_S seconds (300), then with kills"
	@echo "make bench    measure beside the raw limits and other stores, and write docs/benchmarks.md"
	@echo "              (QUICK=1: does it run; FULL=1: a million memories and the soak as well)"
	@echo "make docs     write the generated references anew"
	@echo "make site     build the documentation site into build/site"
	@echo "make lock     lock what pyproject.toml asks for; make audit: is any of it vulnerable?"
	@echo "make install  only make the .venv; make develop: with what tests and checks need"

# What is installed is what was locked, file by file. Where the lock does not fit, be it that
# pyproject.toml was changed since or that a package has no such file for this platform, what
# pyproject.toml asks for is installed instead.
define install
	$(BIN)/python .ci/lock.py $(1) $(2) && $(PIP) --require-hashes -r $(1) || { \
	    echo "*** $(1) does not fit here: installing what pyproject.toml asks for, unlocked. ***"; \
	    $(PIP) -e '.[$(2)]'; }
	$(PIP) --no-deps -e .
endef

$(VENV)/.installed: pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Recollect needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(call install,requirements.lock,all)
	@# Without a source for it Recollect starts as well, on its light embedder.
	-$(BIN)/recollect models install
	@touch $@

# What only working on Recollect needs is several times as much, and is left out of `make up`.
$(VENV)/.developing: $(VENV)/.installed requirements-dev.lock
	$(call install,requirements-dev.lock,dev)
	@touch $@

develop: $(VENV)/.developing

$(VENV)/.measuring: $(VENV)/.developing
	$(PIP) -e '.[bench]'
	@touch $@

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
	$(BIN)/python -m benchmarks.soak --minutes $(or $(SOAK_MINUTES),20)

# The other stores are installed into environments of their own, kept in the user's cache.
bench: $(VENV)/.measuring
	$(BIN)/python -m benchmarks.peers --install
	$(BIN)/python -m benchmarks $(if $(QUICK),--quick) $(if $(FULL),--full)

docs: develop
	$(BIN)/python -m recollect.config.reference
	$(BIN)/python -m recollect.protocol.reference
	$(BIN)/python -m recollect.protocol.errors_page
	$(BIN)/python -m recollect.gateway.grpc.generate

site: develop
	$(BIN)/python -m website

# Programs that stand beside Recollect and share nothing with it.
$(VENV)/tools/.installed: $(VENV)/.installed
	$(PYTHON) -m venv $(VENV)/tools
	$(VENV)/tools/bin/python -m pip install --quiet --disable-pip-version-check uv pip-audit
	@touch $@

LOCKING := $(VENV)/tools/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-annotate --no-header --no-emit-index-url

# For every platform and every Python from 3.11 on. Both locks hold the same versions.
lock: $(VENV)/tools/.installed
	$(LOCKING) --extra dev -o requirements-dev.lock
	$(LOCKING) --extra all -c requirements-dev.lock -o requirements.lock

audit: $(VENV)/tools/.installed
	$(VENV)/tools/bin/python .ci/audit.py requirements.lock requirements-dev.lock

clean:
	rm -rf $(VENV) build dist *.egg-info
