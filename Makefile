# The project's commands. `make` lists them.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

# The newest Python that runs, is 3.11 or newer and can make virtual environments; looked for only when one is made.
PYTHON_FITS := import ensurepip, ssl, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for candidate in python3.14 python3.13 python3.12 python3.11 python3 python; do \
    if "$$candidate" -c '$(PYTHON_FITS)' 2>/dev/null; then echo "$$candidate"; break; fi; done)
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Options of pytest. Tests share out work by file over two processes; of the e2e tests, each process has a control plane
# of its own, and on a cluster of yours there is one process. A machine that stalls for seconds can decide a test of an
# accelerated day, so an e2e test that fails runs once more; the report names it.
PYTEST ?= $(BIN)/pytest --strict-config
UNIT_OPTIONS ?= -n 2 --dist loadfile
# Compares hundreds of millions of minutes: measuring its coverage would take longer than the comparison.
TIME_TEST := tests/planning/test_time.py
E2E_OPTIONS ?= --reruns 1 $(if $(SERVINGPLAN_E2E_CONTEXT),,-n 2 --dist loadfile --no-loadscope-reorder)
# These need a machine of their own kind, or one to themselves (`make e2e-node`, `e2e-vllm`, `e2e-alone`).
APART := --ignore=e2e/node --ignore=e2e/vllm --ignore=e2e/alone
COVERAGE := --cov --cov-report=

IMAGE ?= servingplan:$(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' operator/servingplan/__init__.py)
RUNNER_IMAGE ?= $(subst servingplan:,servingplan-runner:,$(IMAGE))
VLLM_IMAGE ?= vllm/vllm-openai:v0.32.0
CONTAINER_ENGINE ?= $(firstword $(foreach candidate,docker podman buildah,$(shell command -v $(candidate) 2>/dev/null)))
DEMO_OPTIONS ?=

.PHONY: help
help: ## List the commands
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F '|' '{printf "%-20s %s\n", $$1, $$2}'

.PHONY: demo
demo: $(READY) ## Watch a working day in about three minutes, on a real control plane (DEMO_OPTIONS="--context NAME": on yours)
	$(BIN)/servingplan demo $(DEMO_OPTIONS)

.PHONY: test
test: $(READY) ## Run everything: lint, types, layers, unit and e2e tests; coverage is shown
	$(MAKE) --no-print-directory lint
	$(BIN)/coverage erase
	$(PYTEST) $(UNIT_OPTIONS) $(COVERAGE) --ignore=$(TIME_TEST) tests
	$(PYTEST) -n 2 --dist worksteal $(TIME_TEST)
	$(MAKE) --no-print-directory controlplane
	$(PYTEST) $(E2E_OPTIONS) $(COVERAGE) --cov-append $(APART) e2e
	$(BIN)/coverage report

.PHONY: unit
unit: $(READY) ## Run the tests that need no cluster: unit, property, golden, chart
	$(PYTEST) $(UNIT_OPTIONS) tests

.PHONY: e2e
e2e: controlplane ## Run the tests on a real control plane (SERVINGPLAN_E2E_CONTEXT=NAME: on a cluster of yours)
	$(PYTEST) $(E2E_OPTIONS) $(APART) e2e

.PHONY: e2e-pages
e2e-pages: $(READY) ## Open every page in Chromium (SERVINGPLAN_PAGES=FOLDER: and keep a picture of each)
	$(PYTEST) e2e/pages

.PHONY: e2e-alone
e2e-alone: controlplane ## Compare a simulated week with the operator's, to half a second; nothing else may run (8 minutes)
	$(PYTEST) e2e/alone

.PHONY: e2e-node
e2e-node: $(READY) ## Run the tests on real nodes, with kubelet, containerd and kube-proxy (Linux, root; installs packages)
	$(BIN)/python -m e2e.node $(PYTEST) --reruns 1 e2e/node

.PHONY: e2e-vllm
e2e-vllm: controlplane ## Run the tests on the real vLLM, in containers on a real node (Linux, root; 830 MB once; about an hour)
	$(BIN)/python -m e2e.vllm.environment
	$(BIN)/python -m e2e.node $(PYTEST) -s e2e/vllm

.PHONY: controlplane
controlplane: $(READY) ## Build the local control plane; once, minutes, kept in the user's cache
	@if [[ -z "$${SERVINGPLAN_E2E_CONTEXT:-}" ]]; then \
	    $(BIN)/python -c 'from servingplan.localcluster.build import ensure_built; ensure_built()'; fi

.PHONY: lint
lint: $(READY) ## Check style, format, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: $(READY) ## Format the code, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: crd
crd: $(READY) ## Generate the CustomResourceDefinitions from operator/servingplan/api, for crds/ and the chart
	$(BIN)/python -m servingplan.api.crd crds charts/servingplan/files/crds

.PHONY: chart-readme
chart-readme: $(READY) ## Write the table of values in the chart's README
	$(BIN)/python scripts/chart_readme.py

.PHONY: image
image: ## Build the operator's image (IMAGE=NAME, CONTAINER_ENGINE=docker, podman or buildah)
	@if [[ -z "$(CONTAINER_ENGINE)" ]]; then echo "make image needs docker, podman or buildah on the PATH." >&2; exit 1; fi
	$(CONTAINER_ENGINE) build --tag $(IMAGE) --target operator .

.PHONY: runner-image
runner-image: ## Build the image of evidence runners: vLLM with servingplan[bench] (VLLM_IMAGE=NAME, RUNNER_IMAGE=NAME)
	@if [[ -z "$(CONTAINER_ENGINE)" ]]; then echo "make runner-image needs docker, podman or buildah on the PATH." >&2; exit 1; fi
	$(CONTAINER_ENGINE) build --tag $(RUNNER_IMAGE) --target runner --build-arg VLLM_IMAGE=$(VLLM_IMAGE) .

.PHONY: clean
clean: ## Remove what was built here; the control plane in the user's cache stays
	rm -rf $(VENV) build dist .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Made once: a second Python in the same folder would leave a mixture of both. `make clean` to choose another one.
$(BIN)/python:
	@python="$(PYTHON)"; \
	if [[ -z "$$python" ]] || ! "$$python" -c '$(PYTHON_FITS)'; then \
	    echo "This needs Python 3.11 or newer that can make virtual environments (Debian: python3 and python3-venv);" \
	        "name one with PYTHON=... ($${python:-none was found})." >&2; exit 1; fi; \
	echo "Making $(VENV) with $$python." >&2; \
	"$$python" -m venv --clear $(VENV)

$(READY): pyproject.toml | $(BIN)/python
	@echo "Installing the package and what it needs into $(VENV)." >&2
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[dev]'
	@touch $@
