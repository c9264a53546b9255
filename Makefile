# Everything a developer or CI runs. Each target prepares what it needs; `make help` lists them.
PYTHON ?= python3
VENV := .venv
VENV_OLDEST := .venv-4.2
VENVS_OLD := .venv-4.1 .venv-4.0 .venv-3.5
VENV_BARE := .venv-bare
BIN := $(VENV)/bin
# Modules are compiled when they are first imported: most of those installed never are. They must be kept then, or each
# of Spark's workers would compile them again.
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
unexport PYTHONDONTWRITEBYTECODE

# What two of the virtual environments hold on top of the package and its extras. The third has no PySpark.
NEWEST_PYSPARK := pyspark[connect]==4.3.0
OLDEST_PYSPARK := pyspark[connect]==4.2.0
# Older releases, with fewer tests. PySpark 3.5 takes numpy 1, which pyarrow takes up to 21.
.venv-4.1/.tests: OLD_PYSPARK := "pyspark[connect]==4.1.4"
.venv-4.0/.tests: OLD_PYSPARK := "pyspark[connect]==4.0.5"
.venv-3.5/.tests: OLD_PYSPARK := "pyspark==3.5.9" "numpy<2" "pyarrow<22"

.DEFAULT_GOAL := help
.PHONY: help setup prepare demo test test-fast test-long nightly test-pythons lint format types conformance findings \
	interoperability versions-page references site package package-check lowest licences release release-check peer-tables bench clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

setup: $(VENV)/.tests  ## make the virtual environment .venv with everything for development

prepare: $(VENV)/.tests $(VENV_OLDEST)/.tests $(VENVS_OLD:=/.tests) $(VENV_BARE)/.tests .cache/.peers  ## make all that `make test` needs; -j 2 does it at once

demo: $(VENV)/.demo  ## write and read a first table with Spark, step by step
	$(BIN)/python examples/flights.py

test: prepare  ## run the whole test suite
	$(BIN)/python scripts/run_tests.py

test-fast: $(VENV)/.tests  ## run the tests that need no Spark
	$(BIN)/python scripts/run_tests.py core $(if $(wildcard $(VENV_BARE)),bare)

test-long: prepare  ## run the whole test suite at full length, for hours
	PYSPARK_DELTA_TEST_FULL=1 \
	PYSPARK_DELTA_TEST_COMMITS=50 PYSPARK_DELTA_TEST_STATEMENTS=30 PYSPARK_DELTA_TEST_MODEL_RUNS=40 \
	$(BIN)/python scripts/run_tests.py

nightly: test-long test-pythons lowest package  ## run every check, for hours

test-pythons:  ## test on other releases of Python: those on the PATH, or PYTHONS="python3.13 ..."
	$(PYTHON) scripts/test_pythons.py --pyspark "$(NEWEST_PYSPARK)" $(PYTHONS)

lint: $(VENV)/.tests  ## check style, formatting and the layers of the package
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

format: $(VENV)/.tests  ## mend style and formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.tests  ## check the type annotations
	$(BIN)/mypy

conformance: $(VENV)/.tests  ## write docs/conformance.md
	$(BIN)/python scripts/conformance.py

findings: $(VENV)/.tests  ## write docs/findings.md
	$(BIN)/python scripts/findings.py

interoperability: $(VENV)/.tests  ## write docs/interoperability.md
	$(BIN)/python scripts/interoperability.py

versions-page: $(VENV)/.tests  ## write docs/spark-versions.md
	$(BIN)/python scripts/spark_versions.py

references: $(VENV)/.tests  ## write the pages of error classes and table properties
	$(BIN)/python scripts/references.py

site: $(VENV)/.site-tools  ## build the documentation site into build/site
	$(BIN)/python scripts/site.py

package: $(VENV)/.package-tools  ## build the wheel and use it in a clean environment for each extra; minutes
	$(BIN)/python scripts/package.py --every --record

package-check: $(VENV)/.package-tools  ## build the wheel, check it, and use it without Spark; under a minute
	$(BIN)/python scripts/package.py
	$(BIN)/python scripts/licences.py --sbom dist/sbom.cdx.json

lowest: $(VENV)/.package-tools  ## test with the lowest versions that pyproject.toml allows; minutes
	$(BIN)/python scripts/lowest_versions.py

licences: $(VENV)/.tests  ## write docs/developers/licences.md
	$(BIN)/python scripts/licences.py --page

release-check: $(VENV)/.package-tools lowest  ## check that everything is ready for a release
	$(BIN)/python scripts/release.py --check

release: release-check  ## build, try and tag a release; uploads nothing
	$(BIN)/python scripts/release.py

peer-tables: prepare  ## let delta-spark write the tables of the repository again
	$(BIN)/python scripts/keep_delta_spark_tables.py

bench: $(VENV)/.bench $(VENV_OLDEST)/.tests .cache/.peers  ## run the benchmarks beside their peers
	$(BIN)/python -m benchmarks $(BENCH)

clean:  ## remove virtual environments, caches and generated files
	rm -rf $(VENV) $(VENV_OLDEST) $(VENVS_OLD) $(VENV_BARE) .cache build dist demo-data spark-warehouse metastore_db derby.log
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp file is remade when the file it was made from changes.
$(VENV)/.package: pyproject.toml
	@$(PYTHON) scripts/check_environment.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) --upgrade "pip>=25.1"
	$(BIN)/python $(PIP_INSTALL) --editable ".[cli,cloud,catalog,postgresql,server]" "$(NEWEST_PYSPARK)"
	@touch $@

$(VENV)/.tests: $(VENV)/.package pyproject.toml
	$(BIN)/python $(PIP_INSTALL) --group test --group peers --group lint
	@touch $@

$(VENV)/.site-tools: $(VENV)/.tests pyproject.toml
	$(BIN)/python $(PIP_INSTALL) --group site
	@touch $@

$(VENV)/.package-tools: $(VENV)/.tests pyproject.toml
	$(BIN)/python $(PIP_INSTALL) --group package
	@touch $@

$(VENV)/.bench: $(VENV)/.tests pyproject.toml
	$(BIN)/python $(PIP_INSTALL) --group bench
	@touch $@

$(VENV)/.demo: $(VENV)/.package pyproject.toml
	$(BIN)/python $(PIP_INSTALL) --group demo
	@touch $@

$(VENV_OLDEST)/.tests: pyproject.toml
	@$(PYTHON) scripts/check_environment.py
	$(PYTHON) -m venv $(VENV_OLDEST)
	$(VENV_OLDEST)/bin/python $(PIP_INSTALL) --upgrade "pip>=25.1"
	$(VENV_OLDEST)/bin/python $(PIP_INSTALL) --editable ".[cli,cloud,catalog,server]" "$(OLDEST_PYSPARK)" --group test
	@touch $@

$(VENVS_OLD:=/.tests): pyproject.toml
	@$(PYTHON) scripts/check_environment.py
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(PIP_INSTALL) --upgrade "pip>=25.1"
	$(@D)/bin/python $(PIP_INSTALL) --editable ".[catalog,cloud]" $(OLD_PYSPARK) --group old
	@touch $@

$(VENV_BARE)/.tests: pyproject.toml
	@$(PYTHON) scripts/check_environment.py
	$(PYTHON) -m venv $(VENV_BARE)
	$(VENV_BARE)/bin/python $(PIP_INSTALL) --upgrade "pip>=25.1"
	$(VENV_BARE)/bin/python $(PIP_INSTALL) --editable ".[cli,catalog]" --group bare
	@touch $@

# Peers that are not Python packages: delta-spark's JAR and the Azure storage emulator.
.cache/.peers: $(VENV_OLDEST)/.tests scripts/fetch_peers.py
	$(VENV_OLDEST)/bin/python scripts/fetch_peers.py
	@touch $@
