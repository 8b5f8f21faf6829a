# Everything runs in .venv, made from constraints.txt; no target needs anything installed but Python.
PYTHON  ?= python3
WORKERS ?= 2
ARGS    ?=
LOG     ?=

# A ratchet: raise it when the figure has risen, never lower it. core/ is pure, so nothing excuses a
# branch of it that no test takes.
COVERAGE_MIN      := 85
COVERAGE_CORE_MIN := 100

BIN  := .venv/bin
CORE := streams/turnlog/core/*

# The wrapper would ask the network for a newer pyright at each run; constraints.txt decides.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help setup demo test lint format types imports deps proof soak bench build clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'Variables: PYTHON=python3.12 (for setup), ARGS="..." (for demo, bench), WORKERS=2 (for tests),'
	@echo '           LOG=kafka://localhost:9092/demo or another empty log (for demo)'

setup: .venv/.ready ## make .venv and install turnlog in it, editable, with the development tools

.venv/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo 'turnlog needs Python 3.11 or newer: make setup PYTHON=python3.12' >&2; exit 1; }
	@echo '== setup: .venv (a minute or two, once)'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup ## show the main job on sessions of its own (ARGS="--mine": on yours too)
	@$(BIN)/turnlog demo $(if $(LOG),--log '$(LOG)') $(ARGS)

test: setup lint types imports ## everything that must hold before a commit; stops at the first failure
	@echo '== tests'
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup --cov --cov-report=
	@echo '== coverage of core: $(COVERAGE_CORE_MIN) % of lines and branches'
	@$(BIN)/coverage report --include='$(CORE)' --fail-under=$(COVERAGE_CORE_MIN)
	@echo '== coverage of the rest: at least $(COVERAGE_MIN) %'
	@$(BIN)/coverage report --omit='$(CORE)' --fail-under=$(COVERAGE_MIN)

lint: setup ## ruff: rules and format
	@echo '== lint'
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo 'not formatted: make format' >&2; exit 1; }

format: setup ## let ruff format, and fix what it safely can
	@$(BIN)/ruff check --quiet --fix
	@$(BIN)/ruff format --quiet

types: setup ## mypy and pyright, both strict, over the product
	@echo '== types'
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python

imports: setup ## which package may import which
	@echo '== imports'
	@said=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$said" >&2; exit 1; }; \
	    echo "$$said" | tail -n 1

deps: setup ## dependencies that are missing, or declared for nothing
	@$(BIN)/deptry streams producers consumers

proof: setup ## all tests with full counts, and those that need long or a network
	@TURNLOG_PROOF=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup --timeout 3600

soak: setup ## simulate histories until one fails (ARGS="SEED COUNT": these)
	@$(BIN)/python -m tests.simulation.soak $(ARGS)

bench: setup ## figures, as ratios to a reference in the same run
	@$(BIN)/python -m tests.bench.run $(ARGS)

build: setup ## wheel and sdist, into dist/
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation -qq
	@ls dist/*

clean: ## remove what the targets above made
	@rm -rf .venv dist .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache \
	    .pytest_cache .ruff_cache
	@find streams producers consumers tests -type d -name __pycache__ -prune -exec rm -rf {} +
