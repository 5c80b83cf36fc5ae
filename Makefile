# Everything a checkout can do. Each target brings what it needs: a virtual environment, the package with its jar,
# for the tests an Elasticsearch node. Needed beforehand: Python 3.10 or later, a JDK 17 or later, and for `make test`
# Maven.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
VENV := .venv
VENV_OLDEST := .venv-spark40
VENV_ICEBERG := .venv-spark41
VENV_DELTA := .venv-spark42
VENV_LOWEST := .venv-lowest
BIN := $(VENV)/bin
ZOO := build/zoo
RUN_TESTS = $(BIN)/python -m tests.run --newest $(BIN)/python --oldest $(VENV_OLDEST)/bin/python \
	--iceberg $(VENV_ICEBERG)/bin/python --delta $(VENV_DELTA)/bin/python

NEWEST_SPARK := pyspark>=4.0,<5
# The one that the build compiles against, so that it is fetched once.
OLDEST_SPARK := pyspark==4.0.1

# Without the engines' fuzz: pyarrow before 22 compares decimals of different scales wrongly, and it would say so.
WITH_THE_LOWEST := tests/clauses tests/predicates tests/indexes tests/stores tests/build/arrow tests/test_data_files.py \
	tests/engines --ignore=tests/engines/test_fuzz.py tests/spark/test_end_to_end.py tests/spark/test_bridge_queries.py

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Of four virtual environments most modules are never imported.
export PIP_COMPILE := 0

# What the installed package is made of besides its Python files, which an editable install reads in place.
BUILD_INPUTS := pyproject.toml hatch_build.py es_skipping/spark/jvm/formats.properties $(shell find es_skipping/spark/jvm/src -type f 2>/dev/null)

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV)/.demo ## Index TPC-H and real places, and run queries with skipping off and on
	$(BIN)/es-skipping demo $(if $(STORE),--store $(STORE))

.PHONY: test
test: $(VENV)/.dev ## Run the tests on the newest Spark
	$(RUN_TESTS)

.PHONY: test-clients
test-clients: $(VENV)/.dev ## Run the tests of spark-sql, Thrift, Spark Connect and Java applications, on the newest Spark
	$(RUN_TESTS) --parts clients

.PHONY: test-connectors
test-connectors: $(VENV_OLDEST)/.test $(VENV_ICEBERG)/.test $(VENV_DELTA)/.test ## Run the tests of Delta, Iceberg, Avro and Sedona, on the newest Spark that each serves
	$(RUN_TESTS) --parts connectors

.PHONY: test-oldest
test-oldest: $(VENV_OLDEST)/.test ## Run what differs between versions of Spark on the oldest
	$(RUN_TESTS) --parts oldest

.PHONY: test-versions
test-versions: $(VENV)/.dev $(VENV_OLDEST)/.test $(VENV_ICEBERG)/.test $(VENV_DELTA)/.test ## Run test, test-clients, test-connectors and test-oldest at once (HALF=0 or 1: half of the long legs, as continuous integration does)
	$(RUN_TESTS) --parts newest clients connectors oldest $(if $(HALF),--half $(HALF))

.PHONY: test-all
test-all: $(VENV)/.dev $(VENV_OLDEST)/.test $(VENV_ICEBERG)/.test $(VENV_DELTA)/.test ## Run the tests in every combination: stores, settings, versions of Spark
	$(RUN_TESTS) --parts newest clients connectors oldest --all

.PHONY: test-lowest
test-lowest: $(VENV_LOWEST)/.test ## Run the tests of what uses dependencies most, with the lowest versions that pyproject.toml allows
	$(VENV_LOWEST)/bin/python -m pytest -q -m "not long" $(WITH_THE_LOWEST)

.PHONY: test-es9
test-es9: $(VENV)/.dev ## Run the contract of stores on Elasticsearch 9, which needs Java 21 or later (VERSION=9.2.4)
	ES_SKIPPING_TEST_VERSION=$(or $(VERSION),9.2.4) $(BIN)/python -m pytest -q -m "not long" tests/stores/elasticsearch

.PHONY: fuzz
fuzz: $(VENV)/.dev ## Look for a query that loses a row (MINUTES=10 SEED=1 STORE=parquet or elasticsearch)
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10) --seed $(or $(SEED),1) --store $(or $(STORE),parquet)

.PHONY: engine-fuzz
engine-fuzz: $(VENV)/.dev ## Compare DuckDB, Polars and pyarrow on the files of esk.files and on all (FILTERS=5800 SEED=26 STORE=parquet)
	$(BIN)/python -m tests.engines.fuzz --filters $(or $(FILTERS),5800) --seed $(or $(SEED),26) --store $(or $(STORE),parquet)

.PHONY: world
world: $(VENV)/.dev ## Try every predicate of small domains over every object of three rows (SAMPLE=2000 of each SEED=18)
	$(BIN)/python -m tests.world $(if $(SAMPLE),--sample $(SAMPLE)) --seed $(or $(SEED),18)

.PHONY: mutants
mutants: $(VENV)/.dev $(VENV_ICEBERG)/.test $(VENV_DELTA)/.test ## Break one line at a time (tests/mutations) and see that the tests notice
	$(BIN)/python -m tests.mutants $(PATCHES)

.PHONY: zoo
zoo: $(VENV)/.dev $(ZOO)/.wheels ## Let the generators find wrong skips that others shipped (SEED=18)
	$(BIN)/python -m tests.zoo --seed $(or $(SEED),18) --predicates 300
	PYTHONPATH=$(CURDIR) $(ZOO)/bin/python -m tests.zoo.wheels --seed $(or $(SEED),18)
	PYTHONPATH=$(CURDIR) $(ZOO)/bin/python -m tests.zoo.writers --seed $(or $(SEED),18)

.PHONY: generated-mutants
generated-mutants: $(VENV)/.dev ## Break the rooms that decide in 1,500 small ways, and count what tests without Spark notice (COUNT=1500 SEED=18)
	nice -n 10 $(BIN)/python -m tests.generated_mutants --count $(or $(COUNT),1500) --seed $(or $(SEED),18)

.PHONY: matrix
matrix: $(VENV)/.dev $(VENV_OLDEST)/.test ## Try every pair of circumstances: Spark, client, format, files, tables, settings, stores
	$(BIN)/python -m tests.matrix --list
	$(BIN)/python -m tests.matrix
	$(VENV_OLDEST)/bin/python -m tests.matrix

.PHONY: faults
faults: $(VENV)/.dev ## Kill, stop, fill and tear real servers and writers, and see what queries do (MINUTES=6)
	MINUTES=$(or $(MINUTES),6) $(BIN)/python -m pytest -q tests/faults

.PHONY: day
day: $(VENV)/.dev ## Let 10,000 look-ups over a million objects show whether anything grows (STORE=http://localhost:9200)
	$(BIN)/python -m benchmarks.day $(if $(STORE),--store $(STORE))

.PHONY: load
load: $(VENV)/.dev ## Ask a helper 10,000 look-ups by eight threads: what takes how long, and what grows (COUNT=10000 THREADS=8)
	$(BIN)/python -m tests.clients.load --count $(or $(COUNT),10000) --threads $(or $(THREADS),8)

.PHONY: lint
lint: $(VENV)/.dev ## Check style, types, the docs' freshness and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict es_skipping
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m pytest -q tests/test_architecture.py tests/test_docs.py tests/test_words.py

.PHONY: release-check
release-check: $(VENV)/.dev ## Build the wheel twice, install it in an empty environment, and run the docs with it (PAGES="README.md")
	$(BIN)/python -m tests.release $(PAGES)

.PHONY: bench
bench: $(VENV)/.dev $(VENV)/.demo ## Measure (BENCHMARKS="overhead build lookup parquet_lookup fingerprints text_indexes geospatial layout_tpch")
	@for name in $(or $(BENCHMARKS),overhead build lookup parquet_lookup); do \
		echo "== $$name"; $(BIN)/python -m "benchmarks.$$name"; \
	done

.PHONY: peers
peers: $(VENV_OLDEST)/.peers ## Compare with plain Spark, Delta, Iceberg, DuckDB and Polars; write the README's table (ROUNDS=3)
	$(VENV_OLDEST)/bin/python -m benchmarks.peers --rounds $(or $(ROUNDS),3) --page

.PHONY: jar
jar: $(VENV)/.dev ## Write the jar, its sources and its POM as a Maven repository (REPOSITORY=build/maven)
	$(BIN)/python maven_build.py $(or $(REPOSITORY),build/maven)

.PHONY: docs
docs: $(VENV)/.dev ## Write the parts of the docs that are made from the code, and the site (build/site/index.html)
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/website/build.py build/site

.PHONY: format
format: $(VENV)/.dev ## Put the code into the form that lint asks for
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: clean
clean: ## Remove everything that was made here, the virtual environments included
	rm -rf $(VENV) $(VENV_OLDEST) $(VENV_ICEBERG) $(VENV_DELTA) $(VENV_LOWEST) build dist demo-output spark-warehouse metastore_db derby.log
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache
	rm -f es_skipping/spark/jvm/*.jar
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The package is installed editable; its build hook compiles the jar in an isolated environment of its own.
$(VENV)/.dev: $(BUILD_INPUTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[demo,dev]' '$(NEWEST_SPARK)'
	touch $@

$(VENV)/.demo: $(BUILD_INPUTS)
	test -f $(VENV)/.dev || { \
		$(PYTHON) -m venv $(VENV); \
		$(BIN)/python -m pip install --quiet --upgrade pip; \
	}
	$(BIN)/python -m pip install --quiet --editable '.[demo]' '$(NEWEST_SPARK)'
	touch $@

# Other projects' packages, apart from all else; pypaimon's dependencies are many and none is needed.
$(ZOO)/.wheels: tests/zoo/wheels.txt
	$(PYTHON) -m venv $(ZOO)
	$(ZOO)/bin/python -m pip install --quiet --requirement tests/zoo/wheels.txt
	$(ZOO)/bin/python -m pip install --quiet --no-deps pypaimon==1.3.2
	touch $@

# Delta and Iceberg both have a release for the oldest Spark, and the data comes from the demo's packages.
$(VENV_OLDEST)/.peers: $(VENV_OLDEST)/.test
	$(VENV_OLDEST)/bin/python -m pip install --quiet --no-build-isolation --editable '.[demo,test]' '$(OLDEST_SPARK)'
	touch $@

# uv, because pip has no way to choose the lowest versions. What only tests need is new.
$(VENV_LOWEST)/.test: $(BUILD_INPUTS) | $(VENV)/.dev
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade pip uv
	$(@D)/bin/uv pip compile --quiet --no-deps --resolution lowest-direct --python $(@D)/bin/python \
		--extra spark --extra duckdb --extra polars --extra protect --output-file $(@D)/lowest.txt pyproject.toml
	$(@D)/bin/uv pip install --quiet --python $(@D)/bin/python --constraint $(@D)/lowest.txt \
		pyspark 'hatchling>=1.27' editables 'mypy>=1.13'
	$(@D)/bin/uv pip install --quiet --python $(@D)/bin/python --constraint $(@D)/lowest.txt \
		--no-build-isolation --editable '.[test]'
	touch $@

# The same checkout under other Sparks. The jar is there already, and a build without isolation leaves it as it is:
# classes compiled against 4.0 run on every Spark 4.
$(VENV_OLDEST)/.test: SPARK := $(OLDEST_SPARK)
$(VENV_ICEBERG)/.test: SPARK := pyspark==4.1.*
$(VENV_DELTA)/.test: SPARK := pyspark==4.2.*
$(VENV_OLDEST)/.test $(VENV_ICEBERG)/.test $(VENV_DELTA)/.test: $(BUILD_INPUTS) | $(VENV)/.dev
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade pip
	$(@D)/bin/python -m pip install --quiet '$(SPARK)' 'hatchling>=1.27' editables
	$(@D)/bin/python -m pip install --quiet --no-build-isolation --editable '.[test]' '$(SPARK)'
	touch $@
