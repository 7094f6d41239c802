"""Which runs are made again, and which targets a run counts for."""

import pandas as pd

from bench_mtl.core.types import Limits
from bench_mtl.engine.suite import Case, Instance
from bench_mtl.results.decisive import SHORT_REPETITIONS, decisive_cases

TARGETS = (1e-2, 1e-4)

#: Solver, seed, its target, and samples of seconds, gap and asked tolerance.
Run = tuple[str, int, float, list[tuple[float, float, float | None]]]


def tables(*made: Run) -> tuple[list[Case], pd.DataFrame, pd.DataFrame]:
    """Return the cases with the runs and samples of a store that holds them."""
    cases, runs, samples = [], [], []
    for number, (solver, seed, target, points) in enumerate(made, start=1):
        case = Case(Instance("lasso", "small", {}, {}, seed), solver, solver, {}, target, Limits(), 1, 0)
        cases.append(case)
        runs.append(
            {
                "id": number, "case_key": case.key, "problem_label": "small", "instance_key": case.instance.key, "solver": solver,
                "solver_label": solver, "repetition": 0, "target": target, "limit_seconds": None, "status": "timeout",
                "relative_gap": 1.0, "build_seconds": float("scs" in solver),
            }
        )  # fmt: skip
        samples += [(number, seconds, 1.0 - gap, gap, asked) for seconds, gap, asked in points]
    table = pd.DataFrame(samples, columns=["run_id", "seconds", "dual", "relative_gap", "asked_tolerance"])
    return cases, pd.DataFrame(runs), table.assign(primal=1.0, passes=0.0, iteration=1)


def again(*made: Run, repetitions: int = 3) -> list[tuple[str, float, int]]:
    return [(case.solver, case.target, case.repetition) for case in decisive_cases(*tables(*made), TARGETS, repetitions)]


def test_the_fastest_of_each_kind_is_run_again_to_the_target_that_it_is_fastest_to() -> None:
    quick: Run = ("pg", 0, 1e-4, [(2.0, 1e-2, None)])
    exact: Run = ("newton", 0, 1e-4, [(3.0, 1e-3, None), (4.0, 1e-5, None)])
    generic: Run = ("scs", 0, 1e-4, [(5.0, 1e-2, 1e-3), (9.0, 1e-4, 1e-5)])
    slow: Run = ("scs_tuned", 0, 1e-4, [(6.0, 1e-2, 1e-3), (9.5, 1e-4, 1e-5)])
    three = range(1, 4)
    assert again(quick, exact, generic, slow) == [
        *(("pg", 1e-2, number) for number in three), *(("scs", 1e-4, number) for number in three),
        *(("newton", 1e-4, number) for number in three),
    ]  # fmt: skip


def test_what_users_are_told_to_take_is_run_again_whoever_is_fastest() -> None:
    quick, auto = (("pg", 0, 1e-4, [(2.0, 1e-2, None)]), ("auto", 0, 1e-4, [(3.0, 1e-2, None)]))
    assert again(quick, auto, repetitions=1) == [("pg", 1e-2, 1), ("auto", 1e-2, 1)]
    assert again(auto, repetitions=1) == [("auto", 1e-2, 1)]


def test_a_one_shot_solver_is_asked_for_what_proved_and_an_iterative_one_is_run_to_that_target() -> None:
    generic: Run = ("scs", 0, 1e-4, [(5.0, 0.5, 1e-1), (6.0, 1e-2, 1e-3), (9.0, 1e-4, 1e-5), (20.0, 1e-7, 1e-7)])
    quick: Run = ("pg", 0, 1e-4, [(2.0, 1e-2, None)])
    cases = decisive_cases(*tables(quick, generic), TARGETS, 1)
    pg, scs = cases
    assert (pg.target, pg.tolerances, pg.targets) == (1e-2, (), ())
    assert (scs.target, scs.tolerances, scs.targets) == (1e-4, (1e-3, 1e-5), (1e-2,))
    assert len({case.key for case in cases}) == 2


def test_what_is_short_is_run_more_often_and_only_as_far_as_it_is_needed() -> None:
    solver: Run = ("pg", 0, 1e-4, [(0.1, 1e-2, None), (3.0, 1e-4, None)])
    found = again(solver, repetitions=2)
    assert found == [("pg", 1e-4, 1), ("pg", 1e-4, 2), *(("pg", 1e-2, number) for number in range(3, SHORT_REPETITIONS + 1))]


def test_only_who_proved_every_instance_is_run_again() -> None:
    lucky: list[Run] = [("lucky", 0, 1e-4, [(1.5, 1e-5, None)]), ("lucky", 1, 1e-4, [(60.0, 0.5, None)])]
    steady: list[Run] = [("steady", seed, 1e-4, [(7.0, 1e-5, None)]) for seed in range(2)]
    assert {solver for solver, _, _ in again(*lucky, *steady)} == {"steady"}
    assert again(*lucky) == []
