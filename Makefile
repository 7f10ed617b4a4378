# Every command of the project. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PORT ?= 4566
# Tests and the local cloud run the functions on this machine, so its architecture is the default; AWS calls it arm64.
# plan and deploy build what the options file says.
ARCH ?= $(patsubst aarch64,arm64,$(shell uname -m))

# Tools in Python keep what they compile: scripts/venv installs only sources.
unexport PYTHONDONTWRITEBYTECODE

# The tests find their tools here and not on the machine.
export ZAE_TEST_MINISTACK := $(abspath .venv/ministack/bin/ministack)
export ZAE_TEST_PEER_PYTHON := $(abspath .venv/peer/bin/python)
export ZAE_TEST_CFN_LINT := $(abspath .venv/cfn-lint/bin/cfn-lint)
export ZAE_TEST_CLIENTS_PYTHON := $(abspath .venv/clients/bin/python)
export ZAE_TEST_PYTHON := $(abspath .venv/python/bin/python)

started := $(shell date +%s)
took = @seconds=$$(( $$(date +%s) - $(started) )); echo "make $@ took $$((seconds / 60)) min $$((seconds % 60)) s"

##@ Every day

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } \
	    /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	    /^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: machine venv-ministack venv-peer venv-clients venv-python venv-cfn-lint venv-cargo-lambda ## Install the pinned tools under .venv (quick when nothing changed)
	@echo "ready: try make demo, then make test"

.PHONY: demo
demo: machine ## The whole system at work: a local cloud, the stack, traffic, usage and archive (DEMO_KEEP=1 serves the UI on it)
	@# The local cloud is installed while the demo is compiled.
	@$(MAKE) -j2 dev-functions venv-ministack
	@DEMO_KEEP='$(DEMO_KEEP)' $${CARGO_TARGET_DIR:-target}/debug/examples/demo
	$(took)

# The tests' programs have the functions' archives inside, and tests of that.
BUNDLED := --features zae-limiter-cli/bundled-functions,zae-limiter-tests/bundled-functions
test: export ZAE_LIMITER_FUNCTIONS := $(abspath target/dev-functions)

.PHONY: test
test: lint-files dev-functions test-tools ## Everything that must hold: formatting, clippy, all tests and doctests, the checks of files
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo test --workspace --locked $(BUNDLED)
	$(took)

.PHONY: test-tools
test-tools: venv-ministack venv-peer venv-clients venv-python venv-cfn-lint typescript

.PHONY: lint
lint: lint-files ## Formatting, clippy and rustdoc with warnings denied, the checks of files
	cargo clippy --workspace --all-targets --locked -- -D warnings
	@$(MAKE) doc

# Formatting, workflows, Terraform, scripts and rendered templates.
.PHONY: lint-files
lint-files: machine venv-cfn-lint
	cargo fmt --all --check
	@scripts/broken-rules.py --check
	@scripts/lint-workflows
	@scripts/check-terraform --offline
	@for script in .ci/run $$(grep -slE '^#!.*bash' scripts/*); do bash -n "$$script" || exit 1; done
	$(if $(wildcard template/rendered),scripts/lint-templates)

.PHONY: fmt
fmt: ## Format all Rust code
	cargo fmt --all

.PHONY: doc
doc: machine ## The API reference into target/doc; a broken link is an error
	@# With the examples, so that dependencies have the features of the other commands and are not compiled again.
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --lib --examples --locked
	@echo "open target/doc/zae_limiter/index.html"

.PHONY: book
book: machine ## Build the documentation as a book into target/book
	@scripts/install-mdbook
	@.tools/bin/mdbook build
	@echo "open target/book/index.html"

##@ Proof

.PHONY: python
python: machine venv-python ## The Python package: its wheel, installed and tested
	cargo test --locked --workspace --test package

.PHONY: python-suite
python-suite: machine venv-python venv-python-suite ## The tests of zae-limiter 0.9.1 on the Python package: how many pass, and why not all
	@python/scripts/build-wheel target/python-wheel
	@python/suite/run.py $(abspath .venv/python-suite/bin/python) $(abspath target/python-wheel/package) target/python-suite -n auto

.PHONY: python-adapters
python-adapters: machine venv-python venv-python-suite venv-adapters venv-litellm ## The adapters of the Python package on OpenAI's, Anthropic's, LangChain's and LiteLLM's own packages
	@python/scripts/build-wheel target/python-wheel
	@python/scripts/test-adapters target/python-wheel/package

.PHONY: screenshots
screenshots: machine ## The pictures of the UI under docs/images/ui, taken by the browser tests (needs chromium)
	@scripts/screenshots

.PHONY: simulate
simulate: machine ## The long simulation of acquire, and 100,000 changes through the functions' binaries with faults
	ZAE_SIMULATION=long cargo test --locked --profile simulate -p zae-limiter --lib -- simulation:: --nocapture
	scripts/broken-rules.py
	@# Optimized, this program would take longer to compile than to run.
	ZAE_SIMULATION=long ZAE_FLEET=long cargo test --locked --workspace --test main -- exactly_once:: through_crashes --nocapture

.PHONY: interop
interop: machine venv-peer ## Long mixed traffic with the Python peer, both command lines and aggregators, and its vectors
	ZAE_INTEROP=long cargo test --locked -p zae-limiter-tests -p zae-limiter-cli --test main -- peer:: --nocapture

.PHONY: fuzz
fuzz: machine ## Fuzz every parser with libFuzzer, SECONDS of each (SECONDS=300, TARGETS=); needs a C++ compiler
	@TARGETS='$(TARGETS)' scripts/fuzz $(or $(SECONDS),300)

.PHONY: soak
soak: machine ## 20 minutes of 8 clients while table, clients and functions are stopped and killed; all counts must agree
	ZAE_SOAK=long cargo test --locked -p zae-limiter-tests --test soak -- --nocapture

.PHONY: mutants
mutants: machine ## Mutate PART=schema|client|aggregator|leases, and list what no test notices (SHARD=0/8, FILES=)
	@scripts/install-cargo-mutants
	@PART='$(PART)' SHARD='$(SHARD)' FILES='$(FILES)' scripts/mutants

.PHONY: coverage
coverage: test-tools dev-functions ## The share of lines that tests run, by file, with cargo-llvm-cov (cargo install cargo-llvm-cov)
	cargo llvm-cov --workspace --locked
	$(took)

.PHONY: bench
bench: machine ## Measure acquire beside the bare SDK call and the Python package, and the packed functions
	@# The functions and the benchmarks are compiled side by side: each has steps that use one processor only.
	@$(MAKE) -j3 functions bench-programs venv-peer
	@scripts/bench
	$(took)

.PHONY: bench-programs
bench-programs: machine
	@scripts/bench compile

.PHONY: audit
audit: machine ## Licenses, bans, sources and advisories of dependencies; checkov on the templates
	@scripts/install-cargo-deny
	@scripts/audit

.PHONY: release-check
release-check: machine ## Whether the tree can be released: version, changelog, rendered files, packages (TAG=v0.1.0, VERIFY=1)
	@scripts/release-check $(if $(VERIFY),--verify) $(TAG)

##@ The stack

.PHONY: template
template: machine ## Write template/rendered from the code
	@scripts/require template "the export of templates" template/examples/export.rs
	cargo run --quiet --locked -p zae-limiter-template --example export

.PHONY: render
render: machine venv-cfn-lint ## Render and lint the template of OPTIONS_FILE, without an AWS account
	@mkdir -p target
	cargo run --quiet --locked -p zae-limiter-cli --bin zae-limiter -- cfn-template $(OPTIONS_FILE) > target/template.yaml
	@scripts/lint-templates target/template.yaml

.PHONY: functions
functions: machine ## Build the Lambda functions into target/functions (ARCH=x86_64|arm64)
	@scripts/require functions "a Lambda function" functions/aggregator/src/main.rs functions/archiver/src/main.rs functions/provisioner/src/main.rs
	@scripts/venv cargo-lambda
	scripts/build-functions $(ARCH)

# The functions as demo and tests deploy them on the local cloud: from the dev build, since optimizing them takes minutes.
.PHONY: dev-functions
dev-functions: machine
	@echo "== compiling the demo and the functions for this machine (several minutes the first time)"
	@# The whole workspace with an example, so that dependencies have the features that the tests need and are compiled once.
	cargo build --workspace --locked --example demo --bin zae-limiter-aggregator --bin zae-limiter-archiver \
	    --bin zae-limiter-provisioner $(if $(DEMO_KEEP),--bin zae-limiter)
	@scripts/pack-dev-functions

.PHONY: local-up
local-up: machine venv-ministack ## Start the local cloud, no Docker needed (PORT=4566)
	@scripts/local-cloud up $(PORT)

.PHONY: local-down
local-down: ## End the local cloud that local-up started (PORT=4566)
	@scripts/local-cloud down $(PORT)

.PHONY: plan deploy destroy
plan: functions-for-options ## Show what deploy would do (NAME=, ENDPOINT= or PROFILE=, REGION=, OPTIONS_FILE=, OFFLINE=1)
deploy: functions-for-options ## Deploy a stack (the same)
destroy: machine ## Delete a stack; its table and archive stay (the same, YES=1 without confirmation)
plan deploy destroy:
	@scripts/require $@ "the zae-limiter command" cli/src/main.rs
	@ENDPOINT='$(ENDPOINT)' PROFILE='$(PROFILE)' REGION='$(REGION)' OPTIONS_FILE='$(OPTIONS_FILE)' YES='$(YES)' \
	    OFFLINE='$(OFFLINE)' \
	    scripts/deploy $@ '$(NAME)'

# The functions for the architecture that OPTIONS_FILE names.
.PHONY: functions-for-options
functions-for-options:
	@arch=$$(scripts/options-architecture '$(OPTIONS_FILE)'); $(MAKE) functions ARCH="$$arch"

##@ Housekeeping

.PHONY: clean
clean: ## Remove everything built, installed or started under the project
	@scripts/local-cloud down-all
	cargo clean
	rm -rf .local .tools .venv

.PHONY: machine
machine:
	@scripts/check-machine

# What builds and checks the npm package and the TypeScript of the documentation. Without node it only says so.
.PHONY: typescript
typescript: machine
	@scripts/install-typescript

# One venv a tool, since their requirements contradict each other. scripts/venv decides whether there is work.
.PHONY: venv-ministack venv-peer venv-clients venv-python venv-python-suite venv-adapters venv-litellm venv-cfn-lint venv-cargo-lambda
venv-ministack venv-peer venv-clients venv-python venv-python-suite venv-adapters venv-litellm venv-cfn-lint venv-cargo-lambda: venv-%: venv-pip
	@scripts/venv $*

# Before all others: where there is no flock, two of them at once would both make it.
.PHONY: venv-pip
venv-pip: machine
	@scripts/venv
