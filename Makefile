# make demo: install into .venv and run the suite "quick" into results/demo.   make test: lint, types, tests.   Override PYTHON to choose one.
# make wheel: build the wheel, install it as the README says into an environment of its own, and run it there (minutes).
# make portable: the tests marked "numerics" again, as other processors would run them; ALL=1: all numerical tests, under six settings.
# make soak: the long tests, and more examples of the properties (half an hour); SLICE=10: a tenth of them, drawn by the hash of the commit.
# make system: install what a few tests need beyond Python, through apt: Chromium, LaTeX, QSopt_ex. Without them those tests are skipped.
# make docs: run the tutorials, and write the documentation as a site that needs no network, in site/: open site/index.html.
# make bench: time the projections and the framework itself, tables into results/bench (minutes; GRID=quick: under one for the projections).
# make reports: write the published reports in reports/ again, each from its results, in all formats; make reports-kept: what the repository keeps, results at a glance too.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
GRID ?= full
SLICE ?= 100
ALL ?=

# Tests start hundreds of processes, each of which would compile our sources again.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test wheel portable soak lint compiled docs pages boards bench reports reports-kept setup system clean

demo: $(STAMP)
	rm -rf results/demo
	$(BIN)/bench-mtl run quick --out results/demo

test: $(STAMP)
	$(MAKE) --no-print-directory -j 2 lint compiled  # side by side
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow and not tutorials"

wheel: $(STAMP)
	$(BIN)/python .ci/wheel --out dist

portable: $(STAMP)
	$(BIN)/python tests/portable.py $(if $(ALL),--all)

soak: $(STAMP)
	$(BIN)/pytest -n 2 --dist worksteal -m "slow or hypothesis" --hypothesis-profile=soak --slice $(SLICE):$$(git rev-parse HEAD) \
		--ignore tests/bench_mtl/runner
	$(BIN)/pytest -m slow --slice $(SLICE):$$(git rev-parse HEAD) tests/bench_mtl/runner  # which looks at all processes of the machine

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What solvers and projections call, compiled once: otherwise every process of the tests would begin with it. By as many processes as there
# are processors, up to two.
compiled: $(STAMP)
	-$(BIN)/bench-mtl doctor --compile

# Warnings are errors (mkdocs.yml). With --quiet they would be none.
docs: $(STAMP)
	$(BIN)/pytest -n 2 -m tutorials tests/test_docs.py
	$(MAKE) --no-print-directory -j 2 pages boards  # side by side
	cp -R results/boards site/
	$(BIN)/python docs/_mkdocs/check.py site

pages: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

boards: $(STAMP)
	nice -n 19 $(BIN)/bench-mtl publish reports --out results/boards --jobs 2  # the gallery of pages times its solvers

bench: $(STAMP)
	$(BIN)/python -m benchmarks --grid $(GRID) --out results/bench
	$(BIN)/python -m benchmarks.overhead --out results/bench

# What is kept of the published reports: the text and its first figure. Exit code 1: there are failed runs, which the report shows.
reports-kept: $(STAMP)
	for file in reports/*/results.sqlite; do $(BIN)/bench-mtl report $$(dirname $$file) --format md --format cover || test $$? -eq 1 || exit; done
	$(BIN)/python -m papers report reports
	$(BIN)/bench-mtl report reports --index
	$(BIN)/python -m benchmarks.glance --write
	$(BIN)/bench-mtl report reports --check
	$(BIN)/python -m papers report reports --check

# And what is not kept: the pages, the tables as files, the figures.
reports: reports-kept
	for file in reports/*/results.sqlite; do $(BIN)/bench-mtl report $$(dirname $$file) || test $$? -eq 1 || exit; done

setup: $(STAMP)

system:
	.ci/setup-system

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis dist results site
