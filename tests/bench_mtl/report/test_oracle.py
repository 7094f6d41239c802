"""The tables of a report, cell by cell, against an oracle that derives every number again: of the published results, and of drawn ones."""

import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracle
import pandas as pd
import pytest
from hand_reports import iterative, run_of, runs, stored

from bench_mtl.core.types import Certificate, Ending, Place, Sample
from bench_mtl.report.registry import TABLES, report_tables
from bench_mtl.results.loading import read_results

REPORTS = Path(__file__).parents[3] / "reports"
PUBLISHED = {path.parent.name for path in REPORTS.glob("*/results.sqlite")}

#: Computed in another order, numbers differ by rounding.
ROUNDING = 1e-9


def differences(folder: Path) -> list[str]:
    """Return every cell that is not the derived one; sentences are not derived."""
    made = report_tables(read_results(folder))
    derived = oracle.tables(folder)
    assert derived.keys() == TABLES.keys()
    return [f"{name}, {each}" for name, rows in derived.items() for each in of_table(rows, made.get(name, pd.DataFrame()))]


def of_table(derived: list[dict[str, Any]], table: pd.DataFrame) -> Iterator[str]:
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    if len(rows) != len(derived):
        yield f"{len(derived)} rows are derived, not {len(rows)}"
    for number, (row, cells) in enumerate(zip(derived, rows, strict=False)):
        for column in dict.fromkeys([*row, *cells]):
            if column not in ("failed", "rivals") and not is_same(row.get(column), cells.get(column)):
                yield f"row {number}, {column}: {row.get(column)} is derived, not {cells.get(column)}"


def is_same(derived: object, cell: Any) -> bool:
    if isinstance(derived, oracle.Within):
        if cell is None:
            return derived.may_be_missing
        return derived.least - ROUNDING * abs(cell) <= cell <= derived.most + ROUNDING * abs(cell)
    if isinstance(derived, (int, float)) and not isinstance(derived, bool) and cell is not None:
        return math.isclose(derived, cell, rel_tol=ROUNDING, abs_tol=1e-12)
    return bool(derived == cell)


#: One with a sweep, one of several problems, one with measures. The other published results are slow: drawn ones have all that they have.
QUICK = ("headline-hinge", "headline-lowrank", "singer-synthetic-logistic")


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in sorted(PUBLISHED - set(QUICK)))])
def test_of_published_results(name: str) -> None:
    assert differences(REPORTS / name) == []


def test_of_results_with_all_that_reports_say(tmp_path: Path) -> None:
    """Among them: walkovers, rivals that get there never or sometimes, contradictions, runs for one target alone, code that raised."""
    given = [*runs(), run_of("lost", "cg", iterative(2.0, optimum=3.0)), run_of("lost", "cg", iterative(2.0), repetition=1)]
    given += [run_of("measured", "auto", iterative(2.0 + n, steps=n + 2), target=10.0 ** (-2 * n - 2)) for n in range(3)]
    given += [run_of("level", "auto", iterative(2.0 + n, steps=n + 2), target=10.0 ** (-2 * n - 2)) for n in range(2)]
    given += [run_of("measured", "pg", iterative(3.0, steps=3), repetition=3, target=1e-4)]
    given += [run_of("measured", "scs", [], "timeout", repetition=3)]
    given += [run_of("level", "cg", [], "error", reason="ValueError", places=(Place("a.py", 3, "f", "g()"), Place("b.py", 7, "g", "")))]
    given += [run_of("half", "pg", iterative(1.0), seed=seed) for seed in range(2)]  # the rival was not run on one of these
    given += [run_of("half", "scs", [], "timeout", rungs=[(1e-3, 60.0, Ending.KILLED)])]
    folder = stored(tmp_path / "results", given)
    assert differences(folder) == []
    derived = oracle.tables(folder)
    assert {row["walkover"] for row in derived["winners"]} == {True, False}
    assert {row.get("other_reached") for row in derived["winners"] if row.get("other_runs") == 4} >= {3}
    assert "pg, scs, cg" in {row["disagreeing"] for row in derived["enclosures"]}


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))])
def test_of_drawn_results(tmp_path: Path, seed: int) -> None:
    """Enough instances for all tests, sweeps of a size and of workers, and runs that end in every way."""
    assert differences(stored(tmp_path / "results", drawn(random.Random(seed)))) == []


def drawn(rng: random.Random) -> list[dict[str, Any]]:
    """Return runs of iterative and one-shot solvers, and of peers, on problems of two families; none measures the same everywhere."""
    problems = [(f"size {size}", {"name": "synthetic", "d": size}) for size in (10, 20, 40, 80)]
    problems += [(f"workers {number}", {"name": "sharded", "workers": number}) for number in (1, 2, 4)]
    problems += [(problem, {"name": "synthetic"}) for problem in ("whole", "seeds")]  # of one family with others, see `audited`
    solvers = {"pg": 1.0, "cg": 2.0, "scs": 8.0, "ecos": 20.0, "peer_celer": 3.0}
    given, success = [], rng.choice((0.7, 0.98))
    for problem, data in problems:
        for seed in range(rng.choice((1, 3))):
            for solver, slowness in solvers.items():
                if rng.random() < 0.9:
                    for repetition in range(rng.choice((1, 1, 3))):
                        steps = 4 if rng.random() < success else rng.choice((3, 2, 1, 0))
                        run = drawn_run(rng, problem, solver, slowness * rng.lognormvariate(0.0, 1.0), steps)
                        given.append({**run, "data": data, "seed": seed, "repetition": repetition, "radius": 1.0})
    return given


def drawn_run(rng: random.Random, problem: str, solver: str, seconds: float, steps: int) -> dict[str, Any]:
    """Return a run that gets there in four steps, or near in fewer, or nowhere."""
    optimum = rng.choice((1.0,) * 30 + (1.5,))
    samples = [
        Sample(each.seconds, each.step, each.work, each.certificate, None, tuple((name, rng.random()) for name in ("size", "error")))
        for each in iterative(seconds, steps=steps, optimum=optimum)
    ]
    rungs = []
    if solver in ("scs", "ecos", "peer_celer"):
        gaps = ((1e-3, 5e-3), (1e-5, 5e-5), (1e-6, 4e-7))[: max(0, steps - 1)]
        cost = [seconds * rng.uniform(0.5, 1.0) for _ in gaps]
        samples = [
            Sample(spent, 7, rng.choice((0.0, 5.0)), Certificate(optimum, optimum - gap, 1e-9), asked)
            for spent, (asked, gap) in zip(cost, gaps, strict=True)
        ]
        rungs = [(1e-8, seconds, Ending.TIME_LIMIT)] if rng.random() < 0.5 else []
    failed = rng.choice(("timeout", "timeout", "timeout", "crashed", "inaccurate", "memory"))
    status = "verified" if steps == 4 else failed if steps else rng.choice((failed, "skipped"))
    spent = {"build": 0.1 if rungs else 0.0, "setup": rng.choice((0.0, 0.25 * seconds)), "solve": rng.choice((0.0, seconds))}
    spent["certify"] = rng.choice((0.0, 0.1))
    info = {name: rng.randrange(1, 1000) for name in ("rounds", "messages", "sent", "received", "again")} | {"shards": 8}
    return run_of(problem, solver, samples, status, rungs=rungs, times=spent, info=info, limit=rng.choice((60.0, 90.0, None)))


def test_a_cell_that_is_another_is_named() -> None:
    row = {"problem": "p", "ratio": 2.0, "ratio_low": oracle.Within(1.0, 1.8, False), "walkover": False}
    assert list(of_table([row], pd.DataFrame([row | {"ratio_low": 1.7}]))) == []
    for column, value in (("problem", "q"), ("ratio", 2.1), ("ratio", None), ("ratio_low", 1.9), ("ratio_low", None), ("walkover", True)):
        (difference,) = of_table([row], pd.DataFrame([row | {"ratio_low": 1.7} | {column: value}]))
        assert difference.startswith(f"row 0, {column}: ")
    assert list(of_table([row], pd.DataFrame())) == ["1 rows are derived, not 0"]


def test_nothing_of_what_is_tested_is_used_to_derive_it() -> None:
    assert not re.search(r"^\s*(from|import) (bench_mtl|pandas|numpy)", Path(oracle.__file__).read_text(), re.MULTILINE)
