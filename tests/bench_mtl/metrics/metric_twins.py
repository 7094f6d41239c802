"""Slow references of the metrics: exact fractions, by counting pairs, thresholds and cells one by one; nothing shared with the package."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise


def auc(labels: Sequence[int], scores: Sequence[float], tie: Fraction = Fraction(1, 2)) -> Fraction:
    pairs = [(f, g) for f, y in zip(scores, labels, strict=True) if y > 0 for g, z in zip(scores, labels, strict=True) if z <= 0]
    return sum((Fraction(f > g) + tie * (f == g) for f, g in pairs), Fraction(0)) / len(pairs)


def equal_error_rate(labels: Sequence[int], scores: Sequence[float]) -> Fraction:
    """Thresholds from above all scores to below: (share of negatives above, share of positives not above), met where they cross."""
    n_positive = sum(y > 0 for y in labels)
    n_negative = len(labels) - n_positive
    points = []
    for threshold in [None, *sorted(set(scores), reverse=True)]:
        above = [y for y, f in zip(labels, scores, strict=True) if threshold is not None and f >= threshold]
        taken = sum(y > 0 for y in above)
        points.append((Fraction(len(above) - taken, n_negative), 1 - Fraction(taken, n_positive)))
    for (a, b), (c, d) in pairwise(points):
        if a <= b and c >= d:
            return a + (c - a) * (b - a) / ((b - a) + (c - d))
    raise AssertionError("error rates must cross")


def f1(labels: Sequence[int], decisions: Sequence[bool]) -> Fraction | None:
    right = sum(y > 0 and e for y, e in zip(labels, decisions, strict=True))
    wrong = sum((y > 0) != e for y, e in zip(labels, decisions, strict=True))
    return Fraction(2 * right, 2 * right + wrong) if right or wrong else None


def binomial_tail(wins: int, losses: int) -> Fraction:
    """Chance of at least so many wins among fair tosses, by adding up Pascal's triangle."""
    row = [1]
    for _ in range(wins + losses):
        row = [1, *(a + b for a, b in pairwise(row)), 1]
    return Fraction(sum(row[wins:]), 2 ** (wins + losses))
