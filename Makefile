# make demo   verify the theorem on random machines (installs only what that needs)
# make test   lint, types and the whole default test suite
PYTHON ?= python3
BIN    := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
SOURCES := pyproject.toml constraints.txt
export PIP_ROOT_USER_ACTION := ignore

.PHONY: demo test test-slow lint bench clean

demo: .venv/.base
	$(BIN)/turing-programs verify

test: lint
	$(BIN)/pytest -n 2 --dist worksteal

test-slow: .venv/.all
	$(BIN)/pytest -n 2 --dist worksteal -m slow

lint: .venv/.all
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/.all
	$(BIN)/turing-programs bench interpreters
	$(BIN)/turing-programs bench verify
	$(BIN)/turing-programs bench compile

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv .venv

.venv/.base: .venv/bin/python $(SOURCES)
	@echo "Installing (once) ..."
	$(INSTALL) --editable .
	@touch $@

.venv/.all: .venv/bin/python $(SOURCES)
	@echo "Installing everything (once, a few minutes) ..."
	$(INSTALL) --editable '.[all,dev]'
	@touch $@ .venv/.base

clean:
	rm -rf .venv build *.egg-info
