"""The problems once more, in exact arithmetic: objectives and constraints, written from their definitions alone.

Nothing of the code that is judged is used here: no norm, no loss, no projection, no design.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.validation.exact.arithmetic import (
    Enclosure,
    Exact,
    TooLargeError,
    exact,
    exponential,
    log1p,
    log_sum_exp,
    logarithm,
    rounded,
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
    def objectives(self, point: Exact) -> list[Enclosure]:
        """Return F at a feasible point, once for each reading of the definition: weights 1/n exactly, and as the float that is stored."""

    @abstractmethod
    def is_feasible(self, point: Exact) -> bool | None:
        """Return whether the point is feasible; None where the enclosure of an irrational norm does not tell."""

    @property
    @abstractmethod
    def boundary(self) -> Sequence[Exact]:
        """Points of the feasible set that are likely to be good."""

    @abstractmethod
    def shrunk(self, point: Exact) -> Exact:
        """Return a feasible multiple of the point, or one near it."""

    def at(self, point: Exact) -> Enclosure:
        """Return what all readings of F are between."""
        try:
            readings = self.objectives(point)
        except TooLargeError:
            return _BEYOND_FLOATS
        return Enclosure(max(each.low for each in readings), min(each.high for each in readings))


# Losses of a prediction t, with a target y


def _huber(t: Fraction, y: Fraction) -> Enclosure:
    """With delta = 1/2."""
    size = abs(y - t)
    return Enclosure.of(size**2 / 2 if size <= Fraction(1, 2) else size / 2 - Fraction(1, 8))


def _quantile(t: Fraction, y: Fraction) -> Enclosure:
    """With tau the float 0.3, of which 1 - tau is none."""
    tau = Fraction(0.3)
    return Enclosure.of(max(tau * (y - t), (tau - 1) * (y - t)))


LOSSES: dict[str, Callable[[Fraction, Fraction], Enclosure]] = {
    "squared": lambda t, y: Enclosure.of((y - t) ** 2 / 2),
    "huber:0.5": _huber,
    "quantile:0.3": _quantile,
    "hinge": lambda t, y: Enclosure.of(max(_ZERO, 1 - y * t)),
    "squared_hinge": lambda t, y: Enclosure.of(max(_ZERO, 1 - y * t) ** 2),
    "logistic": lambda t, y: log1p(exponential(-abs(y * t))) + max(_ZERO, -y * t),
    "exponential": lambda t, y: exponential(-y * t),
}


# Norms of a d x m matrix

Norm = Callable[[Exact], Enclosure]


def l1inf(W: Exact) -> Enclosure:
    return Enclosure.of(np.abs(W).max(axis=1).sum())


def l1(W: Exact) -> Enclosure:
    return Enclosure.of(np.abs(W).sum())


def l1_of_columns(W: Exact) -> Enclosure:
    return Enclosure.of(np.abs(W).sum(axis=0).max())


def l12(W: Exact) -> Enclosure:
    return sum((square_root(row @ row) for row in W), Enclosure.of(0))


def l12_of_columns(W: Exact) -> Enclosure:
    return l12(W.T)


def of_features(norm: Norm, factors: Exact) -> Norm:
    """Return a norm of which every row is multiplied by a number before."""
    return lambda W: norm(factors[:, None] * W)


@dataclass(frozen=True)
class Ball:
    """||W|| <= radius."""

    norm: Norm
    radius: Fraction

    def contains(self, W: Exact) -> bool | None:
        size = self.norm(W)
        return True if size.high <= self.radius else False if size.low > self.radius else None

    def shrunk(self, W: Exact) -> Exact:
        """Return W, or a multiple of it in the ball."""
        size = self.norm(W).high
        return W if size <= self.radius else W * rounded(self.radius / size, 100)


@dataclass(frozen=True)
class Tasks:
    """The data of m tasks, exactly."""

    designs: tuple[Exact, ...]
    targets: tuple[Exact, ...]
    weights: tuple[Exact, ...]
    """Of the examples in the loss."""

    @staticmethod
    def of(blocks: Sequence[Array], targets: Sequence[Array], weights: Sequence[Array] | None = None) -> Tasks:
        return Tasks(*(tuple(map(exact, each)) for each in (blocks, targets, weights or [np.ones(len(y)) for y in targets])))

    @property
    def shape(self) -> tuple[int, int]:
        return self.designs[0].shape[1], len(self.designs)

    def readings(self, reduction: str) -> list[list[Exact]]:
        """Return what multiplies the losses, task by task: as defined, and as stored."""
        if reduction == "sum":
            return [list(self.weights)]
        stored = [exact(v.astype(np.float64) / math.fsum(v)) for v in self.weights]
        return [[v / v.sum() for v in self.weights], stored]

    def losses(self, W: Exact, loss: str) -> list[list[Enclosure]]:
        """Return the losses of the examples of every task; of a loss that couples tasks, one list for all of them."""
        predictions = [X @ W[:, k] for k, X in enumerate(self.designs)]
        if loss == "multiclass":
            rows = zip(np.transpose(predictions), np.transpose(self.targets), strict=True)
            return [[log_sum_exp([each - t[y.tolist().index(1)] for each in t]) for t, y in rows]]
        return [list(map(LOSSES[loss], t, y)) for t, y in zip(predictions, self.targets, strict=True)]

    def solved(self) -> Exact:
        """Return the coefficients of least squares, or some of those where there are several, rounded far below floats."""
        return from_columns([least_squares(X, y) for X, y in zip(self.designs, self.targets, strict=True)])


def from_columns(ws: Sequence[list[Fraction]]) -> Exact:
    """Return a matrix of these columns, of which entries are rounded towards 0 to 200 bits."""
    W = np.empty((len(ws[0]), len(ws)), dtype=object)
    for k, w in enumerate(ws):
        W[:, k] = [rounded(entry, 200) for entry in w]
    return W


def least_squares(X: Exact, y: Exact) -> list[Fraction]:
    """Return a solution of X^T X w = X^T y."""
    return _eliminate(np.column_stack([X.T @ X, X.T @ y]).tolist())


def interpolated(X: Exact, y: Exact) -> list[Fraction] | None:
    """Return w with X w = y; None where there is none."""
    w = _eliminate(np.column_stack([X, y]).tolist())
    return w if all(X @ np.array(w, dtype=object) == y) else None


def _eliminate(system: list[list[Fraction]]) -> list[Fraction]:
    """Solve a consistent system, with 0 for what is free."""
    d, pivots = len(system[0]) - 1, list[int]()
    for j in range(d):
        row = len(pivots)
        pivot = next((i for i in range(row, len(system)) if system[i][j] != 0), None)
        if pivot is None:
            continue
        system[row], system[pivot] = system[pivot], system[row]
        for i, line in enumerate(system):
            if i != row and line[j] != 0:
                share = line[j] / system[row][j]
                system[i] = [a - share * b for a, b in zip(line, system[row], strict=True)]
        pivots.append(j)
    w = [_ZERO] * d
    for i, j in enumerate(pivots):
        w[j] = system[i][d] / system[i][j]
    return w


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
    extra: Callable[[Exact], Enclosure] | None = None
    """What is added besides."""
    columns: tuple[Ball, ...] = ()
    """A ball for every column."""

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.tasks.shape if len(self.balls) == 1 else (len(self.balls), *self.tasks.shape)

    def parts(self, point: Exact) -> list[Exact]:
        return [point] if len(self.balls) == 1 else list(point)

    def stacked(self, W: Exact) -> Exact:
        """Return a point that predicts as a matrix does: itself, or the last of the stack."""
        return W if len(self.balls) == 1 else np.stack([0 * W, W])

    def objectives(self, point: Exact) -> list[Enclosure]:
        parts = self.parts(point)
        rest = Enclosure.of(0) if self.extra is None else self.extra(point)
        for part, penalty in zip(parts, self.penalties, strict=True):
            rest += Enclosure.of(0) if penalty is None else penalty[0](part) * penalty[1]
        losses = self.tasks.losses(sum(parts[1:], parts[0]), self.loss)
        found = []
        for weights in self.tasks.readings(self.reduction):
            pairs = [pair for each, v in zip(losses, weights, strict=False) for pair in zip(each, v, strict=True)]
            found.append(sum((each * (weight * self.factor) for each, weight in pairs), rest))
        return found

    def is_feasible(self, point: Exact) -> bool | None:
        answers = [ball.contains(part) for part, ball in zip(self.parts(point), self.balls, strict=True) if ball is not None]
        answers += [ball.contains(point[:, k : k + 1]) for k, ball in enumerate(self.columns)]
        answers += [] if self.signs is None else [bool(np.all(point * self.signs.astype(int) >= 0))]
        return False if False in answers else None if None in answers else True

    def shrunk(self, point: Exact) -> Exact:
        if self.signs is not None:
            point = np.where(point * self.signs.astype(int) >= 0, point, np.array(_ZERO))
        if self.columns:
            return np.concatenate([ball.shrunk(point[:, k : k + 1]) for k, ball in enumerate(self.columns)], axis=1)
        parts = [part if ball is None else ball.shrunk(part) for part, ball in zip(self.parts(point), self.balls, strict=True)]
        return parts[0] if len(parts) == 1 else np.stack(parts)

    @property
    def boundary(self) -> Sequence[Exact]:
        """One entry, one row, or all of one size, stretched to the radius of the ball."""
        d, m = self.tasks.shape
        radii = [ball.radius for ball in (*self.columns, *self.balls[-1:]) if ball is not None]
        points = []
        for j in range(d):
            for pattern in (np.ones(m), np.where(np.arange(m) % 2 == 0, 1.0, -1.0), np.eye(m)[0], -np.eye(m)[m - 1]):
                W = np.zeros((d, m))
                W[j] = pattern
                points += [self.shrunk(self.stacked(exact(sign * W) * max(radii, default=Fraction(1)))) for sign in (1.0, -1.0)]
        return points


@dataclass(frozen=True)
class Boosting(Reference):
    """Losses of multiclass margins of scores H W with a penalty on rows of W >= 0."""

    design: Exact
    classes: tuple[int, ...]
    n_classes: int
    loss: str
    norm: Norm
    penalty: Fraction

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.design.shape[1], self.n_classes)

    def objectives(self, point: Exact) -> list[Enclosure]:
        total, K = Enclosure.of(0), self.n_classes
        for row, label in zip(self.design @ point, self.classes, strict=True):
            margins = row[label] - row
            if self.loss == "hinge":
                total += max((r != label) - margin for r, margin in enumerate(margins)) * K
            else:
                total = sum((LOSSES[self.loss](margin, Fraction(1)) for margin in margins), total)
        return [total * Fraction(1, len(self.classes) * K) + self.norm(point) * self.penalty]

    def is_feasible(self, point: Exact) -> bool | None:
        return bool(np.all(point >= 0))

    def shrunk(self, point: Exact) -> Exact:
        return np.where(point > 0, point, np.array(_ZERO))

    @property
    def boundary(self) -> Sequence[Exact]:
        size = self.design.shape[1] * self.n_classes
        return [exact(scale * row.reshape(self.shape)) for row in np.eye(size) for scale in (1.0, 100.0)]


@dataclass(frozen=True)
class Wealth(Reference):
    """Portfolios: w within the bounds represents w over its sum, which is 1 to `PORTFOLIO_SLACK`."""

    relatives: Exact
    lower: Exact
    upper: Exact
    """d x 1."""

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.relatives.shape[1], 1)

    def objectives(self, point: Exact) -> list[Enclosure]:
        mass, total = point.sum(), Enclosure.of(0)
        for (earned,) in self.relatives @ point:
            if earned <= 0 or mass <= 0:
                raise TooLargeError
            gain = logarithm(earned / mass)
            total += Enclosure(-gain.high, -gain.low)
        return [total]

    def is_feasible(self, point: Exact) -> bool | None:
        return bool(np.all(point >= self.lower) and np.all(point <= self.upper)) and abs(point.sum() - 1) <= PORTFOLIO_SLACK

    def shrunk(self, point: Exact) -> Exact:
        """Between the bounds where the mass that they leave is spent first come, first served; the order is that of the entries."""
        w, left = self.lower.copy(), 1 - self.lower.sum()
        for j in sorted(range(len(w)), key=lambda j: -point[j, 0]):
            more = max(_ZERO, min(left, self.upper[j, 0] - w[j, 0]))
            w[j, 0] += more
            left -= more
        return w

    @property
    def boundary(self) -> Sequence[Exact]:
        return [self.shrunk(exact(column[:, None])) for column in np.eye(len(self.lower))]
