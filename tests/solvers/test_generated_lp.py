"""Programmes that grow: they end at the optimum of the whole one, and keep the limit of their run."""

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl import Iterate, Problem, Status, TaskData, run
from bench_mtl.problems import BallHinge, L1InfHinge
from bench_mtl.solvers.generated_lp import GeneratedLP

#: Options with which almost everything has to be generated.
FROM_NOTHING: dict[str, Any] = {"start_gap": 1.0, "first": 1, "width": 0.0}


def wide(*, sparse: bool = False) -> TaskData:
    """Three tasks of 30 to 60 examples with 40 features, of which five matter."""
    rng = np.random.default_rng(0)
    Xs = [rng.standard_normal((n, 40)) for n in (30, 60, 45)]
    W = rng.standard_normal((40, 3)) * (np.arange(40) < 5)[:, None]
    labels = [np.where(X @ W[:, k] + 0.5 * rng.standard_normal(len(X)) >= 0.2, 1.0, -1.0) for k, X in enumerate(Xs)]
    wrap: Any = sp.csr_array if sparse else np.asarray
    return TaskData.per_task([wrap(X) for X in Xs], labels)


PROBLEMS: dict[str, Problem] = {
    "radius": L1InfHinge(wide(), radius=2.0),
    "penalty": L1InfHinge(wide(sparse=True), penalty="0.2 max", reduction="sum"),
    "no penalty": L1InfHinge(wide(), penalty=0.0),
    "intercept": L1InfHinge(wide(sparse=True), radius=1.0, intercept=True),
    "intercept, penalty": L1InfHinge(wide(), penalty="0.1 max", intercept=True),
    "balls": BallHinge(wide(), radius=[0.5, 1.0, 2.0]),
    "radius of 0": L1InfHinge(wide(), radius=0.0),
}


def sizes(iterate: Iterate) -> tuple[int, int]:
    """The rows of W and the hinges of the programme after an iterate, by its note; none before the first."""
    found = re.match(r"(\d+) rows of W and (\d+) hinges; gap", iterate.note)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_sets_grow_until_nothing_is_violated_and_stay_smaller_than_all(name: str) -> None:
    problem = PROBLEMS[name]
    iterates = list(GeneratedLP(**FROM_NOTHING).steps(problem))
    assert problem.certify(iterates[-1]).gap <= 1e-10 * problem.scale()
    rows, hinges = zip(*map(sizes, iterates), strict=True)
    assert list(rows) == sorted(rows)
    assert list(hinges) == sorted(hinges)
    if name in ("radius", "penalty", "balls"):
        tasks = 3 if name == "balls" else 1
        assert tasks < rows[-1] < 40 * tasks
        assert 0 < hinges[-1] < 135
        assert sizes(iterates[-1]) == sizes(iterates[-2]), "the last programme violates nothing"


def test_the_limit_of_the_run_is_that_of_highs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends without an answer where no time is left, and the point of the first-order method stands."""
    problem = PROBLEMS["radius"]
    *_, before, last = GeneratedLP(seconds=0.0).steps(problem)
    assert last.note == "HiGHS ends with 'Time limit reached'"
    assert np.array_equal(last.primal, before.primal)
    handed_on: list[float | None] = []

    def noted(solver: GeneratedLP, seconds: float | None) -> GeneratedLP:
        handed_on.append(seconds)
        return solver

    assert GeneratedLP().limited_to(3.0) == GeneratedLP(seconds=3.0)
    assert GeneratedLP(seconds=2.0).limited_to(3.0) == GeneratedLP(seconds=2.0)
    monkeypatch.setattr(GeneratedLP, "limited_to", noted)
    assert run(problem, GeneratedLP(), limits=7.0).status is Status.VERIFIED
    assert handed_on == [7.0]
