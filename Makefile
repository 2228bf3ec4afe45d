# Two targets for people: `make demo` and `make test`. Each sets up what it needs in .venv.
# Variables: PYTHON (interpreter for .venv), N (random programs for fuzz-judge), SEED, JOBS (processes that run Python
# tests: a number, or one for each processor, of which each takes 1 GB).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
N ?= 1000000
SEED ?= 1
JOBS ?= logical --maxprocesses 8

.PHONY: models browser tools demo test fuzz-judge venv torch install lint rust-tests python-tests bench clean

demo: install
	@echo; echo "== a stream program of six lines, no torch needed"; echo
	@$(BIN)/streamsan demo
	@$(MAKE) --no-print-directory torch
	@echo; echo "== PyTorch on the virtual device: examples/loader_compute/bad.py"; echo
	@$(BIN)/streamsan run --device virtual --force -o $(VENV)/bad.sstrace examples/loader_compute/bad.py; test $$? -eq 66
	@echo; echo "== the same, fixed: examples/loader_compute/fixed.py"; echo
	@$(BIN)/streamsan run --device virtual --force -o $(VENV)/fixed.sstrace examples/loader_compute/fixed.py

test: lint rust-tests python-tests

venv: $(BIN)/python

# An existing torch that streamsan can use is shared with .venv: scripts/make_venv.py.
$(BIN)/python:
	$(PYTHON) scripts/make_venv.py $(VENV)

install: venv
	$(BIN)/python scripts/install.py

torch: venv
	$(BIN)/python scripts/ensure_torch.py

models: torch
	$(BIN)/python scripts/ensure_models.py

browser: venv
	$(BIN)/python scripts/ensure_browser.py

tools: venv
	$(BIN)/python scripts/ensure_tools.py

lint: tools
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo run --quiet -p xtask -- tidy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/check_pythons.py

rust-tests:
	cargo test --workspace --quiet
	cargo test --quiet -p streamsan-runtime --features shuttle --test schedules --test random --test graphs
	cargo test --quiet -p streamsan-runtime --features shuttle --test pipeline random_pipelines

python-tests: tools install torch models browser
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not alone" tests
	$(BIN)/python -m pytest -q -m alone tests

fuzz-judge:
	STREAMSAN_RANDOM_PROGRAMS=$(N) STREAMSAN_RANDOM_SEED=$(SEED) cargo test --release -p streamsan-check --test random -- --nocapture

clean:
	rm -rf target $(VENV) build dist python/streamsan/lib
