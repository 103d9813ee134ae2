# Every target does its own set-up: a fresh clone needs Python 3.11+, make and PyPI, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
PYTEST_WORKERS ?= 2
# Most of them wait for a server more than they compute.
TEST_WORKERS ?= 6
REAL_WORKERS ?= 4
# One follows the demo, which mostly waits.
BROWSER_WORKERS ?= 3
# As tests/conftest.py has ordered them.
DISTRIBUTED := --dist loadfile --no-loadscope-reorder
# Tests start hundreds of programs: none should compile what it imports again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo compiled test test-real chromium test-browser screenshots controlplane lint check bench chaos crds builtins image release docs krew format clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.complete ## make .venv with everything pinned in uv.lock

$(VENV)/.complete: pyproject.toml testbed/pyproject.toml uv.lock
ifneq ($(UV),)
	$(UV) sync --frozen --quiet
else
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.7
	$(BIN)/uv sync --frozen --quiet --inexact
endif
	@touch $@

demo: setup ## a tour of a simulated fleet on the embedded API server (FAST=1 without pauses, ONCE=1 ends after it, NODES=5000, REAL=1 on the real control plane)
	$(BIN)/nodeyard demo $(if $(ONCE),--once) $(if $(FAST),--fast) $(if $(REAL),--real) $(if $(NODES),--nodes $(NODES))

# On a fresh clone each of the processes of a run would compile every test for itself.
compiled: setup
	@test -d tests/__pycache__ || { \
		$(BIN)/pytest --collect-only -qq tests/unit >/dev/null 2>&1 & \
		$(BIN)/pytest --collect-only -qq tests --ignore=tests/unit >/dev/null 2>&1; wait; }

test: setup compiled ## everything on the embedded server
	$(BIN)/pytest -m "not real and not browser" -n $(TEST_WORKERS) $(DISTRIBUTED) $(ARGS)

test-real: setup controlplane compiled ## what involves the real control plane
# Servers in Go spend a fifth of their time collecting garbage that there is room for.
	GOGC=400 $(BIN)/pytest -m real -n $(REAL_WORKERS) $(DISTRIBUTED) $(ARGS)

# Debian's chromium; the driver comes from PyPI with the dependency group.
chromium: setup
	@command -v chromium >/dev/null || { \
		root=; test "$$(id -u)" = 0 || root="sudo -n"; \
		command -v apt-get >/dev/null && $$root apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive $$root apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; \
	} || { echo "chromium is missing and could not be installed: run 'apt-get install chromium' as root, then again" >&2; exit 1; }
	$(or $(UV),$(BIN)/uv) sync --frozen --quiet --inexact --group browser

test-browser: chromium ## the dashboard's page in headless chromium (installed with apt-get if it is missing)
	$(BIN)/pytest -m browser tests/browser -n $(BROWSER_WORKERS) --dist loadfile $(ARGS)

screenshots: chromium ## write docs/images from made-up fleets
	$(BIN)/pytest -m browser tests/browser/test_screenshots.py --screenshots $(ARGS)

controlplane: setup ## build the real control plane (about 20 minutes once, then nothing)
	$(BIN)/python -m nodeyard.testing.build

lint: setup ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint ## lint, unit and golden tests: under a minute
	$(BIN)/pytest -m "not real" tests/unit tests/golden -n $(PYTEST_WORKERS) $(DISTRIBUTED) $(ARGS)

bench: setup controlplane ## every benchmark, into bench/results.json and docs/performance.md; fails when a required ratio is missed
	$(BIN)/python -m bench $(ARGS); status=$$?; $(BIN)/python -m bench.report && exit $$status

chaos: setup ## seeded faults and the invariants of the operator; MINUTES=20, SEED=N one run again, REAL=1
	$(BIN)/python -m chaos $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(REAL),--real)

crds: setup ## write config/, docs/schema/, docs/reference/, the words of bundles, the generated files of the charts and the kustomize base
	$(BIN)/python -m nodeyard.app.manifests config
	$(BIN)/python -m tools.dashboards
	$(BIN)/python -m tools.kustomize
	$(BIN)/python -m tools.reference
	$(BIN)/python -m tools.words

builtins: setup controlplane ## derive the built-in kinds' tables from the real API server
	$(BIN)/python -m nodeyard.testing.generate_type_table
	$(BIN)/python -m nodeyard.testing.generate_protobuf_table

image: setup ## build the container image of the operator into dist/, without docker
	$(BIN)/python -m tools.image $(IMAGE)

release: setup ## write everything that a release publishes into dist/
	rm -rf dist
	$(BIN)/python -m tools.release

docs: setup ## build the documentation site in site/; fails at a link that does not resolve
	$(or $(UV),$(BIN)/uv) sync --frozen --quiet --inexact --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

krew: setup ## build the archive and the manifest of the kubectl plugin in dist/
	$(BIN)/python tools/krew.py dist

format: setup ## let ruff mend style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove what the build made in the tree
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis site
