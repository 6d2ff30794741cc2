# make demo   verify the theorem on random machines (installs only what that needs)
# make proof  the theorem in Coq and the lemmas with z3 (installs coq where it can)
# make test   lint, types and the whole default test suite
# make docs   pages, notebooks, demos and reference as a site in build/site
# make coverage  lines of rasp, proofs_check and compile that the default tests run (long)
# make packaging  wheel and sdist, each extra alone in an environment of its own (long)
# make fuzz   random programs, long texts, models and files in every way there is, for SECONDS from SEED on
PYTHON ?= python3
BIN    := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
SOURCES := pyproject.toml constraints.txt
export PIP_ROOT_USER_ACTION := ignore

.PHONY: demo proof test test-slow fuzz coverage packaging lint browser coq bench docs clean

demo: .venv/.base
	$(BIN)/turing-programs verify

proof: .venv/.all coq
	$(BIN)/turing-programs prove --formal

test: lint browser coq
	$(BIN)/pytest -n 2 --dist worksteal

test-slow: .venv/.all
	$(BIN)/pytest -n 2 --dist worksteal -m slow

SECONDS := 600
SEED := 0
fuzz: .venv/.all
	PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED)

# Functions that are machine code otherwise are run as Python by tests/test_as_python.py, and counted there.
coverage: .venv/.all
	$(BIN)/pytest -n 2 --dist worksteal --cov --cov-report=
	$(BIN)/coverage report --skip-covered --sort=cover --fail-under=95

packaging: .venv/.all
	PYTHONPATH=tests $(BIN)/python -m installed $(if $(EXTRAS),--extras $(EXTRAS)) $(if $(WITH),--python $(WITH)) $(if $(LOWEST),--lowest)

lint: .venv/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The inspector's tests need a browser. Best effort: without one they are skipped, and say so.
browser:
	@command -v chromium > /dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null || { \
	  echo "Installing chromium for the inspector's tests ..."; export DEBIAN_FRONTEND=noninteractive; \
	  { timeout 300 apt-get -qq update && timeout 600 apt-get -qq install --yes --no-install-recommends \
	    chromium fonts-dejavu-core; } > /dev/null 2>&1; } || true

# The formal proof needs Coq. Best effort: without it `make proof` names the package, and its tests are skipped and say so.
coq:
	@command -v coqc > /dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null || { \
	  echo "Installing coq for the formal proof ..."; export DEBIAN_FRONTEND=noninteractive; \
	  { timeout 300 apt-get -qq update && timeout 900 apt-get -qq install --yes --no-install-recommends coq; } \
	    > /dev/null 2>&1; } || true

docs: .venv/.all
	$(BIN)/python docs/build_site.py build/site

bench: .venv/.all
	$(BIN)/turing-programs bench interpreters
	$(BIN)/turing-programs bench verify
	$(BIN)/turing-programs bench compile
	$(BIN)/turing-programs bench decode
	$(BIN)/turing-programs bench train

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
