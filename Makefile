# The project's verbs. Each sets up what it needs in .venv; nothing is installed elsewhere.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export HF_HUB_DISABLE_TELEMETRY := 1
export TOKENIZERS_PARALLELISM ?= true

.PHONY: help demo test fuzz lint bench bench-gpu docs audit clean

help:
	@echo "make demo    adapt the built-in encoder to the standard library's documentation, answer three queries"
	@echo "make test    run the tests"
	@echo "make fuzz    run the property tests with new random examples (ROUNDS=3)"
	@echo "make lint    ruff, mypy, import-linter"
	@echo "make bench   compare with sentence-transformers in one process (ratios)"
	@echo "make bench-gpu  the same on a GPU: training, encoding, every method, loss curves"
	@echo "make audit   known vulnerabilities (pip-audit, needs a network) and licences of the pinned packages"
	@echo "make docs    check the pages and build the site into site/, without a network"

$(VENV)/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/dev: $(VENV)/core
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(VENV)/docs: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

demo: $(VENV)/core
	$(BIN)/python -m isotrope.demo

test: $(VENV)/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile tests

# Twenty times the examples of `make test`, drawn anew in each round.
ROUNDS ?= 3
fuzz: $(VENV)/dev
	for round in $$(seq $(ROUNDS)); do \
		OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m hypothesis --hypothesis-profile=fuzz tests || exit 1; \
	done

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/dev
	$(BIN)/python benchmarks/encode.py
	$(BIN)/python benchmarks/encode.py --int8
	$(BIN)/python benchmarks/train_step.py

bench-gpu: $(VENV)/dev
	$(BIN)/python benchmarks/gpu.py all

docs: $(VENV)/docs
	$(BIN)/python docs/build.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The site is built: open site/index.html, or serve it for the search: $(BIN)/python -m http.server --directory site"

# Licences need no network. Where pip-audit cannot be installed or cannot reach its data, a sentence says so and it fails.
audit: $(VENV)/docs
	$(BIN)/python docs/licences.py constraints.txt
	$(PYTHON) -m venv $(VENV)/audit
	-$(VENV)/audit/bin/python -m pip install --quiet pip-audit
	$(BIN)/python docs/vulnerabilities.py $(VENV)/audit/bin/pip-audit constraints.txt

clean:
	rm -rf $(VENV) build dist demo runs site
