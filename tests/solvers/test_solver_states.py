"""States of solvers: a run that goes on from one is the undisturbed run, bit for bit, and a state of another maker is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pytest
from low_rank_cases import AWKWARD

from bench_mtl.core.errors import InputError
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.core.shards import Shards
from bench_mtl.core.types import Iterate
from bench_mtl.data import TaskData, synthetic_l1inf
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.model.solver_state import MAKER, entries_of, state_of
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.l12_glm import L12GLM
from bench_mtl.problems.l12_hinge import L12Hinge
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.adaptive_sample_size import AdaptiveSampleSize
from bench_mtl.solvers.auto import Auto
from bench_mtl.solvers.pdhg import PDHG
from bench_mtl.solvers.projected_gradient import ProjectedGradient
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient
from bench_mtl.validation.conformance import check_iterates

_RNG = np.random.default_rng(5)
_DATA = synthetic_l1inf(tasks=3, features=8, examples=10)
_SHARED = TaskData.shared(_RNG.standard_normal((30, 6)), np.where(_RNG.standard_normal((30, 3)) > 0.0, 1.0, -1.0))

_PARTS = [(_SHARED.design.block(0)[rows], _SHARED.targets[rows]) for rows in (slice(k, k + 8) for k in range(0, 30, 8))]
_IN_SHARDS = replace(_SHARED, design=ShardedDesign(Shards.held(_PARTS)))

PROBLEMS: dict[str, Problem] = {
    "shards": L1BallGLM(_IN_SHARDS, penalty=0.01, loss="logistic"),
    "shards, hinge": L1InfHinge(_IN_SHARDS, penalty=0.05),
    "split": AWKWARD["shared"],
    "split per task": AWKWARD["per task"],
    "split, few examples": AWKWARD["per task, few examples"],
    "l1 ball": L1BallGLM(_SHARED, radius=0.5, loss="logistic"),
    "l1,2": L12GLM(_SHARED, penalty=0.01),
    "hinge ball": L1InfHinge(_DATA, radius=2.0),
    "hinge penalty": L1InfHinge(_DATA, penalty=0.05),
    "l1,2 hinge": L12Hinge(_SHARED, penalty=0.05),
    "l1,2 hinge ball": L12Hinge(_SHARED, radius=0.7),
}

GRADIENT = [
    {"gram": "never"},
    {"gram": "never", "step_rule": "line_search", "initial_lipschitz": 1e-3},
    {"gram": "never", "objective_change": 1e-9},
    {"gram": "always"},
    {"gram": "always", "step_rule": "line_search", "initial_lipschitz": 1e-3},
    {"gram": "always", "objective_change": 1e-9},
]


def accelerated(first: int) -> list[tuple[str, IterativeSolver]]:
    """Return half of the products of problem, options and restart; with `first` 1 the other half."""
    return [
        (name, AcceleratedGradient(**options, restart=("none", "gradient")[(i + k + first) % 2]))  # type: ignore[arg-type]
        for i, name in enumerate(("split", "split per task", "split, few examples"))
        for k, options in enumerate(GRADIENT)
    ]


PAIRS: list[tuple[str, IterativeSolver]] = [
    *((name, ProjectedGradient(**options)) for name in ("split", "split per task", "split, few examples") for options in GRADIENT),  # type: ignore[arg-type]
    *accelerated(0),  # any two of problem, options and restart
    *((name, AcceleratedGradient(restart="gradient")) for name in ("l1 ball", "l1,2")),
    ("l1,2", AcceleratedGradient(restart="gradient", features="scaled")),
    ("l1 ball", ProjectedGradient(projection="sort", step_rule="line_search")),
    *(
        (name, SmoothedGradient(step_rule=rule))
        for name in ("hinge ball", "hinge penalty", "l1,2 hinge", "l1,2 hinge ball")
        for rule in ("local", "lipschitz")
    ),
    *((name, AdaptiveSampleSize(growth=2.0)) for name in ("shards", "shards, hinge")),
    *((name, PDHG(variant=variant)) for name in ("hinge ball", "hinge penalty") for variant in ("halpern", "average")),
    *((name, Auto()) for name in ("l1,2", "l1,2 hinge", "l1,2 hinge ball", "shards", "shards, hinge")),
]


def ids(pair: tuple[str, IterativeSolver]) -> str:
    return f"{pair[0]}-{pair[1]!r}".replace(" ", "")


def require_same(ours: Iterate, undisturbed: Iterate) -> None:
    assert (ours.step, ours.work, ours.note) == (undisturbed.step, undisturbed.work, undisturbed.note)
    assert np.array_equal(ours.primal, undisturbed.primal)
    assert (ours.dual is None) == (undisturbed.dual is None)
    assert ours.dual is None or np.array_equal(ours.dual, undisturbed.dual)


def require_plain(state: Mapping[str, Any] | None) -> None:
    assert state is not None
    for name, value in state.items():
        assert isinstance(value, str) == (name == MAKER)
        assert name == MAKER or isinstance(value, (int, float)) or value.dtype in (np.float64, np.int64)


@pytest.mark.parametrize("pair", [*PAIRS, *(pytest.param(pair, marks=pytest.mark.slow) for pair in accelerated(1))], ids=ids)
def test_a_run_that_goes_on_is_the_undisturbed_run(pair: tuple[str, IterativeSolver]) -> None:
    """States are made only after the run has gone on, so that one which changes with it is found out."""
    problem, solver = PROBLEMS[pair[0]], pair[1]
    count = 80 if isinstance(solver, PDHG) else 260  # whose iterates are ever more steps apart
    iterates = list(islice(solver.steps(problem), count))
    assert len(iterates) > 20
    require_plain(entries_of(iterates[19]))
    for k in (0, 1, 2, 15, 40, 60, 99, 130, 205, 215, len(iterates) - 1):
        if k >= len(iterates):
            continue
        start = iterates[k]
        if start.state is None:  # the first point of a compiled loop, and the last but one where it stops by itself
            assert k == 0
            start = Iterate(start.primal)
        again = list(islice(solver.resume(problem, start), 25))
        assert len(again) == 25 or len(iterates) < count
        for ours, undisturbed in zip(again, iterates[k:], strict=False):
            require_same(ours, undisturbed)


def fifth(solver: IterativeSolver, problem: str) -> Iterate:
    *_, last = islice(solver.steps(PROBLEMS[problem]), 5)
    return last._replace(state=entries_of(last))


@pytest.mark.parametrize(
    ("problem", "maker", "other"),
    [
        ("split", AcceleratedGradient(), ProjectedGradient()),
        ("split", AcceleratedGradient(), AcceleratedGradient(restart="gradient")),
        ("split", ProjectedGradient(gram="never"), ProjectedGradient(gram="always")),
        ("hinge ball", SmoothedGradient(), SmoothedGradient(reduction=0.25)),
        ("l1,2 hinge", SmoothedGradient(reduction=0.25), Auto()),
    ],
)
def test_a_state_of_another_maker_is_refused_by_name(problem: str, maker: IterativeSolver, other: IterativeSolver) -> None:
    with pytest.raises(InputError, match=r"the state to go on from was made by .*, not by "):
        next(iter(other.resume(PROBLEMS[problem], fifth(maker, problem))))


class _Stateless(AcceleratedGradient):
    def resume(self, problem: Problem, start: Iterate):  # type: ignore[no-untyped-def]
        return IterativeSolver.resume(self, problem, start)


def test_a_solver_that_makes_none_refuses_any() -> None:
    with pytest.raises(InputError, match="accelerated_gradient makes no states, and cannot go on from one"):
        _Stateless().resume(PROBLEMS["split"], fifth(AcceleratedGradient(), "split"))


@pytest.mark.parametrize("solver", [AcceleratedGradient(gram="never"), AcceleratedGradient(gram="always")])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("missing", "the state to go on from lacks"),
        ("shape", "of the state to go on from must be numbers of shape"),
        ("kind", "of the state to go on from must be numbers of shape"),
    ],
)
def test_a_state_that_is_not_whole_is_refused(solver: IterativeSolver, change: str, words: str) -> None:
    start = fifth(solver, "split")
    assert start.state is not None
    state = dict(start.state)  # type: ignore[arg-type]
    name = "previous" if "previous" in state else "loop"
    if change == "missing":
        del state[name]
    else:
        state[name] = state[name][..., :-1] if change == "shape" else state[name].astype(complex)
    with pytest.raises(InputError, match=words):
        list(islice(solver.resume(PROBLEMS["split"], start._replace(state=state)), 3))


class _Forgetful(AcceleratedGradient):
    """Goes on without its momentum."""

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        state = entries_of(start)
        return super().resume(problem, start if state is None else start._replace(state={**state, "momentum": 1.0}))


class _Careless(ProjectedGradient):
    """Hands over arrays that it changes."""

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        kept = np.zeros(1)
        for iterate in super().resume(problem, start):
            kept[0] = iterate.step
            yield iterate._replace(state=partial(state_of, self, lipschitz=1.0 + kept[0], shared=kept))


class _Miscounting(ProjectedGradient):
    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        return super().resume(problem, start._replace(work=0.0))


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        (_Forgetful(gram="never"), "from the state of iterate .* iterate .* is another"),
        (_Careless(gram="never"), "from the state of iterate .* iterate .* is another"),
        (_Miscounting(gram="never"), "from the state of iterate .* the counts of iterate .* are others"),
    ],
)
def test_the_conformance_suite_finds_states_that_do_not_go_on(solver: IterativeSolver, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_iterates(PROBLEMS["split"], solver)


@pytest.mark.parametrize("state", [3, "text", [1.0]])
def test_a_state_that_is_no_mapping_is_refused(state: object) -> None:
    start = Iterate(PROBLEMS["split"].zero(), None, 3, 1.0, state=state)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the state of an iterate must be a mapping of names to arrays and numbers, not"):
        next(iter(ProjectedGradient().resume(PROBLEMS["split"], start)))
