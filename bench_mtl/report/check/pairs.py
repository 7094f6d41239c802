"""One solver against another over the instances that both were run on: ratio, bound, interval, test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench_mtl.report.check.entrants import Attempt, Entrant, geometric_mean

#: Intervals whose ends are further apart than this factor are not printed.
WIDEST = 1e6

_CONFIDENCE = 0.95

#: Of fewer pairs that differ no p-value is named.
_FEWEST_TESTED = 6

#: Of so many pairs at most Wilcoxon's test is exact.
_MOST_EXACT = 50


@dataclass(frozen=True)
class Interval:
    """What a 95 % interval has to hold at least, and what it can hold at most.

    A printed one is the hull of Student's on the logarithms and of a bootstrap. Student's is computed here; the bootstrap of medians cannot
    leave the least and the greatest ratio that any choice of repetitions and instances gives.
    """

    low: float
    high: float
    """Student's."""
    lowest: float
    highest: float
    """The hull of this and of all that can be drawn."""
    shift: float = 0.0
    """Of a shifted mean."""

    @property
    def is_told(self) -> bool:
        """Whether it must be printed."""
        return self.highest + self.shift <= WIDEST * (self.lowest + self.shift)

    @property
    def may_be_told(self) -> bool:
        """Whether it may be printed."""
        return self.high + self.shift <= WIDEST * (self.low + self.shift)


@dataclass(frozen=True)
class Pair:
    """How many times faster a solver is than a reference."""

    instances: int
    """That both were run on."""
    ratios: int
    """Those that one of them solved."""
    ratio: float | None
    at_least: bool
    at_most: bool
    interval: Interval | None
    lowest: float | None
    wins: int
    losses: int
    ties: int
    test: str | None
    p_value: float | None

    @property
    def sign(self) -> str:
        return ">=" if self.at_least else "<=" if self.at_most else ""


def pair(reference: Entrant, solver: Entrant) -> Pair:
    """Return the solver against the reference; a failure counts at the time that it had, and makes a bound of the ratio."""
    both = [(old, new) for old, new in zip(reference.attempts, solver.attempts, strict=True) if old is not None and new is not None]
    told = [(old, new) for old, new in both if old.seconds or new.seconds]
    has_failed = any(not old.seconds for old, _ in told), any(not new.seconds for _, new in told)
    ratio = lowest = interval = None
    if told and all(old.known and new.known for old, new in told) and not all(has_failed):
        quotients = [median(old.known) / median(new.known) for old, new in told]
        ratio, lowest = geometric_mean(quotients), min(quotients)
        interval = None if any(has_failed) else interval_of(told)
    wins, losses = sum(new.typical < old.typical for old, new in both), sum(new.typical > old.typical for old, new in both)
    test, p_value = _tested(both, wins, losses)
    return Pair(
        len(both), len(told), ratio, has_failed == (True, False), has_failed == (False, True), interval, lowest, wins, losses,
        len(both) - wins - losses, test, p_value,
    )  # fmt: skip


def interval_of(told: Sequence[tuple[Attempt, Attempt]]) -> Interval | None:
    """Return between what the interval of the ratio old / new lies; None where the runs say nothing of the scatter.

    That is where one instance was measured once by one side.
    """
    extremes = [(min(old.measured) / max(new.measured), max(old.measured) / min(new.measured)) for old, new in told]
    if len(told) > 1:
        logs = [math.log(median(old.measured) / median(new.measured)) for old, new in told]
        low, high = student(logs)
    else:
        ((old, new),) = told
        if min(len(old.measured), len(new.measured)) < 2:
            return None
        low, high = _student_of_two([math.log(each) for each in old.measured], [math.log(each) for each in new.measured])
    low, high = _exp(low), _exp(high)
    return Interval(low, high, min(low, *(least for least, _ in extremes)), max(high, *(most for _, most in extremes)))


def shifted_mean(times: Sequence[float], shift: float) -> float:
    """Return exp(mean(log(t + shift))) - shift."""
    if shift == 0:
        return math.exp(math.fsum(map(math.log, times)) / len(times))
    return shift * math.expm1(math.fsum(math.log1p(time / shift) for time in times) / len(times))


def mean_interval(attempts: Sequence[Attempt], shift: float) -> Interval | None:
    """Return between what the interval of a shifted geometric mean of times lies; None of one instance."""
    if len(attempts) < 2 or shift == 0:
        return None
    low, high = (shift * (_exp(end) - 1.0) for end in student([math.log1p(attempt.typical / shift) for attempt in attempts]))
    least, most = min(min(attempt.measured) for attempt in attempts), max(max(attempt.measured) for attempt in attempts)
    return Interval(max(0.0, low), high, max(0.0, min(low, least)), max(high, most), shift)


def student(values: Sequence[float]) -> tuple[float, float]:
    """Return Student's interval of the mean of values."""
    count = len(values)
    mean = math.fsum(values) / count
    squares = math.fsum((value - mean) ** 2 for value in values)
    half = _quantile(count - 1) * math.sqrt(squares / (count - 1) / count)
    return mean - half, mean + half


def _student_of_two(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Return Student's interval of the difference of the means of two samples of one variance."""
    means = [math.fsum(values) / len(values) for values in (one, other)]
    squares = sum(math.fsum((value - mean) ** 2 for value in values) for values, mean in zip((one, other), means, strict=True))
    freedom = len(one) + len(other) - 2
    half = _quantile(freedom) * math.sqrt(squares / freedom * (1 / len(one) + 1 / len(other)))
    return means[0] - means[1] - half, means[0] - means[1] + half


def _quantile(freedom: int) -> float:
    from scipy.stats import t

    return float(t.ppf(0.5 + 0.5 * _CONFIDENCE, freedom))


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _tested(both: Sequence[tuple[Attempt, Attempt]], wins: int, losses: int) -> tuple[str | None, float | None]:
    """Return the name and the two-sided p-value of the paired test."""
    if wins + losses < _FEWEST_TESTED:
        return None, None
    if all(old.seconds and new.seconds for old, new in both):
        differences = [math.log(new.typical) - math.log(old.typical) for old, new in both if new.typical != old.typical]
        return "Wilcoxon", wilcoxon(differences)
    return "sign", sign_test(wins, losses)


def sign_test(wins: int, losses: int) -> float:
    """Return how likely a count as uneven as this one is among fair coins."""
    total = wins + losses
    tail = sum(math.comb(total, count) for count in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / 2**total)


def wilcoxon(differences: Sequence[float]) -> float:
    """Return the p-value of the signed ranks: exact where no two sizes are equal and there are few, else SciPy's."""
    sizes = sorted(abs(each) for each in differences)
    count = len(sizes)
    if len(set(sizes)) < count or count > _MOST_EXACT:
        from scipy.stats import wilcoxon as of_scipy

        return float(of_scipy(differences).pvalue)
    positive = sum(sizes.index(each) + 1 for each in differences if each > 0)
    ways = [1] + [0] * (count * (count + 1) // 2)  # of signs, by the sum of the ranks that are positive
    for rank in range(1, count + 1):
        ways = [number + (ways[total - rank] if total >= rank else 0) for total, number in enumerate(ways)]
    tail = min(sum(ways[: positive + 1]), sum(ways[positive:]))
    return min(1.0, 2 * tail / 2**count)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p-values corrected for all that there are (Holm 1979)."""
    order = sorted((place for place, p in enumerate(p_values) if p is not None), key=lambda place: p_values[place] or 0.0)
    found: list[float | None] = [None] * len(p_values)
    least = 0.0
    for step, place in enumerate(order):
        least = max(least, min(1.0, (len(order) - step) * (p_values[place] or 0.0)))
        found[place] = least
    return found
