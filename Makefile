# The project's verbs. Each works on a fresh machine with Python 3.11, git and make;
# what it needs is installed into .venv first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.run-installed
DEV := $(VENV)/.dev-installed

# Commands that are started often must find compiled modules: `orderkit --help` takes eight times as long without.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo demo-agents demo-clouds fmt check test test-all security e2e matrix soak bench docs lab lab-down cluster cluster-down backstage portal portal-agents plugins clean

help: ## say what each verb does
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/' | expand -t 22

$(RUN): requirements.lock pyproject.toml packs/agents/controllers/pyproject.toml
	scripts/install.sh "$(PYTHON)" requirements.lock
	touch $@

$(DEV): requirements-dev.lock $(RUN)
	scripts/install.sh "$(PYTHON)" requirements-dev.lock
	touch $@

setup: $(RUN) ## install Orderkit into .venv (then: .venv/bin/orderkit --help)

demo: $(RUN) ## show the whole loop: order, change, repair, end
	$(BIN)/orderkit demo $(ARGS)

demo-agents: $(RUN) ## order an AI agent, let it spend, pause it, raise it, lose its data, end it
	$(BIN)/python -m whisperops demo

demo-clouds: $(RUN) ## workspaces, environments, and clusters on three clouds, with twins of the clouds: a minute
	$(BIN)/python scripts/demo_clouds.py

demo-campaign: $(RUN) ## change 30 orders in waves; the canary stops a bad change: a minute
	$(BIN)/python scripts/demo_campaign.py

fmt: $(DEV) ## format the code
	$(BIN)/ruff format
	$(BIN)/ruff check --fix-only

check: $(DEV) ## style, types, layers, YAML, generated files
	scripts/check.sh

# What make test runs: a part of make test-all that answers in minutes. One list, here.
HOUSES := $(wildcard libs/*/tests extras/*/tests)
QUICK := $(wildcard libs/*/tests extras/*/tests/unit) tests/unit \
  extras/workshop/tests/component/test_kit_test_command.py \
  $(addprefix tests/component/,packs pages/test_readme.py \
    platform/test_orders.py platform/test_ending.py changes/test_change_command.py) \
  $(addprefix tests/conformance/,forge/test_forge_port.py cluster/test_cluster_apply.py \
    validate delivery/test_delivery_scenarios.py)

# make test HOUSE=libs/yamlfiles runs all tests of one house; a library's without the houses above it.
HOUSED = $(if $(filter libs/%,$(HOUSE)),--house $(HOUSE)) $(if $(filter src,$(HOUSE)),tests,$(HOUSE)/tests)

test: TESTS = $(if $(HOUSE),$(HOUSED),$(QUICK))
test: $(DEV) ## unit tests, the kits' scenarios, the README's commands, an order's life, some contracts: minutes
	scripts/test.sh $(ARGS) $(TESTS)

test-all: TESTS = $(HOUSES) tests
test-all: $(DEV) ## every test that needs no real system, 45 minutes on two cores
	scripts/test-tools.sh
	scripts/engines.sh
	scripts/descriptions.sh
	scripts/test.sh $(ARGS) $(TESTS)

# Besides all of tests/security, every test that a row of docs/attacks.md names and that needs no real system.
PROOFS = $(shell grep -oE '`([a-z0-9_]+/)+test_[a-z0-9_]+[.]py(::test_[a-z0-9_]+)?`' docs/attacks.md \
  | tr -d '`' | grep -v '^e2e/' | sort -u | sed -E '/^(extras|libs)\//!s,^,tests/,')

security: TESTS = tests/security $(PROOFS)
security: $(DEV) ## the attacks of docs/attacks.md, on the embedded platform; a part of make test-all
	scripts/test-tools.sh
	scripts/test.sh $(ARGS) $(TESTS)

# What make e2e runs besides the journeys: the suites of the ports, which stand-ins pass too, on the real
# systems. What a pinned release answers to single requests does not change: make soak asks that again.
REAL_SIDES := tests/faults \
  $(addprefix tests/conformance/forge/,test_forge_port*.py test_forge_first_commit.py) \
  $(addprefix tests/conformance/cluster/,test_cluster_apply.py test_cluster_watch.py \
    test_kind_follower.py) \
  $(addprefix tests/conformance/,policies delivery catalog portal)

e2e: TESTS = tests/e2e $(REAL_SIDES)
e2e: $(DEV) ## whole journeys on a real Backstage, Gitea, Kubernetes API and Argo CD, in a real browser
	scripts/lab.sh
	scripts/backstage.sh --front-end
	scripts/browser.sh
	scripts/prometheus.sh
	scripts/test.sh --e2e --only-real $(ARGS) $(TESTS)

matrix: $(DEV) ## the suites of the ports, and attacks by push, on the oldest supported releases that can be built here
	scripts/matrix.sh $(ARGS) $(filter-out %/catalog %/portal,$(REAL_SIDES)) $(wildcard tests/e2e/test_security_*.py)

soak: $(DEV) ## the full random counts, for hours; in parts: make soak PART=rendering|crash|edit|forge|plans|counts|attacks|rest|mutants
	scripts/soak.sh "$(PART)" $(ARGS)

bench: $(DEV) ## measure; one JSON object a line. ARGS=--smallest only tries every suite: two minutes
	scripts/engines.sh
	$(BIN)/python -m bench $(ARGS)

DOCS := .cache/docs/venv/.installed
$(DOCS): requirements-docs.lock
	$(PYTHON) -m venv .cache/docs/venv
	.cache/docs/venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	touch $@

docs: $(DOCS) ## the site of docs/ with a search, and a check of every link: half a minute. ARGS=--releases adds tags
	.cache/docs/venv/bin/python scripts/docs_site.py $(ARGS)

lab: $(DEV) ## bring up a real Gitea, API server and Argo CD and leave them (built once: needs Go)
	scripts/lab.sh
	$(BIN)/python -m lab.standing up

lab-down: ## end them
	$(BIN)/python -m lab.standing down

cluster: $(DEV) ## the lab with a real node: kubelet, containerd, and the image of the service (needs root)
	scripts/lab.sh
	scripts/lab.sh node
	grep -qs "$$(git rev-parse HEAD)" .cache/image/provenance.json && [ -e .cache/image/orderkit.oci.tar ] || \
	  { rm -rf .cache/image && scripts/image.sh .cache/image; }
	$(BIN)/python -m lab.standing cluster

cluster-down: lab-down ## end them

backstage: $(RUN) ## a real Backstage on the embedded platform, without forms (needs npm)
	scripts/portal.sh

portal: $(RUN) ## the same with its forms in the browser
	scripts/portal.sh --front-end

portal-agents: $(RUN) ## the same with the agents' pack, its datasets and what a cluster would run
	scripts/portal.sh --front-end --agents

plugins: $(RUN) ## build, check, test and pack the packages for a Backstage (needs npm)
	scripts/plugins.sh

clean: ## remove what was installed and cached
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
