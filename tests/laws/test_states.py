"""States of solvers: a run that goes on from one is the undisturbed run, bit for bit, and what is no state of it is refused by name."""

from collections.abc import Iterable, Iterator
from itertools import islice, takewhile
from typing import Any

import numpy as np
import pytest
from test_pairs import chosen, duos

from bench_mtl import InputError, Iterate, IterativeSolver, Problem
from bench_mtl.model.solver_state import MAKER, entries_of
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.solvers import AcceleratedGradient, ProjectedGradient
from bench_mtl.validation.conformance import check_iterates
from bench_mtl.validation.tiny_instances import tiny_instances

#: They make no states, and begin anew at the point of an iterate: the basis of `generated_lp` is inside a library, and the bits of
#: products of columns depend on which were asked for together, of `l1_working_set` in all runs so far on the data.
STATELESS = {"generated_lp", "l1_working_set"}

#: With these problems `admm` makes none.
WITHOUT = ("sparse_low_rank-admm",)

#: Those to which `auto` leaves these problems make none.
PASSED_ON = ("l1_ball_glm-auto", "sparse_low_rank-auto")

#: So many steps of a run are held to its states.
STEPS = 800

SPLIT = tiny_instances(SparseLowRank, 0)[0]


#: Names of the variants with the first problem that they take. The test of pairs holds the others to a few states, those here are slow.
FIRST: set[str] = set()


def solvers() -> Iterator[tuple[str, IterativeSolver, Problem]]:
    """Return every variant of an iterative solver with the first problem that it takes, and with others where it makes states."""
    seen = set()
    for duo in duos():
        if duo.is_fast and isinstance(duo.solver, IterativeSolver) and (duo.variant not in seen or duo.solver.name not in STATELESS):
            problem = duo.instances()[chosen()[duo.name][0]]
            if duo.name not in PASSED_ON:
                FIRST.update([] if duo.variant in seen else [duo.name])
                yield duo.name, duo.solver, problem
            seen.add(duo.variant)
    for kind in (ProjectedGradient, AcceleratedGradient):
        for gram in ("never", "always"):
            for options in ({}, {"step_rule": "line_search", "initial_lipschitz": 1e-3}, {"objective_change": 1e-9}):
                solver = kind(gram=gram, **options)  # type: ignore[arg-type]
                FIRST.add(name := f"split-{solver.label}-{gram}-{'-'.join(options)}")
                yield name, solver, SPLIT


ALL = {name: (solver, problem) for name, solver, problem in solvers()}
WITH_STATES = [name for name, (solver, _) in ALL.items() if solver.name not in STATELESS and not name.startswith(WITHOUT)]


def each(names: Iterable[str]) -> pytest.MarkDecorator:
    """Parametrise by names; all but the first of a variant are slow."""
    return pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in FIRST else pytest.mark.slow) for name in names])


def iterates_of(name: str, most: int) -> list[Iterate]:
    solver, problem = ALL[name]
    last = 3 * STEPS if solver.name == "adaptive_sample_size" else STEPS  # which has none before it has all examples
    return list(islice(takewhile(lambda iterate: iterate.step <= last, solver.steps(problem)), most))


def with_entries(iterate: Iterate) -> Iterate:
    return iterate._replace(state=entries_of(iterate))


@pytest.mark.numerics
@each(WITH_STATES)
def test_a_run_that_goes_on_is_the_undisturbed_run(name: str) -> None:
    """States are made only after the run has gone on, so that one which changes with it is found out."""
    solver, problem = ALL[name]
    iterates = iterates_of(name, 260)
    places = [k for k in (0, 1, 15, 40, 130, 205, len(iterates) - 1) if k < len(iterates)]
    starts = [(k, start) for k in places if (start := with_entries(iterates[k])).state is not None]
    assert starts
    for k, start in starts:
        for entry, value in start.state.items():
            assert isinstance(value, str) == (entry == MAKER)
            assert entry == MAKER or isinstance(value, (int, float)) or value.dtype in (np.float64, np.int64)
        undisturbed = iterates[k : k + 12]
        again = list(islice(solver.resume(problem, start), len(undisturbed)))
        for ours, other in zip(again, undisturbed, strict=True):
            assert (ours.step, ours.work, ours.note) == (other.step, other.work, other.note)
            assert np.array_equal(ours.primal, other.primal)
            assert (ours.dual is None) == (other.dual is None)
            assert ours.dual is None or np.array_equal(ours.dual, other.dual)


@each(ALL)
def test_a_state_of_another_maker_is_refused_by_name(name: str) -> None:
    solver, problem = ALL[name]
    words = "makes no states, and cannot go on from one" if name not in WITH_STATES else r"was made by another_solver\(\), not by "
    start = Iterate(problem.start_point(), None, 3, 1.0, state={MAKER: "another_solver()"})
    with pytest.raises(InputError, match=words):
        next(iter(solver.resume(problem, start)))
    if name in WITH_STATES:
        with pytest.raises(InputError, match="the state of an iterate must be a mapping of names to arrays and numbers, not \\["):
            next(iter(solver.resume(problem, start._replace(state=[1.0]))))  # type: ignore[arg-type]


@each(WITH_STATES)
def test_a_state_that_is_not_whole_is_refused(name: str) -> None:
    """Or it goes on without what it need not have; nothing else is raised."""
    solver, problem = ALL[name]
    start = with_entries(iterates_of(name, 6)[-1])
    state: dict[str, Any] = dict(start.state or {})  # type: ignore[arg-type]

    def goes_on(changed: dict[str, Any]) -> bool:
        try:
            list(islice(solver.resume(problem, start._replace(state=changed)), 2))
        except InputError:
            return False
        return True

    refused = 0
    for entry, value in state.items():
        refused += not goes_on({other: kept for other, kept in state.items() if other != entry})
        if entry != MAKER:
            assert not goes_on({**state, entry: np.asarray(value).astype(complex)}), f"{entry} of another kind"
            assert not goes_on({**state, entry: np.asarray(value)[None]}), f"{entry} of another shape"
    assert refused >= 1


class _Forgetful(AcceleratedGradient):
    """Goes on without its momentum."""

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        state = entries_of(start)
        return super().resume(problem, start if state is None else start._replace(state={**state, "momentum": 1.0}))


class _Careless(ProjectedGradient):
    """Hands over arrays that it changes."""

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        kept = np.ones(())
        for iterate in super().resume(problem, start):
            kept[...] = 1.0 + iterate.step
            state = entries_of(iterate)
            yield iterate if state is None else iterate._replace(state={**state, "lipschitz": kept})


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
def test_the_checks_find_states_that_do_not_go_on(solver: IterativeSolver, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_iterates(SPLIT, solver)
