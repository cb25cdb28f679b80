# Every target does its own set-up; `make demo` and `make test` are all a newcomer needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup

.PHONY: demo test fresh thorough test-real test-torque test-pbs test-flux test-pythons check static needs bench docs pictures golden kills search-campaign campaign \
	frameworks beside parsers sanitize lab clean

demo: $(VENV)/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh demo-output

test: needs $(VENV)/.with-torch $(VENV)-frameworks/.installed $(VENV)-beside/.installed static
	$(BIN)/python -m tests.suite

# The two commands of the README, in a clone of HEAD on a Debian that has nothing else; needs root on Debian.
fresh:
	tests/bare/in-bare-debian sh -c "make demo && make test"

check: static
	$(PYTEST) -m "not slow"

static: $(VENV)/.installed
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vermin --quiet --no-tips --violations -t=3.6- src/rabaska/node
	$(BIN)/vermin --quiet --no-tips --violations -t=3.8- src/rabaska/training

# What the tests need from the system, all of it before the first of them.
needs:
	@$(PYTHON) -m tests.needs

# What promises to run under every Python, under each that is here.
test-pythons: $(VENV)/.with-torch
	$(PYTEST) -m pythons

# All of them: also those that prove at length what shorter ones prove already.
thorough: $(VENV)/.with-torch
	$(PYTEST) --thorough

# Only the tests on a real Slurm; none of them may be missing.
test-real: $(VENV)/.with-torch
	CI=true $(PYTEST) -m real --at-least 40

# The journeys on a Torque that somebody installed: Debian has none.
test-torque: $(VENV)/.installed
	@$(BIN)/python -m tests.pbs_family.labs torque
	BATCH_SYSTEM=torque $(BIN)/python -m pytest tests/pbs_family

# The same on an OpenPBS.
test-pbs: $(VENV)/.with-torch
	@$(BIN)/python -m tests.pbs_family.labs pbs
	BATCH_SYSTEM=pbs $(BIN)/python -m pytest tests/pbs_family

# The same on a Flux that is installed, started by the tests.
test-flux: $(VENV)/.installed
	BATCH_SYSTEM=flux $(BIN)/python -m pytest tests/flux

# The long form of a test that the suite runs briefly.
kills: $(VENV)/.installed
	KILLS=$(or $(KILLS),200) $(BIN)/python -m pytest -q -s tests/voyages/test_kill_campaign.py

# A search whose workers, agents and programs are killed, whose files are torn and whose disk is full.
search-campaign: $(VENV)/.installed
	$(BIN)/python -m tests.node.search.campaign --kills $(or $(KILLS),1000) --torn $(or $(TORN),100) --full $(or $(FULL),20)

# Trainings interrupted in every way, compared with one that was not; the last line counts.
campaign: $(VENV)/.with-torch
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.training.exact.campaign --kills $(or $(KILLS),1000)

# The same: a hundred thousand damaged answers for the readers of each scheduler.
parsers: $(VENV)/.installed
	PARSER_TEXTS=$(or $(TEXTS),100000) $(PYTEST) -q --timeout 3600 tests/schedulers -k "damage or garbled"

# Damaged indexes and shards for the compiled part, under address and undefined-behaviour sanitizers.
sanitize: $(VENV)/.installed
	$(BIN)/python tests/node/native/sanitized.py $(or $(DAMAGES),100000)

# Lightning, Transformers and Keras, apart from our own environment: they bring much with them.
frameworks: $(VENV)-frameworks/.installed $(VENV)/.installed
	$(BIN)/python -m pytest tests/training/test_frameworks.py

beside: $(VENV)-beside/.installed $(VENV)/.installed
	$(BIN)/python -m pytest tests/voyages/test_beside.py tests/remote/test_web_gate.py

bench: $(VENV)/.with-torch
	$(BIN)/python benchmarks/all.py $(if $(QUICK),--quick)

docs: $(VENV)/.installed
	$(BIN)/python docs/generate.py

# What the pages show: the terminal, and pages taken of real runs by Debian's Chromium.
pictures: $(VENV)/.installed
	$(BIN)/python docs/draw_screens.py
	$(BIN)/python docs/make_pictures.py

# The job scripts of every built-in profile, which a test compares; read what changed.
golden: $(VENV)/.installed
	$(BIN)/python tests/golden/render.py

$(VENV)/.installed: pyproject.toml $(wildcard native/*)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

# The CPU build is enough for the tests; a plain `torch` would bring gigabytes of CUDA.
$(VENV)/.with-torch: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group torch
	@touch $@

$(VENV)-frameworks/.installed:
	$(PYTHON) -m venv $(VENV)-frameworks
	$(VENV)-frameworks/bin/python -m pip install --quiet torch==2.13.0 numpy
	$(VENV)-frameworks/bin/python -m pip install --quiet lightning==2.6.6 "transformers[torch]==5.22.2" keras==3.15.1
	@touch $@

# TensorBoard and a Jupyter server, as a project would have them; the pages of JupyterLab are not needed.
$(VENV)-beside/.installed:
	$(PYTHON) -m venv $(VENV)-beside
	$(VENV)-beside/bin/python -m pip install --quiet tensorboard==2.21.0 jupyter-server==2.21.1 ipykernel
	@touch $@

# A Slurm cluster to try things on, until Ctrl-C; needs root on Debian. `make lab LAB="--warp 60"`
lab:
	$(PYTHON) -m tests.lab $(LAB)

clean:
	rm -rf $(VENV) demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis
