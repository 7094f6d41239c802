"""The problems once more, in exact arithmetic: objectives and constraints, written from their definitions alone.

Nothing of the code that is judged is used here: no norm, no loss, no projection, no design.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.validation.exact.arithmetic import (
    Dyadic,
    Enclosure,
    TooLargeError,
    dyadic,
    exponential,
    log1p,
    log_sum_exp,
    logarithm,
    square_root,
)

_ZERO = Fraction(0)

#: What an objective beyond all floats is enclosed by: nobody has use for it as an upper bound.
_BEYOND_FLOATS = Enclosure(Fraction(2) ** 1024, Fraction(2) ** 40_000)

#: A portfolio within a box stands for itself divided by its sum, which is this close to 1.
PORTFOLIO_SLACK = Fraction(1, 2**45)


class Reference(ABC):
    """A problem in exact arithmetic. Points are exact, shaped like those of the problem."""

    shape: tuple[int, ...]

    @abstractmethod
    def objectives(self, point: Dyadic) -> list[Enclosure]:
        """Return F at a feasible point, once for each reading of the definition: weights 1/n exactly, and as the float that is stored."""

    @abstractmethod
    def is_feasible(self, point: Dyadic) -> bool | None:
        """Return whether the point is feasible; None where the enclosure of an irrational norm does not tell."""

    @property
    def boundary(self) -> Sequence[Dyadic]:
        """Points of the feasible set that are likely to be good."""
        return ()

    @abstractmethod
    def shrunk(self, point: Dyadic) -> Dyadic:
        """Return a feasible multiple of the point, or one near it."""

    def fitted(self) -> Dyadic | None:
        """Return a point without regard to feasibility that fits the data; None where that means nothing."""
        return None

    def at(self, point: Dyadic) -> Enclosure:
        """Return what all readings of F are between."""
        try:
            found = self.objectives(point)
        except TooLargeError:
            return _BEYOND_FLOATS
        return Enclosure(max(each.low for each in found), min(each.high for each in found))


# Losses of a row of predictions (of one prediction where they do not couple tasks)


def squared(t: Fraction, y: Fraction) -> Enclosure:
    return Enclosure.of((y - t) ** 2 / 2)


def huber(t: Fraction, y: Fraction) -> Enclosure:
    """With delta = 1/2."""
    size = abs(y - t)
    return Enclosure.of(size**2 / 2 if size <= Fraction(1, 2) else size / 2 - Fraction(1, 8))


def hinge(t: Fraction, y: Fraction) -> Enclosure:
    return Enclosure.of(max(_ZERO, 1 - y * t))


def squared_hinge(t: Fraction, y: Fraction) -> Enclosure:
    return Enclosure.of(max(_ZERO, 1 - y * t) ** 2)


def logistic(t: Fraction, y: Fraction) -> Enclosure:
    margin = y * t
    tail = log1p(exponential(-abs(margin)))
    return tail if margin >= 0 else tail.plus(Enclosure.of(-margin))


def exponential_loss(t: Fraction, y: Fraction) -> Enclosure:
    return exponential(-y * t)


LOSSES: dict[str, Callable[[Fraction, Fraction], Enclosure]] = {
    "squared": squared,
    "huber:0.5": huber,
    "hinge": hinge,
    "squared_hinge": squared_hinge,
    "logistic": logistic,
    "exponential": exponential_loss,
}


# Norms of a d x m matrix


def l1inf(W: Dyadic) -> Enclosure:
    return Enclosure.of(Fraction(int(np.abs(W.whole).max(axis=1).sum()), 1 << W.bits))


def l1(W: Dyadic) -> Enclosure:
    return Enclosure.of(Fraction(int(np.abs(W.whole).sum()), 1 << W.bits))


def l1_of_columns(W: Dyadic) -> Enclosure:
    return Enclosure.of(Fraction(int(np.abs(W.whole).sum(axis=0).max()), 1 << W.bits))


def l12(W: Dyadic) -> Enclosure:
    total = Enclosure.of(0)
    for row in W.whole:
        total = total.plus(square_root(Fraction(int(row @ row), 1 << (2 * W.bits))))
    return total


def l12_of_columns(W: Dyadic) -> Enclosure:
    return l12(W.transposed())


def squares(W: Dyadic) -> Fraction:
    flat = W.whole.ravel()
    return Fraction(int(flat @ flat), 1 << (2 * W.bits))


Norm = Callable[[Dyadic], Enclosure]


@dataclass(frozen=True)
class Ball:
    """||W|| <= radius."""

    norm: Norm
    radius: Fraction

    def contains(self, W: Dyadic) -> bool | None:
        size = self.norm(W)
        return True if size.high <= self.radius else False if size.low > self.radius else None

    def factor(self, W: Dyadic) -> Fraction:
        """Return a number from 0 to 1 that takes W into the ball."""
        size = self.norm(W).high
        return Fraction(1) if size <= self.radius else self.radius / size


@dataclass(frozen=True)
class Tasks:
    """The data of m tasks, exactly."""

    designs: tuple[Dyadic, ...]
    targets: tuple[tuple[Fraction, ...], ...]
    weights: tuple[tuple[float, ...], ...]
    """Of the examples in the loss."""

    @staticmethod
    def of(blocks: Sequence[Array], targets: Sequence[Array], weights: Sequence[Array]) -> Tasks:
        known: dict[int, Dyadic] = {}
        for block in blocks:
            known.setdefault(id(block), dyadic(block))
        exact = tuple(tuple(dyadic(y).fractions()) for y in targets)
        return Tasks(tuple(known[id(block)] for block in blocks), exact, tuple(tuple(v.tolist()) for v in weights))

    @property
    def shape(self) -> tuple[int, int]:
        return self.designs[0].whole.shape[1], len(self.designs)

    def predictions(self, W: Dyadic) -> list[list[Fraction]]:
        """Return X_k w_k, task by task."""
        return [X.product(W.at((slice(None), k))).fractions() for k, X in enumerate(self.designs)]

    def readings(self, reduction: str) -> list[list[list[Fraction]]]:
        """Return what multiplies the losses, task by task and example by example: as defined, and as stored."""
        given = [[Fraction(v) for v in each] for each in self.weights]
        if reduction == "sum":
            return [given]
        stored = [[Fraction(v / math.fsum(each)) for v in each] for each in self.weights]
        return [[[v / sum(each, _ZERO) for v in each] for each in given], stored]

    def losses(self, W: Dyadic, loss: Callable[[Fraction, Fraction], Enclosure]) -> list[list[Enclosure]]:
        """Return the losses, task by task and example by example."""
        return [list(map(loss, t, y)) for t, y in zip(self.predictions(W), self.targets, strict=True)]

    def solved(self) -> Dyadic:
        """Return the coefficients of least squares, or some of those where there are several, rounded far below floats."""
        d, m = self.shape
        W = [[_ZERO] * m for _ in range(d)]
        for k, (X, y) in enumerate(zip(self.designs, self.targets, strict=True)):
            for j, entry in enumerate(least_squares(X, y)):
                W[j][k] = entry
        return near(W)


def least_squares(X: Dyadic, y: Sequence[Fraction]) -> list[Fraction]:
    """Return a solution of X^T X w = X^T y."""
    rows = X.fractions()
    d = X.whole.shape[1]
    gram = X.transposed().product(X).fractions()
    system = [[*gram[j], sum((row[j] * target for row, target in zip(rows, y, strict=True)), _ZERO)] for j in range(d)]
    return _eliminate(system, d)


def interpolated(X: Dyadic, y: Sequence[Fraction], chosen: Sequence[int]) -> list[Fraction] | None:
    """Return w with x_i w = y_i for the chosen rows; None where there is none."""
    rows = X.fractions()
    system = [[*rows[i], y[i]] for i in chosen]
    d = X.whole.shape[1]
    w = _eliminate(system, d)
    fits = all(sum((a * b for a, b in zip(rows[i], w, strict=True)), _ZERO) == y[i] for i in chosen)
    return w if fits else None


def _eliminate(system: list[list[Fraction]], d: int) -> list[Fraction]:
    """Solve a consistent system, with 0 for what is free."""
    pivots: list[int] = []
    row = 0
    for j in range(d):
        pivot = next((i for i in range(row, len(system)) if system[i][j] != 0), None)
        if pivot is None:
            continue
        system[row], system[pivot] = system[pivot], system[row]
        top = system[row]
        for i in range(len(system)):
            if i != row and system[i][j] != 0:
                share = system[i][j] / top[j]
                system[i] = [a - share * b for a, b in zip(system[i], top, strict=True)]
        pivots.append(j)
        row += 1
    w = [_ZERO] * d
    for i, j in enumerate(pivots):
        w[j] = system[i][d] / system[i][j]
    return w


def near(W: list[list[Fraction]]) -> Dyadic:
    """Return a matrix of the entries to 200 bits, rounded towards 0."""
    return _common([[_leading(entry, 200) for entry in row] for row in W])


def multiple(W: Dyadic, factor: Fraction) -> Dyadic:
    """Return W times a number from 0 to 1, rounded down."""
    if factor == 1:
        return W
    numerator, bits = _leading(factor, 100)
    return Dyadic(W.whole * numerator, W.bits + bits)


def _leading(x: Fraction, bits: int) -> tuple[int, int]:
    """Return a whole number and the power of 2 to divide it by: the leading bits of x."""
    shift = max(0, bits - abs(x.numerator).bit_length() + x.denominator.bit_length())
    size = (abs(x.numerator) << shift) // x.denominator
    return (size if x >= 0 else -size), shift


def _common(entries: list[list[tuple[int, int]]]) -> Dyadic:
    bits = max(shift for row in entries for _, shift in row)
    whole = np.empty((len(entries), len(entries[0])), dtype=object)
    for i, row in enumerate(entries):
        whole[i, :] = [number << (bits - shift) for number, shift in row]
    return Dyadic(whole, bits)


@dataclass(frozen=True)
class Regularised(Reference):
    """A loss of linear predictions with balls or penalties, of one matrix or of a stack whose sum predicts."""

    tasks: Tasks
    loss: str
    reduction: str
    balls: tuple[Ball | None, ...]
    """One for every matrix of the stack."""
    penalties: tuple[tuple[Norm, Fraction] | None, ...]
    signs: Array | None = None
    """Signs that the entries must have."""
    factor: int = 1
    """What the loss is multiplied with."""
    extra: Callable[[Dyadic], Enclosure] | None = None
    """What is added besides."""
    columns: tuple[Ball, ...] = ()
    """A ball for every column."""

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.tasks.shape if len(self.balls) == 1 else (len(self.balls), *self.tasks.shape)

    def parts(self, point: Dyadic) -> list[Dyadic]:
        return [point] if len(self.balls) == 1 else [point.at(i) for i in range(len(self.balls))]

    def objectives(self, point: Dyadic) -> list[Enclosure]:
        parts = self.parts(point)
        W = parts[0] if len(parts) == 1 else parts[0].plus(parts[1])
        rest = Enclosure.of(0)
        for part, penalty in zip(parts, self.penalties, strict=True):
            if penalty is not None:
                rest = rest.plus(penalty[0](part).times(penalty[1]))
        if self.extra is not None:
            rest = rest.plus(self.extra(point))
        losses = self._multiclass(W) if self.loss == "multiclass" else self.tasks.losses(W, LOSSES[self.loss])
        found = []
        for weights in self.tasks.readings(self.reduction):
            total = rest
            for of_task, own in zip(losses, weights, strict=False):  # of classes that have one loss together the first weights are all
                for each, weight in zip(of_task, own, strict=True):
                    total = total.plus(each.times(weight * self.factor))
            found.append(total)
        return found

    def _multiclass(self, W: Dyadic) -> list[list[Enclosure]]:
        found = []
        for t, y in zip(zip(*self.tasks.predictions(W), strict=True), zip(*self.tasks.targets, strict=True), strict=True):
            own = t[y.index(Fraction(1))]
            found.append(log_sum_exp([each - own for each in t]))
        return [found]

    def is_feasible(self, point: Dyadic) -> bool | None:
        answers: list[bool | None] = [
            ball.contains(part) for part, ball in zip(self.parts(point), self.balls, strict=True) if ball is not None
        ]
        answers += [ball.contains(point.at((slice(None), slice(k, k + 1)))) for k, ball in enumerate(self.columns)]
        if self.signs is not None:
            answers.append(bool(np.all(point.whole * self.signs.astype(int).astype(object) >= 0)))
        return False if False in answers else None if None in answers else True

    def shrunk(self, point: Dyadic) -> Dyadic:
        if self.signs is not None:
            point = Dyadic(np.where(point.whole * self.signs.astype(int).astype(object) >= 0, point.whole, 0), point.bits)
        if self.columns:
            scaled = [
                multiple(column, ball.factor(column))
                for k, ball in enumerate(self.columns)
                for column in [point.at((slice(None), slice(k, k + 1)))]
            ]
            return _side_by_side(scaled)
        parts = [
            part if ball is None else multiple(part, ball.factor(part)) for part, ball in zip(self.parts(point), self.balls, strict=True)
        ]
        return parts[0] if len(parts) == 1 else _stacked(parts)

    @property
    def boundary(self) -> Sequence[Dyadic]:
        """One entry, one row, or all of one size."""
        d, m = self.tasks.shape
        found = []
        for j in range(d):
            for pattern in (np.ones(m), np.where(np.arange(m) % 2 == 0, 1.0, -1.0), np.eye(m)[0], -np.eye(m)[m - 1]):
                W = np.zeros((d, m))
                W[j] = pattern
                found += [self._with_size(W), self._with_size(-W)]
        return found

    def _with_size(self, W: Array) -> Dyadic:
        """Stretched to the radius of its ball, where that is no larger than floats are."""
        exact = dyadic(W)
        ball = self.balls[-1]
        radius = max(ball.radius for ball in self.columns) if self.columns else ball.radius if ball is not None else Fraction(1)
        numerator, denominator = radius.numerator, radius.denominator
        stretched = Dyadic(exact.whole * numerator, exact.bits + denominator.bit_length() - 1)
        point = stretched if len(self.balls) == 1 else _stacked([Dyadic(stretched.whole * 0, stretched.bits), stretched])
        return self.shrunk(point)

    def fitted(self) -> Dyadic:
        W = self.tasks.solved()
        return W if len(self.balls) == 1 else _stacked([Dyadic(W.whole * 0, W.bits), W])


def _aligned(parts: Sequence[Dyadic]) -> tuple[list[Any], int]:
    bits = max(part.bits for part in parts)
    return [part.whole << (bits - part.bits) for part in parts], bits


def _stacked(parts: Sequence[Dyadic]) -> Dyadic:
    whole, bits = _aligned(parts)
    return Dyadic(np.array(whole, dtype=object), bits)


def _side_by_side(parts: Sequence[Dyadic]) -> Dyadic:
    whole, bits = _aligned(parts)
    return Dyadic(np.concatenate(whole, axis=1), bits)


@dataclass(frozen=True)
class Boosting(Reference):
    """Losses of multiclass margins of scores H W with a penalty on rows of W >= 0."""

    design: Dyadic
    classes: tuple[int, ...]
    n_classes: int
    loss: str
    norm: Norm
    penalty: Fraction

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.design.whole.shape[1], self.n_classes)

    def objectives(self, point: Dyadic) -> list[Enclosure]:
        n, K = len(self.classes), self.n_classes
        total = Enclosure.of(0)
        for row, label in zip(self.design.product(point).fractions(), self.classes, strict=True):
            margins = [row[label] - score for score in row]
            if self.loss == "hinge":
                total = total.plus(Enclosure.of(max((r != label) - margin for r, margin in enumerate(margins)) * K))
            else:
                for margin in margins:
                    total = total.plus(LOSSES[self.loss](margin, Fraction(1)))
        return [total.times(Fraction(1, n * K)).plus(self.norm(point).times(self.penalty))]

    def is_feasible(self, point: Dyadic) -> bool | None:
        return bool(np.all(point.whole >= 0))

    def shrunk(self, point: Dyadic) -> Dyadic:
        return Dyadic(np.where(point.whole > 0, point.whole, 0), point.bits)

    @property
    def boundary(self) -> Sequence[Dyadic]:
        d, K = self.shape
        found = []
        for j in range(d):
            for k in range(K):
                W = np.zeros((d, K))
                W[j, k] = 1.0
                found += [dyadic(W), dyadic(100.0 * W)]
        return found


@dataclass(frozen=True)
class Wealth(Reference):
    """Portfolios: w within the bounds stands for w over its sum, which is 1 to `PORTFOLIO_SLACK`."""

    relatives: Dyadic
    lower: Dyadic
    upper: Dyadic
    """d x 1."""

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.relatives.whole.shape[1], 1)

    def objectives(self, point: Dyadic) -> list[Enclosure]:
        mass = point.total()
        total = Enclosure.of(0)
        for (earned,) in self.relatives.product(point).fractions():
            if earned <= 0 or mass <= 0:
                raise TooLargeError
            gain = logarithm(earned / mass)
            total = total.plus(Enclosure(-gain.high, -gain.low))
        return [total]

    def is_feasible(self, point: Dyadic) -> bool | None:
        above, below = point.plus(self.lower.negative()), self.upper.plus(point.negative())
        inside = bool(np.all(above.whole >= 0) and np.all(below.whole >= 0))
        return inside and abs(point.total() - 1) <= PORTFOLIO_SLACK

    def shrunk(self, point: Dyadic) -> Dyadic:
        """Between the bounds where the mass that they leave is spent first come, first served; the order is that of the entries."""
        order = sorted(range(self.shape[0]), key=lambda j: -int(point.whole[j, 0]))
        bits = max(self.lower.bits, self.upper.bits)
        low, high = self.lower.whole[:, 0] << (bits - self.lower.bits), self.upper.whole[:, 0] << (bits - self.upper.bits)
        w = np.array([int(each) for each in low], dtype=object)
        left = (1 << bits) - int(w.sum())
        for j in order:
            more = max(0, min(left, int(high[j] - low[j])))
            w[j] += more
            left -= more
        return Dyadic(w[:, None], bits)

    @property
    def boundary(self) -> Sequence[Dyadic]:
        d = self.shape[0]
        corners = [self.shrunk(dyadic(np.eye(d)[:, j : j + 1])) for j in range(d)]
        return corners
