"""One solver against another over the instances that both were tried on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_mtl.report.tables.grid import Column, interval_ends
from bench_mtl.stats import paired_test, ratio_interval

#: Of fewer pairs that are no ties no test can find anything at the level of 5 %, and none is named.
FEWEST_TESTED = 6


@dataclass(frozen=True)
class Pair:
    """How many times faster a solver is than a reference. What is not known is missing or not a number."""

    instances: int
    """The number of instances that both were tried on."""
    ratios: int
    """How many of them somebody solved, which the ratio is of."""
    ratio: float
    """Geometric mean of the reference's seconds / the solver's: above 1 where the solver is faster."""
    at_least: bool
    at_most: bool
    """Whether it is a bound, because the reference, or the solver, failed on some instance."""
    low: float
    high: float
    lowest: float
    """The smallest of the ratios."""
    wins: int
    losses: int
    ties: int
    test: str | None
    p_value: float


def pair(reference: Column, solver: Column) -> Pair:
    """Return the solver against the reference.

    A failure, whatever its reason, counts at the time that it had: where only the reference has failed anywhere, the ratio is a lower
    bound, where only the solver has, an upper one, and where both have, on different instances, it would be neither and is missing, as it
    is where the time of a failure is not known. Instances that both fail on do not enter the ratio.
    """
    nan = float("nan")
    both = reference.tried & solver.tried
    places = np.flatnonzero(both & (reference.solved | solver.solved))
    failed = bool((~reference.solved[places]).any()), bool((~solver.solved[places]).any())
    before, after = ([column.at_least()[place] for place in places] for column in (reference, solver))
    ratio = low = high = lowest = nan
    if len(places) and all(before) and all(after) and not all(failed):
        interval = ratio_interval(before, after)
        ratio = interval.value
        lowest = float(min(np.median(old) / np.median(new) for old, new in zip(before, after, strict=True)))
        low, high = (nan, nan) if any(failed) else interval_ends(interval)
    tested = paired_test(solver.seconds[both], reference.seconds[both]) if both.any() else None
    wins, losses, ties = (0, 0, 0) if tested is None else (tested.wins, tested.losses, tested.ties)
    named = tested is not None and tested.p_value is not None and wins + losses >= FEWEST_TESTED
    return Pair(
        instances=int(both.sum()),
        ratios=len(places),
        ratio=ratio,
        at_least=failed[0] and not failed[1],
        at_most=failed[1] and not failed[0],
        low=low,
        high=high,
        lowest=lowest,
        wins=wins,
        losses=losses,
        ties=ties,
        test=tested.test if named and tested is not None else None,
        p_value=float(tested.p_value) if named and tested is not None and tested.p_value is not None else nan,
    )
