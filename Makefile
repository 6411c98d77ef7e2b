# SPDX-License-Identifier: Apache-2.0
# The door to berth. `make help` lists what there is; each target works on a fresh machine,
# or says in one line what is missing.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
BIND ?= 127.0.0.1:8778
#: More options for the program behind a target: make serve ARGS="--workers 4", make test ARGS="-k trees".
ARGS ?=
#: Processes that share the tests.
JOBS ?= 2

# In the environment, so that what builds berth is bound by it too.
INSTALL := PIP_CONSTRAINT="$(CURDIR)/constraints.txt" bash tools/install.sh $(BIN)/python
BUILT_FROM := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help serve test coverage golden lint format docs bench compare constraints clean

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

serve: $(VENV)/.runtime ## Start a service on an embedded database, on loopback
	@$(BIN)/berth serve --bind $(BIND) $(ARGS)

test: $(VENV)/.development ## Run every test that this machine can run, and say which engines were tested
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --max-worker-restart 0 $(ARGS)

coverage: $(VENV)/.development ## Run the tests, and write docs/api-coverage.md from what they have seen
	@$(BIN)/python -m pytest --write-api-coverage $(ARGS)

golden: $(VENV)/.development ## Write the files of tests/golden anew
	@$(BIN)/python -m pytest -n 0 tests/golden --write-golden

lint: $(VENV)/.development ## Check style, format and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict berth tests bench compare

format: $(VENV)/.development ## Put every file into the house format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.development ## Build the documentation into docs/_build/html; a warning is an error
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.development ## Measure; ARGS="--peer" puts the original beside it
	@$(BIN)/python -m bench $(ARGS)

compare: $(VENV)/.development ## Send the same requests to berth and to the original; ARGS="--requests 100000 --seed 7"
	@$(BIN)/python -m compare $(ARGS)

constraints: ## Write constraints.txt anew from the newest releases that pyproject.toml admits
	@PYTHON="$(PYTHON)" bash tools/constraints.sh

clean: ## Remove everything that make has made
	rm -rf $(VENV) build dist *.egg-info docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find berth tests bench compare -name __pycache__ -type d -prune -exec rm -rf {} +

# The virtual environment, in two sizes: what the service needs, and what those need who work on it.
$(VENV)/.runtime: $(BUILT_FROM) | $(BIN)/python
	@$(INSTALL) -e .
	@touch $@

$(VENV)/.development: $(BUILT_FROM) | $(BIN)/python
	@$(INSTALL) -e '.[dev,docs]'
	@bash tools/libvirt_binding.sh $(BIN)/python
	@touch $@ $(VENV)/.runtime

$(BIN)/python:
	@PYTHON="$(PYTHON)" bash tools/virtualenv.sh $(VENV)
