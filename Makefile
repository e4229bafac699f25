# Everything on a fresh machine with Python 3.11 or newer, make and git.

PYTHON ?= python3
PYTEST = .venv/bin/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder
# Percent of the lines that the tests of `make test` have to reach.
FLOOR = 94

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help score test lint suite test-thorough test-browser test-space coverage sweep test-compat benchmark clean

help:
	@echo 'make score        score the built-in sample and print its table (sets up .venv)'
	@echo 'make test         lint and test (sets up .venv; minutes)'
	@echo 'make test-thorough test whole programs and every combination of cases (more minutes)'
	@echo 'make coverage     test, and say which lines no test reaches'
	@echo 'make test-browser test the page in a real browser (needs chromium and chromium-driver)'
	@echo 'make test-space   test the metric'\''s Space in a real browser (likewise; sets up .venv-space)'
	@echo 'make sweep        score every text architecture of transformers against its own forward pass (minutes)'
	@echo 'make test-compat  test data and metric with the oldest datasets supported (sets up .venv-compat)'
	@echo 'make benchmark    measure the speed, against others and against the machine (sets up .venv-benchmark)'
	@echo 'make clean        remove what these made'
	@echo 'Another Python: make PYTHON=python3.12 …'

score: .venv/installed
	.venv/bin/stereoset score --sample --output-dir runs/sample

test: lint suite

lint: .venv/installed
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

suite: .venv/installed
	$(PYTEST) -m 'not thorough'

test-thorough: .venv/installed
	$(PYTEST) -m thorough

coverage: .venv/installed
	$(PYTEST) -m 'not thorough' --cov --cov-fail-under $(FLOOR)

sweep: .venv/installed
	OMP_NUM_THREADS=1 .venv/bin/python -m tests.sweep --page stereoset_scoring/ARCHITECTURES.md

# The browser is the distribution's: apt-get install chromium chromium-driver. Pages are of 100 runs, and figures printed.
test-browser: .venv/installed
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[browser]'
	STEREOSET_PAGE_RUNS=100 .venv/bin/python -m pytest -rs -s tests/report/test_browser.py

# gradio wants an older pillow than matplotlib has here, so the Space has an environment of its own.
test-space: .venv-space/installed
	.venv-space/bin/python -m pytest -rs tests/metric/test_space_in_browser.py

test-compat: .venv-compat/installed
	.venv-compat/bin/python -m pytest tests/dataset tests/metric

benchmark: .venv-benchmark/installed
	.venv-benchmark/bin/python benchmarks/run.py

clean:
	rm -rf .venv .venv-compat .venv-space .venv-benchmark build runs *.egg-info .coverage* .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are newer than what the environments were made from.
.venv/installed: REQUIREMENTS = --editable '.[scoring,training,test]'
.venv/installed: CONSTRAINTS = constraints.txt
.venv-compat/installed: REQUIREMENTS = --editable . pytest hypothesis
.venv-compat/installed: CONSTRAINTS = constraints-compat.txt
.venv-space/installed: REQUIREMENTS = --editable '.[space]' pytest selenium
.venv-space/installed: CONSTRAINTS = constraints-space.txt
.venv-benchmark/installed: REQUIREMENTS = --editable '.[scoring]' --requirement benchmarks/requirements.txt
.venv-benchmark/installed: CONSTRAINTS = constraints.txt
.venv/installed: constraints.txt
.venv-compat/installed: constraints-compat.txt
.venv-space/installed: constraints-space.txt
.venv-benchmark/installed: constraints.txt benchmarks/requirements.txt
.venv/installed .venv-compat/installed .venv-space/installed .venv-benchmark/installed: setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo '$(PYTHON) is missing or older than 3.11: name another one, as in make PYTHON=python3.12.' >&2; exit 1; }
	@echo 'Installing into $(@D); the first time takes minutes.'
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) $(REQUIREMENTS)
	@touch $@
