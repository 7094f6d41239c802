"""What the framework itself costs: `python -m benchmarks.overhead`."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Suite, expand, identified
from bench_mtl.engine.suite_file import parse_suite
from bench_mtl.results import Store
from bench_mtl.runner import Executor, InlineExecutor, LocalExecutor, Setting, run_cases
from bench_mtl.validation.doctor import PROBES
from benchmarks.timing import Bar, bar_table

SUITE = """
name = "overhead"
targets = [1e-3, 1e-5, 1e-7]
repetitions = {repetitions}
seeds = {seeds}

{problems}

[[solvers]]
name = "idle"
options = {{ samples = {samples} }}
grid = {{ number = {numbers} }}
"""

PROBLEM = """
[[problems]]
name = "origin"
label = "origin {number}"
data = {{ name = "synthetic_l1inf", tasks = 1, features = 2, examples = {examples} }}
"""

#: Runs of a solver of the package that take one step on a small problem each.
TINY = """
name = "boundary"
targets = [1e-6]
repetitions = 300
limits = { seconds = 20.0, iterations = 1 }

[[problems]]
name = "sparse_low_rank"
data = { name = "synthetic_sparse_low_rank", tasks = 6, features = 10, examples = 12, rank = 2, zero_features = 3, zero_tasks = 1 }
parameters = { penalty = 1.0, radius = 5.0 }

[[solvers]]
name = "projected_gradient"
"""

SETTING = Setting(plugins=PROBES)


def suite(*, problems: int = 1, seeds: int = 1, solvers: int = 1, repetitions: int = 1, samples: int = 1) -> Suite:
    """Return a suite of problems x seeds x solvers x repetitions runs of so many samples each."""
    tables = "".join(PROBLEM.format(number=k, examples=2 + k) for k in range(problems))
    numbers = {"seeds": list(range(seeds)), "numbers": list(range(solvers)), "repetitions": repetitions, "samples": samples}
    text = SUITE.format(problems=tables, **numbers)
    return parse_suite(tomllib.loads(text), text)


@click.command(help=__doc__)
@click.option("--out", type=click.Path(path_type=Path), default=Path("results/bench"), show_default=True, help="The folder to write to.")
@click.option("--scale", type=float, default=1.0, show_default=True, help="Share of the cases and samples of the two large results.")
def main(out: Path, scale: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = [bar for bars in (small(Path(folder)), large(Path(folder), scale)) for bar in bars]
    out.mkdir(parents=True, exist_ok=True)
    (out / "overhead.json").write_text(json.dumps([bar.as_table() for bar in found], indent=1) + "\n", encoding="utf-8")
    click.echo("\n" + bar_table(found, "simple"))
    click.echo(f"\nwritten: {out / 'overhead.json'}")


def small(folder: Path) -> Iterator[Bar]:
    """Yield milliseconds a run and a sample, and of the command line."""
    tiny, short, long = parse_suite(tomllib.loads(TINY), TINY), suite(repetitions=300), suite(repetitions=50, samples=400)

    def milliseconds(of: Suite, kind: Callable[[Setting], Executor]) -> float:
        """Of a run, from the row of the first one, when all is warm, to that of the last one."""
        ends: list[float] = []
        with tempfile.TemporaryDirectory(dir=folder) as place:
            run_suite(Path(place) / "results", of, kind(SETTING), lambda *_: ends.append(time.perf_counter()))
        return 1e3 * (ends[-1] - ends[0]) / (len(ends) - 1)

    inline, isolated = milliseconds(suite(repetitions=1000), InlineExecutor), milliseconds(short, LocalExecutor)
    yield Bar("a run in this process, ms", inline, 1.0)
    yield Bar("a sampled point in this process, ms", (milliseconds(long, InlineExecutor) - inline) / 399, 0.2)
    boundary = milliseconds(tiny, LocalExecutor) - milliseconds(tiny, InlineExecutor)
    yield Bar("what the boundary costs a run of a solver of the package, ms", boundary, 8.0)
    yield Bar("and one of a plug-in, ms", isolated - inline, 8.0)
    yield Bar("a sampled point of an isolated run, ms", (milliseconds(long, LocalExecutor) - isolated) / 399, None)
    yield Bar("bench-mtl --help, s", statistics.median(elapsed("--help")[0] for _ in range(5)), 0.3)


def large(folder: Path, scale: float) -> Iterator[Bar]:
    """Yield what a finished suite of 10,000 cases costs, 1,000,000 sampled points that are opened, resumed and reported, and a report."""
    repetitions = max(1, round(10 * scale))
    again, cases = filled(folder / "many", suite(problems=10, seeds=10, solvers=10, repetitions=repetitions))
    elapsed(*again)
    recognised = statistics.median(elapsed(*again)[0] for _ in range(3))
    yield Bar(f"a finished suite of {cases} cases is recognised, s", recognised, 2.0)
    again, runs = filled(folder / "deep", suite(problems=5, seeds=5, solvers=10, repetitions=repetitions, samples=400))
    seconds, memory = elapsed(*again)
    points = f"{runs * 400} points of {runs} runs"
    yield Bar("a million sampled points opened, resumed and reported, s", seconds, 30.0, detail=points)
    yield Bar("the same, GiB", memory, 2.0, detail=points)
    _, runs = filled(folder / "wide", suite(problems=20, seeds=2, solvers=10, repetitions=5, samples=100))
    seconds, memory = elapsed("report", str(folder / "wide"))
    points = f"{runs * 100} points of {runs} runs"
    yield Bar("a report in all its forms, s", seconds, 15.0, detail=points)
    yield Bar("the same, GiB", memory, 1.0, detail=points)
    yield Bar("its HTML page, MiB", (folder / "wide" / "report.html").stat().st_size / 2**20, 6.0, detail=points)


def filled(folder: Path, of: Suite) -> tuple[list[str], int]:
    """Run all of a suite in this process, and return the arguments that run it again, and how many runs there are."""
    file = folder.with_suffix(".toml")
    file.write_text(of.text, encoding="utf-8")
    count = run_suite(folder, of, InlineExecutor(SETTING), lambda *_: None)
    return ["run", str(file), "--plugins", str(PROBES), "--out", str(folder)], count


def run_suite(folder: Path, of: Suite, executor: Executor, on_outcome: Callable[..., None]) -> int:
    cases = identified(expand(of, load_registry(PROBES)), None)
    with Store.create(folder, of) as store, executor:
        run_cases(store.plan(cases), store, executor=executor, on_outcome=on_outcome)
    return len(cases)


def elapsed(*arguments: str) -> tuple[float, float]:
    """Return seconds and peak memory in GiB of a bench-mtl command, as a whole process."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "bench_mtl", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"bench-mtl {' '.join(arguments)} ended with {process.returncode}")
    return seconds, usage.ru_maxrss / 2**20


if __name__ == "__main__":
    main()
