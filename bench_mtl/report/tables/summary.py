"""How runs ended, what is proven of them and what they took: pure functions from the runs and samples of a store to frames of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bench_mtl.core.types import Status
from bench_mtl.engine.places import place_text
from bench_mtl.engine.proofs import format_gap
from bench_mtl.report.columns import KIND, PROBLEM, SOLVER, STATUS, Column, column_names, count_of, format_target, seconds_of
from bench_mtl.report.tables.instances import run_times, time_to_gap
from bench_mtl.results.frames import GROUP, ONE_SHOT, counting, integers, numbers, status_counts, titled

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.core.types import Place

_TIMES = ("build_seconds", "compile_seconds", "setup_seconds", "solve_seconds", "certify_seconds")

_WORST = ("relative_gap", "infeasibility")

_RUNS = count_of("runs", is_dull_alike=True)
_INFEASIBILITY = Column("infeasibility", form=format_gap)

SUMMARY = [
    PROBLEM, SOLVER, KIND, _RUNS, STATUS, Column("relative_gap", form=format_gap, counted=("proven", "in_full")), _INFEASIBILITY,
    count_of("iterations"), count_of("passes"), seconds_of("seconds_to", "s to", counted=("reached", "runs_to"), each_target=True),
]  # fmt: skip

TIMES = [
    PROBLEM, SOLVER, _RUNS, seconds_of("build_seconds", "Build (s)"), seconds_of("compile_seconds", "Compile (s)"),
    seconds_of("setup_seconds", "Set-up (s)"), seconds_of("solve_seconds", "Solve (s)"),
    seconds_of("certify_seconds", "Certify (s)"), count_of("peak_memory_mib", "Peak memory (MiB)"),
]  # fmt: skip

TOLERANCES = [
    PROBLEM, SOLVER, Column("asked", "Tolerance asked", format_target), count_of("answers"), seconds_of("seconds"),
    count_of("iterations"), Column("relative_gap", form=format_gap), _INFEASIBILITY,
]  # fmt: skip

STATUSES = [SOLVER, KIND, count_of("tried"), *(count_of(str(status)) for status in Status)]

NOT_VERIFIED = [
    PROBLEM, count_of("seed", is_dull_alike=True), count_of("repetition", is_dull_alike=True), SOLVER, STATUS, Column("reason"),
    Column("place"),
]  # fmt: skip

SKIPPED = [Column("reason"), Column("solvers"), count_of("runs"), Column("problems")]


def summary(runs: pd.DataFrame, samples: pd.DataFrame, targets: Iterable[float]) -> pd.DataFrame:
    """Return one row per problem and solver: how its runs ended, and what is proven of them.

    Columns: problem, solver, kind, runs, status (counted), relative_gap and infeasibility (the worst of the group), in_full (how many of
    the runs were not stopped at a looser target than the tightest, which gaps, iterations and passes are of), proven (how many of these
    have any certified point), iterations, passes (medians; missing where unknown), and for every target ``seconds_to_T``,
    ``reached_T`` and ``runs_to_T``, as in `time_to_gap`.
    """
    targets = tuple(targets)
    names = ["relative_gap", "infeasibility", "iterations", "passes"]
    values = runs[[*GROUP, "kind", "status"]].assign(**{name: numbers(runs, name) for name in names}, in_full=counting(runs, min(targets)))
    # A run that is stopped at a looser target says nothing of what its solver can prove.
    values.loc[~values["in_full"], ["relative_gap", "iterations", "passes"]] = float("nan")
    for name in ("iterations", "passes"):
        values[name] = values[name].mask(values["kind"].isin(ONE_SHOT) & (values[name] == 0))  # a generic solver that does not say
    table = values.groupby(GROUP, sort=False).agg(
        kind=("kind", "first"), runs=("in_full", "size"), status=("status", status_counts), relative_gap=("relative_gap", "max"),
        in_full=("in_full", "sum"), proven=("relative_gap", "count"), infeasibility=("infeasibility", "max"),
        iterations=("iterations", "median"), passes=("passes", "median"),
    )  # fmt: skip
    of_targets = time_to_gap(run_times(runs, samples, targets)).set_index(["problem", "solver"])
    for target in targets:
        columns = of_targets.loc[of_targets["target"] == target, ["seconds", "reached", "runs"]]
        table[[f"{name}_{format_target(target)}" for name in ("seconds_to", "reached", "runs_to")]] = columns
    return titled(table)


def times(runs: pd.DataFrame) -> pd.DataFrame:
    """Median seconds by what they were spent on, and the largest peak memory, per problem and solver, of runs that were not skipped.

    In rows of earlier versions a run that was killed has lost all times but `solve`, and does not enter the medians of the others.
    """
    import pandas as pd

    spent = pd.DataFrame({name: numbers(runs, name) for name in _TIMES})
    lost = (spent["build_seconds"] == 0) & (spent["certify_seconds"] == 0)
    spent = spent.mask(lost, spent[["solve_seconds"]].where(spent["solve_seconds"] > 0))
    ran = runs["status"] != Status.SKIPPED
    values = runs[GROUP].assign(runs=ran, **spent, peak_memory_mib=numbers(runs, "peak_memory_mib").where(ran))
    how = {"runs": "sum", **dict.fromkeys(_TIMES, "median"), "peak_memory_mib": "max"}
    return titled(values.groupby(GROUP, sort=False).agg(how))


def tolerances(runs: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """Return what each tolerance asked of a generic solver gave, per problem and solver.

    Columns: problem, solver, asked, answers (how many runs gave a point), seconds and iterations (medians), relative_gap and infeasibility
    (the worst).
    """
    answers = samples[samples["asked_tolerance"].notna()]
    sources = {"asked": "asked_tolerance", "seconds": "seconds", "iterations": "iteration"} | {name: name for name in _WORST}
    measured = answers[["run_id"]].assign(**{name: numbers(answers, source) for name, source in sources.items()})
    measured["iterations"] = measured["iterations"].mask(measured["iterations"] == 0)  # a solver that does not say
    about = runs[["id", *GROUP]].rename(columns={"id": "run_id"})
    how = {"seconds": "median", "iterations": "median", **dict.fromkeys(_WORST, "max")}
    groups = about.merge(measured.assign(answers=1), on="run_id", how="inner", sort=False).groupby([*GROUP, "asked"], sort=False)
    return titled(groups.agg({"answers": "sum", **how}))


def statuses(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per solver: kind, tried (runs that were not skipped), and the count of every status, over all problems."""
    groups = runs.groupby("solver_label", sort=False)
    table = groups["kind"].first().to_frame()
    counts = {str(status): (runs["status"] == status).groupby(runs["solver_label"], sort=False).sum() for status in Status}
    table["tried"] = groups.size() - counts[Status.SKIPPED]
    return table.assign(**counts).reset_index().rename(columns={"solver_label": "solver"})


def not_verified(runs: pd.DataFrame, places: Mapping[int, Sequence[Place]]) -> pd.DataFrame:
    """Return every run that did not end `verified`, with its reason in full: problem, seed, repetition, solver, status, reason.

    Where any of them has places, by the id of the run, there is a column `place` too: file and line where it raised, empty for others.
    """
    columns = {"problem_label": "problem", "seed": "seed", "repetition": "repetition", "solver_label": "solver"}
    others = runs[runs["status"] != Status.VERIFIED]
    failed = others[[*columns, "status", "reason"]].rename(columns=columns)
    texts = [place_text(places.get(run, ())) for run in others["id"]]
    if any(texts):
        failed = failed.assign(place=texts)
    return failed.assign(seed=integers(failed, "seed")).reset_index(drop=True)


def skipped(not_verified: pd.DataFrame) -> pd.DataFrame:
    """Return one row per reason for skipped runs, from `not_verified`: the reason without the solver's name, solvers, runs, problems."""
    rows = not_verified[not_verified["status"] == Status.SKIPPED]
    names = rows["solver"].astype(str).str.split(" ").str[0]
    reasons = [str(reason).removeprefix(f"{name} ") for reason, name in zip(rows["reason"], names, strict=True)]
    groups = rows.assign(reason=reasons).groupby("reason", sort=False)
    table = groups.agg(solvers=("solver", _each_once), runs=("solver", "size"), problems=("problem", _each_once))
    return table.reset_index()[column_names(SKIPPED)]


def _each_once(labels: pd.Series[str]) -> str:
    return "; ".join(map(str, labels.unique()))
