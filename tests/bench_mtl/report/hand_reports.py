"""Small results folders from runs given as tables; and runs whose report says all that reports can."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench_mtl.core.types import Certificate, Ending, Limits, Record, Rung, Sample, Status, Times
from bench_mtl.engine.suite import Case, Instance, Suite
from bench_mtl.results import Outcome, Store

TARGETS = (1e-2, 1e-4, 1e-6)

TEXT = 'name = "hand"\ndescription = "made by hand"\n# a fence: ```\n'

ENVIRONMENT = {
    "bench_mtl": "0.1.0", "commit": "0123456789ab", "python": "3.11.7", "packages": {"numpy": "2.0", "ecos": None},
    "processor": "a | b", "logical_cores": 4, "memory_gib": 16.0, "system": "Linux x86_64", "threads": 1,
}  # fmt: skip

GOOD = (0.5, 5e-3, 5e-5, 5e-7)


def descent(solver: str, gaps: Sequence[float] = GOOD, *, seconds: float = 0.1, **run: Any) -> dict[str, Any]:
    """Return a run of an iterative solver that proves these gaps, one every so many seconds."""
    samples = [(seconds * i, i, float(i), 1.0, 1.0 - gap, None) for i, gap in enumerate(gaps)]
    return {"solver": solver, "samples": samples, **run}


def ladder(solver: str, gaps: Sequence[float] = GOOD[1:], *, seconds: float = 1.0, **run: Any) -> dict[str, Any]:
    """Return a run of a generic solver that is asked for one tolerance after the other, and proves these gaps."""
    samples = [(seconds * (1 + i), 10, 0.0, 1.0, 1.0 - gap, 10.0 ** -(2 + i)) for i, gap in enumerate(gaps)]
    return {"solver": solver, "family": "conic", "times": {"build": 0.5, "solve": seconds}, "samples": samples, **run}


def timed(solver: str, seconds: float | None, **run: Any) -> dict[str, Any]:
    """Return a run that proves everything after so many seconds, or is stopped if that is None; scs and ecos are generic."""
    asked = 1e-6 if solver in ("scs", "ecos", "peer_celer") else None
    run = {"solver": solver, "times": {"build": 0.1 if asked else 0.0, "solve": seconds or 60.0}, **run}
    if seconds is None:
        return {"status": "timeout", "samples": [(1.0, 1, 1.0, 1.0, 0.2, asked)], **run}
    start = [] if asked else [(0.01, 0, 1.0, 1.0, 0.5, None)]
    return {"samples": [*start, (seconds, 9, 9.0, 1.0, 1.0, asked)], **run}


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
            "bounded", "scs", _answers((1e-3, 3.0, 5e-3)), "timeout", reason=timeout, limit=60.0, times={"setup": 0.5, "solve": 46.5},
            rungs=[(1e-3, 3.0, Ending.ANSWERED), (1e-6, 47.0, Ending.TIME_LIMIT)],
        ),
        run_of("bounded", "ecos", [], "timeout", reason=timeout, times={"build": 0.1, "solve": 59.9}, rungs=[(1e-3, 59.9, Ending.KILLED)]),
        run_of("unbounded", "pg", iterative(0.3)),
        run_of("unbounded", "scs", _answers((1e-3, 2.0, 0.2)), "inaccurate", reason="ended above | the target", times={"solve": 2.0}),
        run_of("unbounded", "ecos", [], "crashed", reason="its process died"),
        run_of("alone", "pg", iterative(0.2)),
        run_of("alone", "cg", iterative(0.4)),
        run_of("alone", "ecos", [], "skipped", reason="no form"),
        run_of("hard", "pg", iterative(60.0, steps=3), "timeout", reason=timeout, times={"solve": 60.1}),
        run_of("hard", "scs", [], "timeout", reason=timeout, times={"build": 0.1}, rungs=[(1e-3, 60.2, Ending.KILLED)]),
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
    label, solver = run.get("problem", "lasso"), run["solver"]
    data, parameters = run.get("data", {"name": "synthetic"}), {"radius": run.get("radius", radius)}
    instance = Instance("whole" if label in WHOLE else "family", label, data, parameters, run.get("seed"))
    limits, options = Limits(seconds=run.get("limit", 60.0)), {"number": number}  # no two cases may be the same
    target, repetition = run.get("target", TARGETS[-1]), run.get("repetition", 0)
    return Case(instance, run.get("family", solver), solver.removeprefix("peer_"), options, target, limits, 1, repetition)


def _sample(
    seconds: float, step: int, passes: float, primal: float, dual: float, asked: float | None, *measures: dict[str, float]
) -> Sample:  # fmt: skip
    return Sample(seconds, step, passes, Certificate(primal, dual, 0.0), asked, tuple(dict(*measures).items()))


def _record(run: dict[str, Any]) -> Record:
    samples = tuple(each if isinstance(each, Sample) else _sample(*each) for each in run.get("samples", ()))
    spent = run.get("limit", 60.0) if run.get("status") == "timeout" else samples[-1].seconds if samples else 0.0
    build = 0.2 if any(sample.asked is not None for sample in samples) else 0.0
    times = run.get("times", {"build": build, "solve": spent or 0.0, "certify": 0.5 if samples else 0.0})
    rungs = tuple(Rung(asked, seconds, ending) for asked, seconds, ending in run.get("rungs", ()))
    status, reason, info = Status(run.get("status", "verified")), run.get("reason", "as it is"), tuple(run.get("info", {}).items())
    return Record(status, reason, samples, Times(**times), info=info, rungs=rungs, places=run.get("places", ()))


def stored(folder: Path, runs: Sequence[dict[str, Any]], environments: int = 1) -> Path:
    """Write the results of runs given as tables; a sample is (seconds, step, passes, primal, dual, asked), and perhaps its measures."""
    suite = Suite("hand", "made by hand", TARGETS, (), (), Limits(), 1, (0,), 1, TEXT)
    with Store.create(folder, suite) as store:
        keys = [store.add_environment({**ENVIRONMENT, "threads": 1 + i}) for i in range(environments)]
        problems = list(dict.fromkeys(run.get("problem", "lasso") for run in runs))
        for number, run in enumerate(runs):
            case = _case(run, 1.0 + problems.index(run.get("problem", "lasso")), number)
            more = {"disturbances": tuple(run.get("disturbances", ()))}
            outcome = Outcome(_record(run), {"n": 7, "d": 3, "m": 2}, tuple(run.get("notes", ())), "1.0", **more)
            store.add(case, outcome, keys[number % environments])
    return folder


def audited(folder: Path, of: list[dict[str, Any]] | None = None) -> Path:
    """Write the results of `runs`, or of these, and their report.md."""
    from bench_mtl.report.write import write_report

    write_report(stored(folder, runs() if of is None else of), formats=("md",))
    return folder
