# The commands of a developer; `make` alone lists them.

BIN := .venv/bin
INSTALLED := .venv/installed

.DEFAULT_GOAL := help
.PHONY: help install kernels demo quick test coverage cases compat lint format docs bench bench-full recovery fuzz wheel release-check lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

install: $(INSTALLED) ## Create .venv and install requirements.lock into it (PYTHON=... sets the Python)

kernels: $(INSTALLED) ## Compile the kernels that this machine lacks, after a change of a kernel
	@$(BIN)/python -m anabranch.compiled.build

demo: $(INSTALLED) ## Simulate five scenarios, run a query of each kind, and compare the answers with the truth
	@$(BIN)/anabranch demo

quick: $(INSTALLED) ## Run the tests that need neither a JVM nor compiled kernels, in under a minute (ARGS=...)
	@sh scripts/quick $(ARGS)

test: $(INSTALLED) ## Run all tests in parallel, or some in one process (ARGS="tests/pattern -k name")
	@sh scripts/test $(ARGS)

coverage: $(INSTALLED) ## Run all tests, and report the lines and branches that none of them reaches
	@sh scripts/test --cov

cases: $(INSTALLED) ## Run every case of ../shared/cases on 1, 2 and 7 partitions (ARGS="--master ... --partitions ...")
	$(BIN)/python -m tests.conformance $(ARGS)

compat: $(INSTALLED) ## Run the cases on Spark 4.1, 4.2 and 4.3 (VERSIONS="4.1.4", JAVA="17 21", ARGS="pattern_stream")
	@VERSIONS="$(VERSIONS)" JAVA="$(JAVA)" sh scripts/compat $(ARGS)

lint: $(INSTALLED) ## Check style, formatting, types and the layers of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED) ## Format the code and apply the fixes of ruff
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(INSTALLED) ## Build the site of the documentation into build/site; it needs no network, and neither does the site
	@$(BIN)/python scripts/build_docs.py

bench: $(INSTALLED) ## Run chosen benchmarks in half an hour and write a report, or others (ARGS="pattern --quick")
ifdef ARGS
	$(BIN)/python -m benchmarks $(ARGS)
else
	$(BIN)/python -m benchmarks chosen --rounds 3 --save
	$(BIN)/python -m benchmarks.report
endif

bench-full: $(INSTALLED) ## Run all benchmarks, which takes hours, and write the report and the tables of the documentation
	$(BIN)/python -m benchmarks --save
	$(BIN)/python -m benchmarks.report
	$(BIN)/python -m benchmarks.document

recovery: $(INSTALLED) ## Kill streams 100 times while a million events arrive, and compare answers (ARGS="--kills 5 ...")
	@unset PYTHONDONTWRITEBYTECODE; export PYTHONPATH=src:.; \
	$(BIN)/python -m tests.spark_home && $(BIN)/python -m tests.recovery.long $(ARGS)

fuzz: $(INSTALLED) ## Check generated and mutated workbooks, as many as you like (ARGS="--count 1000000 --seed 7")
	@PYTHONPATH=src:. $(BIN)/python -m tests.fuzz.workbooks $(ARGS)

wheel: $(INSTALLED) ## Build a wheel with compiled kernels for this platform, into dist/
	@$(BIN)/python scripts/build_wheel.py

release-check: $(INSTALLED) ## Build the wheel, install it into a new environment, and run the demo and the examples there
	@$(BIN)/python -m tests.packaging.release_check

lock: ## Write requirements.lock after a change of pyproject.toml (UPGRADE=1 takes newer versions)
	@UPGRADE=$(UPGRADE) sh scripts/lock

clean: ## Remove caches and results, but not .venv
	rm -rf .cache build dist htmlcov src/anabranch/compiled/kernels .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf spark-warehouse metastore_db derby.log src/*.egg-info
	find src tests benchmarks reproductions -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(INSTALLED): requirements.lock pyproject.toml scripts/install
	@PYTHON="$(PYTHON)" sh scripts/install
	@touch $@
