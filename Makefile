# The everyday commands; `make` alone lists them.

BIN := .venv/bin
INSTALLED := .venv/installed

.DEFAULT_GOAL := help
.PHONY: help install demo test cases lint format bench lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

install: $(INSTALLED) ## Make .venv and install everything from requirements.lock (PYTHON=... names a Python)

demo: $(INSTALLED) ## Simulate five worlds, ask a question of each kind, and compare with the truth
	@$(BIN)/anabranch demo

test: $(INSTALLED) ## Run the tests with coverage (ARGS="tests/pattern -k name" for some of them)
	@sh scripts/test $(ARGS)

cases: $(INSTALLED) ## Run every case of ../shared/cases on 1, 2 and 7 partitions (ARGS="--master ... --partitions ...")
	$(BIN)/python -m tests.conformance $(ARGS)

lint: $(INSTALLED) ## Check style, formatting, types and the arrows between modules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED) ## Format the code and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(INSTALLED) ## Run the benchmarks (ARGS=... goes to them)
	$(BIN)/python -m benchmarks $(ARGS)

lock: ## Write requirements.lock anew after a change in pyproject.toml (UPGRADE=1 for newer versions)
	@UPGRADE=$(UPGRADE) sh scripts/lock

clean: ## Remove caches and results; .venv stays
	rm -rf build dist htmlcov .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf spark-warehouse metastore_db derby.log src/*.egg-info
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(INSTALLED): requirements.lock pyproject.toml scripts/install
	@PYTHON="$(PYTHON)" sh scripts/install
	@touch $@
