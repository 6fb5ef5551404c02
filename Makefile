# raidlab: everything a newcomer types. `make help` lists it.
# Needs Python 3.11 or later, a Rust toolchain (rustup or the distribution's, 1.89 or later) and make; the rest is set up here.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= runs
# What the compiled part is made of: it is rebuilt when one of these is newer than the beginning of the last build.
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name 'Cargo.toml' -o -name '*.toml' -path 'crates/*') Cargo.toml Cargo.lock

.DEFAULT_GOAL := help
.PHONY: help setup demo web wheel test test-all test-slow test-wheel test-rust test-python lint bench bench-isal devices-check golden golden-write md-witness md-witness-write md-probe site docs format lock notices clean

help: ## Say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/.packages: requirements-dev.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-virtualenv --require-hashes -r requirements-dev.lock
	@touch $@

$(VENV)/.built: $(VENV)/.packages pyproject.toml $(RUST_SOURCES)
	@echo "building raidlab (two to four minutes the first time)"
	@touch $@.began
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --locked --quiet >/dev/null
	@mv $@.began $@

setup: $(VENV)/.built ## Set up the virtual environment and build raidlab into it

# The page in which the simulator runs. Everything else does without it, and says so where it would be.
PAGE := python/raidlab/report/simulator.html
WASM := target/wasm32-unknown-unknown/web/raidlab_web.wasm
PAGE_SOURCES := $(wildcard docs/site/simulator/*) $(wildcard devices/*.toml) $(wildcard python/raidlab/report/templates/*)

$(WASM): $(RUST_SOURCES)
	@echo "compiling the simulator for browsers (two to six minutes the first time)"
	@$(PYTHON) docs/site/simulator/compile.py && touch $@

$(PAGE): $(WASM) $(PAGE_SOURCES) $(VENV)/.built
	$(BIN)/python docs/site/simulator/build.py $(WASM) $@

web: setup $(PAGE) ## The simulator in a page for browsers (needs Rust's target wasm32-unknown-unknown)

demo: setup ## Set everything up, compare arrays over files on this disk and in the simulator, write a report
	$(BIN)/raidlab run quickstart --out $(OUT)

test: test-rust test-python ## Set everything up and pass the tests, but for those that take long
test-all: test test-slow ## All tests

# Three at a time on two processors: many tests wait for a clock, a disk or a process of their own.
PYTEST = $(BIN)/python -m pytest -q -n 3 --dist loadfile $(PYTEST_WORDS)

test-rust:
	cargo test --locked --workspace --exclude raidlab-py

test-python: setup
	$(PYTEST) -m 'not slow' tests/golden tests/md-witness tests/python

test-slow: setup ## The tests that take long: those marked slow
	cargo test --locked --workspace --exclude raidlab-py --lib --bins --tests -- --ignored
	$(PYTEST) -m slow tests/golden tests/md-witness tests/python

$(VENV)/.zig: $(VENV)/.packages tests/wheel/requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-virtualenv --require-hashes -r tests/wheel/requirements.lock
	@touch $@

# The C library of the oldest Linux that the wheel is for (2014: glibc 2.17) comes with zig, which links against it.
wheel: $(VENV)/.zig ## A wheel for any Linux and Python 3.11 or later, and a source distribution, in dist/
	@$(MAKE) --no-print-directory web || echo "the wheel goes without the page of the simulator"
	rm -rf dist
	VIRTUAL_ENV=$(CURDIR)/$(VENV) PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --locked --quiet --zig --compatibility manylinux_2_17 --out dist
	$(BIN)/maturin sdist --out dist >/dev/null

test-wheel: setup wheel ## The wheel in a clean environment, without Rust and outside this tree
	$(BIN)/python -m pytest -q tests/wheel

lint: setup ## Formatting, clippy, ruff, mypy, and the direction of imports
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(BIN)/ruff check python tests benches docs .ci
	$(BIN)/ruff format --check python tests benches docs .ci
	$(BIN)/mypy

format: setup ## Format all code
	cargo fmt --all
	$(BIN)/ruff format python tests benches docs .ci
	$(BIN)/ruff check --fix --quiet python tests benches docs .ci

bench: setup ## Benchmarks of every crate, the simulator against queueing theory, and one table of speeds beside the aims
	mkdir -p target && touch target/.bench-began
	cargo bench --locked --workspace --exclude raidlab-py
	@status=0; $(BIN)/python benches/queueing/run.py || status=$$?; \
	$(BIN)/python benches/speeds/run.py --since target/.bench-began; exit $$status

bench-isal: ## Parity kernels against ISA-L in interleaved pairs (needs libisal-dev)
	cargo bench --locked -p raidlab-parity --features isal --bench against_isal

devices-check: setup ## Every figure that was published of a device in devices/ beside the model's
	@for device in $$(grep -l '^\[\[published\]\]' devices/*.toml); do $(BIN)/raidlab device validate $$(basename $$device .toml) || exit 1; done

golden: ## Regenerate the layout maps from real Linux md and compare with the committed ones (builds the lab kernel once)
	tests/md-lab/build-kernel.sh
	$(PYTHON) tests/md-lab/golden.py --check

golden-write: ## Replace the committed layout maps by what real Linux md writes
	tests/md-lab/build-kernel.sh
	$(PYTHON) tests/md-lab/golden.py --write

md-witness: setup ## Hold the simulator to real Linux md over the same exact disks, case by case (builds the lab kernel once)
	tests/md-lab/build-kernel.sh
	$(BIN)/python tests/md-lab/witness.py && $(BIN)/python tests/md-lab/witness_tasks.py

md-witness-write: setup ## The same, and keep md's figures for the quick test
	tests/md-lab/build-kernel.sh
	$(BIN)/python tests/md-lab/witness.py --write && $(BIN)/python tests/md-lab/witness_tasks.py --write

md-probe: setup ## Name arrays of real Linux md from timing alone, by reads and then by writes too (builds the lab kernel once)
	tests/md-lab/build-kernel.sh
	$(BIN)/python tests/md-lab/probe.py && $(BIN)/python tests/md-lab/probe.py --destroy

site: setup ## The docs site, in site/: strict, without the network, and checked to need none
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site
	$(BIN)/python docs/site/check.py site

docs: ## API documentation of the crates, in target/doc
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --exclude raidlab-py

# Versions stay as they are where they can; UPGRADE=--upgrade takes the newest. Needs uv (`pip install uv`).
COMPILE = uv pip compile --quiet --generate-hashes --no-annotate --python-version 3.11.5 --custom-compile-command "make lock" $(UPGRADE)
lock: ## Write the lock files of Python packages, with the hash of every file that may be installed
	$(COMPILE) pyproject.toml -o requirements.lock
	$(COMPILE) pyproject.toml --extra dev -c requirements.lock -o requirements-dev.lock
	$(COMPILE) .ci/tools.in -o .ci/tools.lock
	$(COMPILE) benches/fuzz/requirements.in -o benches/fuzz/requirements.lock
	$(COMPILE) tests/wheel/requirements.in -o tests/wheel/requirements.lock

notices: ## Write the licences of the crates that the wheel contains
	$(PYTHON) .ci/crates.py notices > THIRD-PARTY-NOTICES

clean: ## Remove what was built; results stay
	rm -rf target site dist $(VENV) $(PAGE)
