"""A small results folder whose report says all that reports can: wins, bounds, walkovers, failures, intervals, losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench_mtl.core.types import Certificate, Ending, Limits, Record, Rung, Sample, Status, Times
from bench_mtl.engine.suite import Case, Instance, Suite
from bench_mtl.results import Outcome, Store

TARGETS = (1e-2, 1e-4, 1e-6)

TEXT = 'name = "audited"\ndescription = "made by hand"\n'

ENVIRONMENT = {
    "bench_mtl": "0.1.0", "commit": "0123456789ab", "python": "3.11.7", "packages": {"numpy": "2.0", "scs": "3.2"},
    "processor": "quick one", "logical_cores": 4, "memory_gib": 16.0, "system": "Linux x86_64", "threads": 1,
}  # fmt: skip

#: Problems of one family, on which both kinds of solvers get there; a ratio over the others would be of bounds on both sides.
WHOLE = ("measured", "level", "lost", "seeds")

#: Relative gaps that are proven at these shares of a run's seconds.
_STEPS = ((0.0, 0.5), (0.5, 5e-3), (0.8, 5e-5), (1.0, 5e-7))


def iterative(seconds: float, *, steps: int = 4, optimum: float = 1.0) -> list[Sample]:
    """Return the samples of an iterative solver that would need these seconds to 1e-6, as many of them as there are steps."""
    return [
        Sample(share * seconds, 10 * number, 10.0 * number, Certificate(optimum, optimum - gap * optimum, 0.0))
        for number, (share, gap) in enumerate(_STEPS[:steps])
    ]


def _answers(*answers: tuple[float, float, float]) -> list[Sample]:
    """Of a one-shot solver: the tolerance asked, its seconds, the gap that is proven."""
    return [Sample(seconds, 7, 0.0, Certificate(1.0, 1.0 - gap, 1e-9), asked) for asked, seconds, gap in answers]


def run_of(problem: str, solver: str, samples: list[Sample], status: str = "verified", **more: Any) -> dict[str, Any]:
    """Return a run as a table."""
    return {"problem": problem, "solver": solver, "samples": samples, "status": status, **more}


def runs() -> list[dict[str, Any]]:
    """Return what was run: one problem for every kind of finding."""
    found = []
    for repetition, (ours, theirs) in enumerate([(1.0, 8.0), (1.1, 8.4), (1.2, 9.1)]):
        found.append(run_of("measured", "pg", iterative(ours), repetition=repetition, info={"note": "a remark"}))
        found.append(run_of("measured", "scs", _answers((1e-3, 0.5 * theirs, 5e-3), (1e-6, theirs, 4e-7)), repetition=repetition))
    timeout = "reached the limit of 60 s"
    found += [
        run_of("bounded", "pg", iterative(0.7)),
        run_of(
            "bounded", "scs", _answers((1e-3, 3.0, 5e-3)), "timeout", reason=timeout, limit=60.0, times=Times(setup=0.5, solve=46.5),
            rungs=[(1e-3, 3.0, Ending.ANSWERED), (1e-6, 47.0, Ending.TIME_LIMIT)],
        ),
        run_of("bounded", "ecos", [], "timeout", reason=timeout, times=Times(build=0.1, solve=59.9), rungs=[(1e-3, 59.9, Ending.KILLED)]),
        run_of("unbounded", "pg", iterative(0.3)),
        run_of("unbounded", "scs", _answers((1e-3, 2.0, 0.2)), "inaccurate", reason="ended above | the target", times=Times(solve=2.0)),
        run_of("unbounded", "ecos", [], "crashed", reason="its process died"),
        run_of("alone", "pg", iterative(0.2)),
        run_of("alone", "cg", iterative(0.4)),
        run_of("alone", "ecos", [], "skipped", reason="no form"),
        run_of("hard", "pg", iterative(60.0, steps=3), "timeout", reason=timeout, times=Times(solve=60.1)),
        run_of("hard", "scs", [], "timeout", reason=timeout, times=Times(build=0.1), rungs=[(1e-3, 60.2, Ending.KILLED)]),
        run_of("level", "pg", iterative(1.00, optimum=2.0)),
        run_of("level", "peer_celer", [Sample(1.05, 5, 0.0, Certificate(2.0, 2.0 - 2e-7, 0.0), 1e-6)]),
        run_of("lost", "pg", iterative(6.0)),
        run_of("lost", "scs", _answers((1e-6, 2.0, 3e-7))),
    ]  # fmt: skip
    for seed, ours, theirs in ((0, 0.2, 4.0), (1, 0.3, 5.0)):
        found.append(run_of("seeds", "pg", iterative(ours), seed=seed))
        found.append(run_of("seeds", "scs", _answers((1e-6, theirs, 3e-7)), seed=seed))
    return found


def _case(run: dict[str, Any], radius: float, number: int) -> Case:
    family = "whole" if run["problem"] in WHOLE else "family"
    parameters = {"radius": run.get("radius", radius)}
    instance = Instance(family, run["problem"], run.get("data", {"name": "synthetic"}), parameters, run.get("seed", 0))
    limits = Limits(seconds=run.get("limit", 60.0))
    label, options, target = run["solver"].removeprefix("peer_"), {"number": number}, run.get("target", TARGETS[-1])
    return Case(instance, run["solver"], label, options, target, limits, 1, run.get("repetition", 0))


def _record(run: dict[str, Any]) -> Record:
    samples = tuple(run["samples"])
    build = 0.2 if any(sample.asked for sample in samples) else 0.0
    times = run.get("times", Times(build=build, solve=samples[-1].seconds if samples else 0.0, certify=0.1))
    rungs = tuple(Rung(asked, seconds, ending) for asked, seconds, ending in run.get("rungs", ()))
    info = tuple(run.get("info", {}).items())
    places = run.get("places", ())
    return Record(Status(run["status"]), run.get("reason", "as it is"), samples, times, info=info, rungs=rungs, places=places)


def audited(folder: Path, given: list[dict[str, Any]] | None = None) -> Path:
    """Write the results of `runs`, or of those given, and their report.md."""
    from bench_mtl.report.write import write_report

    write_report(stored(folder, runs() if given is None else given), formats=("md",))
    return folder


def stored(folder: Path, given: list[dict[str, Any]]) -> Path:
    """Write the results of these runs."""
    suite = Suite("audited", "made by hand", TARGETS, (), (), Limits(), 1, (0,), 1, TEXT)
    with Store.create(folder, suite) as store:
        environment = store.add_environment(ENVIRONMENT)
        problems = list(dict.fromkeys(run["problem"] for run in given))
        for number, run in enumerate(given):
            radius = 1.0 + problems.index(run["problem"])
            store.add(_case(run, radius, number), Outcome(_record(run), {"n": 7, "d": 3, "m": 2}, (), "1.0"), environment)
    return folder
