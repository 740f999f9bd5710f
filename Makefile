# Everything runs in .venv, which bootstrap.py makes from the locked requirements.
# Only python3 (3.11 or newer) and make are needed.

PYTHON ?= python3
RUN := $(PYTHON) bootstrap.py
DEV := $(PYTHON) bootstrap.py --dev
UV_COMPILE := .venv/bin/uv pip compile --quiet $(A) --universal --python-version 3.11 \
	--generate-hashes --no-annotate --no-header

# What to test, and arguments for up, demo and bench: make test T=tests/jobs, make up A=--workers=2
T ?= tests
A ?=

.DEFAULT_GOAL := help
.PHONY: help up demo test check quick fmt migrate mutants chaos bench lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: ## Run everything on this machine until Ctrl-C: servers, gateway, worker, ledger
	@$(RUN) pagetoll up $(A)

demo: ## Like up, then crawl a bundled site and show its bill (A=--once to end there)
	@$(RUN) pagetoll demo $(A)

test: ## Run the tests on throw-away servers; T=path for some of them
	@$(DEV) pytest $(T)

check: ## Lint, formatting, types, import contracts, migrations up and down, shape of the tree
	@$(DEV) ruff check .
	@$(DEV) ruff format --check .
	@$(DEV) mypy
	@$(DEV) lint-imports
	@$(DEV) pytest -q tests/migrations tests/shape

quick: ## What a commit must pass: lint, formatting, types, shape (seconds)
	@$(DEV) ruff check .
	@$(DEV) ruff format --check .
	@$(DEV) mypy
	@$(DEV) pytest -q tests/shape

fmt: ## Format the code and mend what ruff can
	@$(DEV) ruff check --fix .
	@$(DEV) ruff format .

migrate: ## Bring the database at PAGETOLL_MIGRATION_URL up to date
	@$(RUN) python -m migrations upgrade

mutants: ## Take one guard after another out of the ledger: a test must notice each (A=names)
	@$(DEV) python -m tests.mutants $(A)

chaos: ## Kill, freeze and restart everything under load, by seeded schedules (A='--seeds 50')
	@$(DEV) python -m tests.chaos $(A)

bench: ## Measure; A=... names what
	@$(DEV) python -m benchmarks $(A)

lock: ## Pin what pyproject.toml asks for, with hashes (A=--upgrade for the newest)
	@$(DEV)
	@$(UV_COMPILE) pyproject.toml -o requirements.lock
	@$(UV_COMPILE) pyproject.toml --group dev -o requirements-dev.lock

clean: ## Remove the environment and caches, never data
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
