# Two targets for people: `make demo` and `make test`. Each sets up what it needs in .venv.
# Variables: PYTHON (interpreter for .venv), N (random programs for fuzz-judge), SEED, JOBS (processes that run Python
# tests: a number, or one for each processor, of which each takes 1 GB).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
N ?= 1000000
SEED ?= 1
JOBS ?= logical --maxprocesses 8
# Without what make would have Cargo share with other jobs.
CARGO := MAKEFLAGS= cargo
# With `-p` instead of `--workspace`, crates would be compiled again with fewer of their features.
SHUTTLE := $(CARGO) test --workspace --quiet --features streamsan-runtime/shuttle

.PHONY: demo test venv install torch models browser tools
.PHONY: checks environment lint rust-tests python-tests pytest fuzz-judge clean

demo: install
	@echo; echo "== a stream program of six lines, no torch needed"; echo
	@$(BIN)/streamsan demo
	@$(MAKE) --no-print-directory torch
	@echo; echo "== PyTorch on the virtual device: examples/loader_compute/bad.py"; echo
	@$(BIN)/streamsan run --device virtual --force -o $(VENV)/bad.sstrace examples/loader_compute/bad.py; test $$? -eq 66
	@echo; echo "== the same, fixed: examples/loader_compute/fixed.py"; echo
	@$(BIN)/streamsan run --device virtual --force -o $(VENV)/fixed.sstrace examples/loader_compute/fixed.py

# The two halves do not need each other: one downloads while the other compiles.
test: tools
	@$(MAKE) --no-print-directory --jobs=2 checks environment
	@$(MAKE) --no-print-directory pytest

checks:
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory rust-tests

# What the Python tests need, one after the other: all of it is written to one place.
environment:
	@$(MAKE) --no-print-directory models
	@$(MAKE) --no-print-directory browser
	@$(MAKE) --no-print-directory install

venv: $(BIN)/python

# An existing torch that streamsan can use is shared with .venv: scripts/make_venv.py.
$(BIN)/python:
	$(PYTHON) scripts/make_venv.py $(VENV)

install: venv
	MAKEFLAGS= $(BIN)/python scripts/install.py

torch: venv
	$(BIN)/python scripts/ensure_torch.py

models: torch
	$(BIN)/python scripts/ensure_models.py

browser: venv
	$(BIN)/python scripts/ensure_browser.py

tools: venv
	$(BIN)/python scripts/ensure_tools.py

lint: tools
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	$(CARGO) run --quiet -p xtask -- tidy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/check_pythons.py

rust-tests:
	$(CARGO) test --workspace --quiet
	$(SHUTTLE) --test schedules --test random_programs --test random_graphs
	$(SHUTTLE) --test pipeline random_pipelines

python-tests: tools environment
	@$(MAKE) --no-print-directory pytest

pytest:
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not alone" tests
	$(BIN)/python -m pytest -q -m alone tests

fuzz-judge:
	STREAMSAN_RANDOM_PROGRAMS=$(N) STREAMSAN_RANDOM_SEED=$(SEED) cargo test --release -p streamsan-check --test random -- --nocapture

clean:
	rm -rf target $(VENV) build dist python/streamsan/lib
