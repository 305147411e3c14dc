# Targets: setup demo test lint bench docs clean. Each says what it does; none needs a network once .venv stands.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp-run
DEV_STAMP := $(VENV)/.stamp-dev
# The stamp holds what the environment was made from; another pyproject or constraints file makes it anew.
WANTED := $(shell cat pyproject.toml constraints.txt | sha256sum | cut -c1-16)

.PHONY: setup setup-dev demo test lint bench docs clean

setup:
	@$(PYTHON) tools/setup_environment.py run $(WANTED)

setup-dev:
	@$(PYTHON) tools/setup_environment.py dev $(WANTED)

demo: setup
	@$(BIN)/kubedra demo

test: setup-dev
	@$(BIN)/python tools/run_tests.py

lint: setup-dev
	@$(BIN)/python tools/run_tests.py --lint-only

bench: setup-dev
	@echo "== benchmarks: JSON lines, each beside the figure recorded before"
	@for b in $$(grep -l __main__ benchmarks/*.py); do echo "-- $$b"; PYTHONPATH=. $(BIN)/python $$b || exit 1; done

docs: setup-dev
	@echo "== writing the reference pages from the code"
	@for g in tools/generate_*_reference.py; do PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python $$g || exit 1; done

clean:
	@echo "== removing $(VENV) and caches"
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
