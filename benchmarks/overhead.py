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
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Suite, expand, identified
from bench_mtl.engine.suite_file import parse_suite
from bench_mtl.results import Store
from bench_mtl.runner import Executor, InlineExecutor, LocalExecutor, Setting, run_cases
from bench_mtl.validation.doctor import PROBES
from benchmarks.__main__ import bar_table
from benchmarks.bars import Bar

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


TINY = """
name = "boundary"
targets = [1e-6]
repetitions = {repetitions}
limits = {{ seconds = 20.0, iterations = 1 }}

[[problems]]
name = "sparse_low_rank"
data = {{ name = "synthetic_sparse_low_rank", tasks = 6, features = 10, examples = 12, rank = 2, zero_features = 3, zero_tasks = 1 }}
parameters = {{ penalty = 1.0, radius = 5.0 }}

[[solvers]]
name = "{solver}"
"""


def tiny(solver: str, repetitions: int) -> Suite:
    """A suite of runs that take one step on a small problem each."""
    text = TINY.format(solver=solver, repetitions=repetitions)
    return parse_suite(tomllib.loads(text), text)


def suite(*, problems: int = 1, seeds: int = 1, solvers: int = 1, repetitions: int = 1, samples: int = 1) -> Suite:
    """A suite of problems x seeds x solvers x repetitions runs of so many samples each."""
    text = SUITE.format(
        repetitions=repetitions,
        seeds=list(range(seeds)),
        samples=samples,
        numbers=list(range(solvers)),
        problems="".join(PROBLEM.format(number=k, examples=2 + k) for k in range(problems)),
    )
    return parse_suite(tomllib.loads(text), text)


@click.command(help=__doc__)
@click.option("--out", type=click.Path(path_type=Path), default=Path("results/bench"), show_default=True, help="The folder to write to.")
@click.option("--scale", type=float, default=1.0, show_default=True, help="Share of the cases and samples of the two large results.")
def main(out: Path, scale: float) -> None:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        found += small(Path(folder))
        found += large(Path(folder), scale)
        found += published(Path(folder))
    out.mkdir(parents=True, exist_ok=True)
    (out / "overhead.json").write_text(json.dumps([bar.as_table() for bar in found], indent=1) + "\n", encoding="utf-8")
    click.echo("\n" + bar_table(found, "simple"))
    click.echo(f"\nwritten: {out / 'overhead.json'}")


def small(folder: Path) -> list[Bar]:
    """Milliseconds a run and a sample, and of the command line."""
    setting = Setting(plugins=PROBES)
    inline = seconds_a_run(folder, suite(repetitions=1000), InlineExecutor(setting))
    sampled = seconds_a_run(folder, suite(repetitions=50, samples=400), InlineExecutor(setting))
    isolated = seconds_a_run(folder, suite(repetitions=300), LocalExecutor(setting))
    inside, apart = (seconds_a_run(folder, tiny("projected_gradient", 300), kind(setting)) for kind in (InlineExecutor, LocalExecutor))
    far = seconds_a_run(folder, suite(repetitions=50, samples=400), LocalExecutor(setting))
    helped = statistics.median(elapsed(["--help"])[0] for _ in range(5))
    return [
        Bar("a run in this process, ms", 1e3 * inline, 1.0, False, 1000),
        Bar("a sampled point in this process, ms", 1e3 * (sampled - inline) / 399, 0.2, False, 50),
        Bar("what the boundary costs a run of a solver of the package, ms", 1e3 * (apart - inside), 8.0, False, 300),
        Bar("and one of a plug-in, ms", 1e3 * (isolated - inline), 8.0, False, 300),
        Bar("a sampled point of an isolated run, ms", 1e3 * (far - isolated) / 399, None, False, 50),
        Bar("bench-mtl --help, s", helped, 0.3, False, 5),
    ]


def large(folder: Path, scale: float) -> list[Bar]:
    """Seconds to recognise a finished suite of 10,000 cases, and to open, resume and report 1,000,000 sampled points."""
    many = suite(problems=10, seeds=10, solvers=10, repetitions=max(1, round(10 * scale)))
    cases = fill(folder / "many", many)
    report(folder / "many")
    recognised = statistics.median(elapsed(again(folder / "many", many))[0] for _ in range(3))
    deep = suite(problems=5, seeds=5, solvers=10, repetitions=max(1, round(10 * scale)), samples=400)
    runs = fill(folder / "deep", deep)
    resumed, memory = elapsed(again(folder / "deep", deep))
    points = f"{runs * 400} points of {runs} runs"
    return [
        Bar(f"a finished suite of {cases} cases is recognised, s", recognised, 2.0, False, 3),
        Bar("a million sampled points opened, resumed and reported, s", resumed, 30.0, False, 1, points),
        Bar("the same, GiB", memory, 2.0, False, 1, points),
    ]


def published(folder: Path) -> list[Bar]:
    """Seconds, memory and size of the report of 2,000 runs with 200,000 sampled points, in all its forms."""
    runs = fill(folder / "wide", suite(problems=20, seeds=2, solvers=10, repetitions=5, samples=100))
    seconds, memory = elapsed(["report", str(folder / "wide")])
    points = f"{runs * 100} points of {runs} runs"
    return [
        Bar("a report in all its forms, s", seconds, 15.0, False, 1, points),
        Bar("the same, GiB", memory, 1.0, False, 1, points),
        Bar("its HTML page, MiB", (folder / "wide" / "report.html").stat().st_size / 2**20, 6.0, False, 1, points),
    ]


def seconds_a_run(folder: Path, of: Suite, executor: Executor) -> float:
    """Seconds from the row of the first run, when all is warm, to that of the last one, a run."""
    ends: list[float] = []
    with tempfile.TemporaryDirectory(dir=folder) as place:
        run_suite(Path(place) / "results", of, executor, lambda *_: ends.append(time.perf_counter()))
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def fill(folder: Path, of: Suite) -> int:
    """Run all of a suite in this process; returns how many runs that were."""
    return run_suite(folder, of, InlineExecutor(Setting(plugins=PROBES)), lambda *_: None)


def run_suite(folder: Path, of: Suite, executor: Executor, on_outcome: Callable[..., None]) -> int:
    cases = identified(expand(of, load_registry(PROBES)), None)
    with Store.create(folder, of) as store, executor:
        run_cases(store.plan(cases), store, executor=executor, on_outcome=on_outcome)
    return len(cases)


def report(folder: Path) -> None:
    from bench_mtl.core.threads import available_processors
    from bench_mtl.report import write_and_sum_up

    write_and_sum_up(folder, processes=available_processors())


def again(folder: Path, of: Suite) -> list[str]:
    """The arguments that run a suite again."""
    file = folder.with_suffix(".toml")
    file.write_text(of.text, encoding="utf-8")
    return ["run", str(file), "--plugins", str(PROBES), "--out", str(folder)]


def elapsed(arguments: Sequence[str]) -> tuple[float, float]:
    """Seconds and peak memory in GiB of a bench-mtl command, as a whole process."""
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
