# make lab · make test · test-solutions · test-rest · test-answers · test-browser · test-cluster · test-long · refresh
PYTHON      ?= python3
TORCH_INDEX ?=
LAB_ARGS    ?=
# JupyterLab refuses to run as root, the only user that many containers have, unless told.
AS_ROOT     := $(if $(filter 0,$(shell id -u)),--allow-root)
VENV        := .venv
BIN         := $(VENV)/bin
STAMP       := $(VENV)/.installed

.PHONY: lab test test-solutions test-rest test-answers test-browser test-cluster test-long refresh labs lint .venv

.venv: $(STAMP)

# Files in .venv are made once; a change of requirements.txt or pyproject.toml makes pip look again.
$(STAMP): requirements.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; v = sys.version_info[:2]; \
	    sys.exit(0 if (3, 11) <= v <= (3, 13) else \
	    f"this is Python {v[0]}.{v[1]}; the suite needs 3.11 to 3.13: name one, as in make lab PYTHON=python3.13")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(BIN)/python -m pip install --index-url $(TORCH_INDEX) "$$(grep '^torch==' requirements.txt)")
	$(BIN)/python -m pip install -r requirements.txt
	touch $@

lab: $(STAMP)
	$(BIN)/python -m utils doctor --quiet
	$(BIN)/python -m jupyter lab --ServerApp.root_dir="$(CURDIR)" $(AS_ROOT) $(LAB_ARGS) notebooks/00_ranks_and_collectives.ipynb

test: $(STAMP)
	$(BIN)/python -m pytest -m "not (rest or answers or long or browser or cluster)" tests notebooks

test-solutions: $(STAMP)
	$(BIN)/python -m pytest solutions

test-rest: $(STAMP)
	$(BIN)/python -m pytest -m "rest and not long"

test-answers: $(STAMP)
	$(BIN)/python -m pytest -m "answers and not long" tests/checks

test-browser: $(STAMP)
	$(BIN)/python -m pytest -m "browser and not long"

test-cluster: $(STAMP)
	$(BIN)/python -m pytest -m cluster tests/cluster

test-long: $(STAMP)
	$(BIN)/python -m pytest -m long

refresh: $(STAMP)
	$(BIN)/python -m utils refresh
	$(BIN)/python -m utils build-labs

labs: $(STAMP)
	$(BIN)/python -m utils build-labs

lint: $(STAMP)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
