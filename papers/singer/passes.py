"""What online passes of the slides' experiments share: step sizes, and the rounds at which they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl import Problem, Status
from bench_mtl.runner import Found
from papers import Array
from papers.solve_to_gap import solve_to_gap

#: The rounds at which a pass is looked at are the length of the stream over these.
_SHARES = (64, 32, 16, 8, 4, 2, 1)

#: Step sizes that are chosen on the beginning of a stream are chosen on its first eighth.
EARLY_SHARE = 8


class Look(NamedTuple):
    """What is known of a pass after some rounds."""

    total: float  # the sum of the losses of all rounds so far, each taken before the step that its example makes
    non_zeros: int  # features with a weight that is not 0
    features: int  # features with a weight that is not negligible


def checkpoints(rounds: int) -> tuple[int, ...]:
    """Return the rounds after which a pass is looked at: a 64th of the stream, a 32nd, ..., all of it."""
    return tuple(sorted({rounds // share for share in _SHARES if rounds >= share}))


def looked_at(losses: Callable[[int], float], look: Callable[[float], Look], rounds: int) -> list[Look]:
    """Return what a pass gives at the checkpoints.

    `losses` takes the step of round t = 0, 1, ... and returns the loss before it; `look` makes a look of the sum of the losses so far.
    """
    places, found, total = set(checkpoints(rounds)), [], 0.0
    for t in range(rounds):
        total += losses(t)
        if t + 1 in places:
            found.append(look(total))
    return found


def as_values(passes: Sequence[Sequence[Look]], etas: Sequence[float], rounds: int) -> dict[str, Any]:
    """Return what passes with several eta0 give as values of a cell: lists of lists, eta0 by eta0."""
    found: dict[str, Any] = {name: [[getattr(look, name) for look in looks] for looks in passes] for name in Look._fields}
    return found | {"etas": list(etas), "rounds": list(checkpoints(rounds))}


def order_of(count: int, rounds: int, seed: int) -> NDArray[np.int64]:
    """Return which examples are the stream: `rounds` of `count`, or all where there are fewer, in a random order."""
    return np.random.default_rng(seed).permutation(count)[:rounds]


def best_fixed(
    places: Sequence[int], problems: Sequence[Problem], factors: Sequence[float], held: Callable[[Array], int], by: tuple[str, float, float]
) -> Found:
    """Return the smallest sums of losses that any fixed point has on the beginnings of a stream, from above and from below.

    `places` are their lengths, `factors` what the objective of each problem is to be multiplied by; `held` counts the features that a point
    uses; `by` is the solver, the relative gap to prove, and seconds on its clock.
    """
    found = [solve_to_gap(problem, *by) for problem in problems]
    values = {
        "rounds": list(places),
        "fixed": [factor * each.objective for factor, each in zip(factors, found, strict=True)],
        "fixed_bound": [factor * each.bound for factor, each in zip(factors, found, strict=True)],
        "fixed_features": [held(each.point) for each in found],
    }
    status = Status.VERIFIED if all(each.status is Status.VERIFIED for each in found) else Status.INACCURATE
    return Found(values, status, f"the best fixed points of {len(places)} beginnings, each to a relative gap of {by[1]:g}")
