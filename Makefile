# The project's verbs. Each works on a fresh machine with Python 3.11, git and make;
# what it needs is installed into .venv first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.run-installed
DEV := $(VENV)/.dev-installed

.PHONY: help setup demo fmt check test e2e soak bench lab backstage portal clean

help: ## say what each verb does
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9]+):.*## /  make \1\t/' | expand -t 20

$(RUN): requirements.lock pyproject.toml
	scripts/install.sh "$(PYTHON)" requirements.lock
	touch $@

$(DEV): requirements-dev.lock $(RUN)
	scripts/install.sh "$(PYTHON)" requirements-dev.lock
	touch $@

setup: $(RUN) ## install Orderkit into .venv (then: .venv/bin/orderkit --help)

demo: $(RUN) ## show the whole loop: order, change, repair, end
	$(BIN)/orderkit demo

fmt: $(DEV) ## format the code
	$(BIN)/ruff format
	$(BIN)/ruff check --fix-only

check: $(DEV) ## style, types, layers, YAML, generated files
	scripts/check.sh

test: $(DEV) ## the tests that need Python, git and what scripts/test-tools.sh installs
	scripts/test.sh

e2e: $(DEV) lab ## whole journeys on a real Backstage, Gitea and Kubernetes API, in a real browser
	scripts/backstage.sh --front-end
	scripts/test.sh --e2e tests/e2e tests/faults \
	  $(addprefix tests/conformance/,forge cluster validate policies xrds yamledit)

soak: $(DEV) ## the full random counts, for hours; in parts: make soak PART=rendering|crash|edit|forge|rest
	scripts/soak.sh $(PART)

bench: $(DEV) ## measure; one JSON object a line
	scripts/engines.sh
	$(BIN)/python -m bench

lab: ## build the real systems the tests meet, once (needs Go and gcc)
	scripts/lab.sh

backstage: $(RUN) ## a real Backstage on the embedded platform, without forms (needs npm)
	scripts/portal.sh

portal: $(RUN) ## the same with its forms in the browser
	scripts/portal.sh --front-end

clean: ## remove what was installed and cached
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
