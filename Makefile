# PYTHON=/path/to/python3.12 make demo   chooses the interpreter; otherwise the first one >= 3.11 is taken.

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
RUNTIME := .venv/runtime.stamp
DEV := .venv/dev.stamp
LOCK = $(BIN)/uv pip compile pyproject.toml --group build --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' --quiet $(LOCKFLAGS)

.PHONY: help demo test faults check docs bench draws experiment audit scale wheel experiments-networks lock clean
.DELETE_ON_ERROR:

help:  ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUNTIME)  ## Set up .venv and go the whole way on invented patients: study, ledger, release, report.
	$(BIN)/discreet demo

test: $(DEV)  ## Run the tests.
	@$(BIN)/python -m pytest -n auto

faults: $(DEV)  ## Kill 300 releases and 300 spends at random instants, on SQLite and on PostgreSQL.
	DISCREET_KILLS=300 $(BIN)/python -m pytest -m slow -s tests/faults

check: $(DEV)  ## Format, lint, types, rooms, and every example of README and docs.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest tests/docs

docs: $(DEV)  ## Build the documentation into site/.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(DEV)  ## Compare with peers, as ratios in one run.
	$(BIN)/python benchmarks/privacy.py
	$(BIN)/python benchmarks/bayesian.py
	$(BIN)/python benchmarks/dp_mcmc.py

experiment: $(DEV)  ## Rerun one and compare with what is expected: make experiment NAME=dp_mcmc. Some need DISCREET_DATA.
	$(BIN)/python experiments/$(NAME)/run.py

draws: $(DEV)  ## Time one private draw beside NUTS; DISCREET_DATA names the data sets; 20 minutes.
	$(BIN)/python benchmarks/exact_sampler.py
	$(BIN)/python benchmarks/one_posterior_sample.py

audit: $(DEV)  ## Attack every mechanism, on 2 processes; writes benchmarks/results/audit.json.
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/audit.py

scale: $(DEV)  ## Release 1e8 invented rows in less than 2 GiB; needs 4 GB of disk in TMPDIR, and minutes.
	$(BIN)/python benchmarks/scale.py --rows 1e8 --out benchmarks/results/scale.json

wheel: $(DEV)  ## Install the wheel into an empty environment and run the demo there; needs a registry.
	DISCREET_WHEEL=1 $(BIN)/python -m pytest -s -n 0 tests/test_installed.py

experiments-networks: $(DEV)  ## Tables and figures of paper N, every cell; hours. DISCREET_DATA says where MNIST is.
	$(BIN)/python experiments/bayesian_networks/run.py --full

lock: $(DEV)  ## Resolve requirements/*.txt again; LOCKFLAGS=--upgrade takes the newest of everything.
	$(LOCK) --output-file requirements/runtime.txt
	$(LOCK) --extra dev --extra docs --constraints requirements/runtime.txt --output-file requirements/dev.txt

clean:  ## Remove everything that make made.
	rm -rf .venv build dist site .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@for python in $${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "$$python -m venv .venv"; exec "$$python" -m venv .venv; \
		fi; \
	done; \
	echo "No Python >= 3.11 among: $${PYTHON:-python3, python3.14 ... python3.11}." \
		"Install one, or name it: PYTHON=/path/to/python make $(MAKECMDGOALS)" >&2; exit 1

$(RUNTIME): requirements/runtime.txt pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --require-hashes -r requirements/runtime.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): requirements/dev.txt $(RUNTIME)
	$(PIP) install --quiet --require-hashes -r requirements/dev.txt
	@touch $@
