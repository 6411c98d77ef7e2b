# SPDX-License-Identifier: Apache-2.0
# `make help` lists the targets. Each works on a fresh machine, or says in one line what is missing.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
BIND ?= 127.0.0.1:8778
#: More options for the program behind a target: make serve ARGS="--workers 4", make test ARGS="-k trees".
ARGS ?=
#: Processes that share the tests: more than processors, because many tests wait for servers.
JOBS ?= 4
#: How much `make test` and `make proof` try (tests/effort.py).
BERTH_EFFORT ?= 0.2
EFFORT ?= 4
#: The tests that try more with more effort.
PROOFS := tests/proof tests/faults tests/candidates tests/index tests/openapi \
	tests/api/test_bad_input.py tests/hosts/test_bad_drivers.py tests/hosts/test_host_models.py \
	tests/hosts/test_one_budget.py tests/hosts/test_provider_tree.py tests/hosts/test_under_fire.py

# In the environment, so that what builds berth is bound by it too.
INSTALL := PIP_CONSTRAINT="$(CURDIR)/constraints.txt" bash tools/install.sh $(BIN)/python
BUILT_FROM := pyproject.toml constraints.txt

# The tests start hundreds of processes: each would compile berth again in an environment that keeps
# no bytecode, as those of many containers.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help serve demo test proof plant coverage golden screenshots lint lint-python lint-page figures format docs bench compare constraints clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

serve: $(VENV)/.runtime ## Start a service on loopback, with an SQLite database
	@$(BIN)/berth serve --bind $(BIND) $(ARGS)

demo: $(VENV)/.runtime ## Start a service with 2,000 simulated hosts, and print the address of its page
	@$(BIN)/berth demo serve --bind $(BIND) $(ARGS)

test: export BERTH_EFFORT := $(BERTH_EFFORT)
test: $(VENV)/.development ## Run the tests in five minutes, and print what was tested and what was not
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --max-worker-restart 0 --durations 20 --durations-min 2 $(ARGS)

proof: export BERTH_EFFORT := $(EFFORT)
proof: $(VENV)/.development ## Run the proofs and the random tests at full effort
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --max-worker-restart 0 $(PROOFS) $(ARGS)

plant: $(VENV)/.development ## Plant small faults in copies of the code, one at a time, and say which tests find them
	@$(BIN)/python tools/plant.py $(ARGS)

coverage: $(VENV)/.development ## Run the tests, and update docs/api-coverage.md
	@$(BIN)/python -m pytest --write-api-coverage $(ARGS)

golden: $(VENV)/.development ## Update the files of tests/golden, and the pictures in docs/images/capacity
	@$(BIN)/python -m pytest -n 0 tests/golden --write-golden

screenshots: $(VENV)/.development ## Retake the screenshots in docs/images/page
	@$(BIN)/python -m pytest -n 0 tests/page/test_tour.py --write-golden

lint: lint-python lint-page ## Check style, format, types and the limits of tools/figures.py

lint-python: $(VENV)/.development
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict berth tests bench compare tools
	@$(BIN)/python tools/figures.py
	@$(BIN)/python tools/figures.py --commits

lint-page:
	@bash tools/page_checks.sh

figures: $(VENV)/.development ## Print the size of the code, import circles and caches; ARGS="--before REV" for two columns
	@$(BIN)/python tools/figures.py $(ARGS)

format: $(VENV)/.development ## Format every file
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.development ## Build the documentation into docs/_build/html; a warning is an error
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.development ## Measure speed; ARGS="--peer" measures OpenStack Placement too
	@$(BIN)/python -m bench $(ARGS)

compare: $(VENV)/.development ## Send the same requests to berth and OpenStack Placement, and compare; ARGS="--requests 100000 --seed 7"
	@$(BIN)/python -m compare $(ARGS)

constraints: ## Update constraints.txt to the newest releases that pyproject.toml allows
	@PYTHON="$(PYTHON)" bash tools/constraints.sh

clean: ## Remove everything that make created
	rm -rf $(VENV) build dist *.egg-info docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis tools/web/node_modules
	find berth tests bench compare -name __pycache__ -type d -prune -exec rm -rf {} +

# The virtual environment, in two sizes: for the service, and for development.
$(VENV)/.runtime: $(BUILT_FROM) | $(BIN)/python
	@$(INSTALL) -e '.[service]'
	@touch $@

$(VENV)/.development: $(BUILT_FROM) | $(BIN)/python
	@$(INSTALL) -e '.[dev,docs]'
	@bash tools/libvirt_binding.sh $(BIN)/python
	@touch $@ $(VENV)/.runtime

$(BIN)/python:
	@PYTHON="$(PYTHON)" bash tools/virtualenv.sh $(VENV)
