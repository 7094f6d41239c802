"""Small nasty instances of every problem: rows equal to a unit in the last place, sums that cancel, far scales, odd radii."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.protocols import Problem
from bench_mtl.model.task_data import TaskData
from bench_mtl.validation.exact import references as exact
from bench_mtl.validation.exact.arithmetic import Enclosure, Exact, trace_norm
from bench_mtl.validation.exact.arithmetic import exact as as_fractions
from bench_mtl.validation.exact.references import Ball, Boosting, Reference, Regularised, Tasks, Wealth

Maker = Callable[[type[Problem], np.random.Generator], "Instance"]
Case = Callable[[type[Problem]], "Instance"]

#: At both ends of floating point, and where squares and products of two leave it.
FAR = tuple(2.0**power for power in (-1040, -1021, -540, -511, 511, 540, 1010))

_RADII = (0.0, 1e17, 3.0, 0.5, 1e-8, 1e8, 1.0, 1e150, 1e-150, 2.0**52, *FAR)
_PENALTIES: tuple[Any, ...] = (1e-18, "0.1 max", 1e-3, 1.0, 0.0, "1 max", 1e8, 1e-300, "1e-6 max", 0.3, *FAR)
_RIDGES = (1e-18, 1e-3, 1.0, 1e8, 0.1, 1e-150, *FAR)
_SCALES = (2.0**52, 2.0**-52, 1e8, 1e-8, 1e150, 1e-150, *FAR)


@dataclass(frozen=True)
class Instance:
    """A problem, and the same in exact arithmetic."""

    name: str
    problem: Problem
    reference: Reference


@dataclass(frozen=True)
class Raw:
    """Designs and targets of all tasks before they are put into a problem."""

    blocks: tuple[Array, ...]
    """One array, used m times, where it is shared."""
    targets: tuple[Array, ...]
    sparse: bool
    weights: tuple[Array, ...] | None = None
    """Of the examples in the loss; None: all 1."""

    @property
    def is_shared(self) -> bool:
        return all(block is self.blocks[0] for block in self.blocks)

    @property
    def data(self) -> TaskData:
        wrap: Callable[[Array], Any] = sp.csr_array if self.sparse else np.asarray
        v = self.weights
        if self.is_shared:
            of_all = None if v is None else np.stack(v, axis=1)
            return TaskData.shared(wrap(self.blocks[0]), np.stack(self.targets, axis=1), weights=of_all, name="nasty")
        return TaskData.per_task([wrap(block) for block in self.blocks], self.targets, weights=v, name="nasty")

    @property
    def tasks(self) -> Tasks:
        return Tasks.of(self.blocks, self.targets, self.weights)


def instances(classes: Mapping[str, type[Problem]], problem: str, count: int, seed: int) -> Iterator[Instance]:
    """Yield `count` instances of a problem, the named ones first; none of a problem that has no reference here.

    Parameters
    ----------
    classes : the classes of problems by name
    """
    if problem not in MAKERS:
        return
    named = [make for name, make in REPRODUCERS if name.split(":")[0] == problem]
    for make in named[:count]:
        yield make(classes[problem])
    made, attempt = min(len(named), count), 0
    while made < count:
        rng = np.random.default_rng([seed, sorted(MAKERS).index(problem), attempt])
        attempt += 1
        try:
            with np.errstate(all="ignore"):
                instance = MAKERS[problem](classes[problem], rng)
        except InputError:  # the share of a largest penalty that is beyond all floats, say
            continue
        yield Instance(f"{problem} {seed}.{attempt - 1}: {instance.name}", instance.problem, instance.reference)
        made += 1


# Data


def _design(rng: np.random.Generator, n: int, d: int) -> Array:
    """Rows that are nearly or quite equal, sums that cancel, or normal numbers; then odd entries and scales."""
    kind = rng.integers(4)
    if kind == 0:
        X = rng.standard_normal((n, d))
    else:
        X = rng.integers(-3, 4, size=(n, d)).astype(float)
        for i in range(1, n):
            if rng.random() < 0.7:
                X[i] = X[rng.integers(i)] * (1.0 if kind == 1 else rng.choice([-1.0, 1.0]))
                j = int(rng.integers(d))
                X[i, j] = np.nextafter(X[i, j], rng.choice([-10.0, 10.0])) if rng.random() < 0.7 else X[i, j]
    if kind == 3 and d > 1:
        X[:, -1] = X[:, 0]
    for change in rng.permutation(6)[: rng.integers(3)]:
        scale = float(rng.choice(_SCALES))
        if change == 0:
            X *= scale
        elif change == 1:
            X[:, rng.integers(d)] *= scale
        elif change == 2:
            X[rng.integers(n)] *= scale
        elif change == 3:
            X[rng.random((n, d)) < 0.2] = 5e-324 * float(rng.integers(1, 9))
        elif change == 4:
            X[rng.integers(n)] = 0.0
        else:
            X[:, rng.integers(d)] = 0.0
    return np.where(np.isfinite(X), X, 1.0)


def _raw(rng: np.random.Generator, targets: Callable[[np.random.Generator, Array], Array], *, shared: bool | None = None) -> Raw:
    m, d = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    together = bool(rng.random() < 0.5) if shared is None else shared
    sparse = bool(rng.random() < 0.3)
    if together:
        blocks = (_design(rng, int(rng.integers(1, 7)), d),) * m
    else:
        blocks = tuple(_design(rng, int(rng.integers(1, 6)), d) for _ in range(m))
    raw = Raw(blocks, tuple(targets(rng, X) for X in blocks), sparse)
    return raw if rng.random() < 0.7 else replace(raw, weights=tuple(_weights(rng, len(X)) for X in blocks))


def _weights(rng: np.random.Generator, n: int) -> Array:
    if rng.random() < 0.5:
        return rng.integers(1, 4, size=n).astype(float)
    return np.asarray(np.exp(rng.normal(0.0, float(rng.choice([0.1, 3.0, 20.0])), size=n)))


def _labels(rng: np.random.Generator, X: Array) -> Array:
    kind = rng.integers(3)
    if kind == 0:
        return np.full(len(X), float(rng.choice([-1.0, 1.0])))
    if kind == 1:
        return np.where(X @ rng.standard_normal(X.shape[1]) >= 0.0, 1.0, -1.0)
    return rng.choice([-1.0, 1.0], size=len(X))


def _reals(rng: np.random.Generator, X: Array) -> Array:
    kind = rng.integers(6)
    with np.errstate(all="ignore"):
        fitted = X @ rng.integers(-2, 3, size=X.shape[1]).astype(float)
    if kind == 0 and np.isfinite(fitted).all():
        return np.asarray(fitted)
    if kind == 1:
        return float(rng.choice([1.0, 1e8, 1e-8, 1e100, *_SCALES])) * rng.standard_normal(len(X))
    if kind == 2:
        return np.zeros(len(X))
    if kind == 3:
        return np.asarray(1.0 + 2.0**-52 * rng.integers(0, 3, size=len(X)))
    return rng.integers(-5, 6, size=len(X)).astype(float)


def _classes(rng: np.random.Generator) -> tuple[Raw, tuple[int, ...]]:
    """Data with one class a row, and the classes."""
    X, K = _design(rng, int(rng.integers(1, 7)), int(rng.integers(1, 5))), int(rng.integers(2, 5))
    labels = rng.integers(K, size=len(X)) if rng.random() < 0.7 else np.full(len(X), rng.integers(K))
    indicators = np.where(np.arange(K) == labels[:, None], 1.0, -1.0)
    return Raw((X,) * K, tuple(indicators.T), bool(rng.random() < 0.3)), tuple(int(label) for label in labels)


def _radius_or_penalty(rng: np.random.Generator) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {"radius": float(rng.choice(_RADII)) if rng.random() < 0.7 else float(np.exp(rng.normal()))}
    return {"penalty": _penalty(rng)}


_TARGETS = {"squared": _reals, "huber:0.5": _reals, "logistic": _labels}


def _loss(rng: np.random.Generator) -> str:
    return str(rng.choice(list(_TARGETS)))


def _reduction(rng: np.random.Generator) -> str:
    return str(rng.choice(["mean", "sum"]))


def _penalty(rng: np.random.Generator) -> Any:
    return _PENALTIES[int(rng.integers(len(_PENALTIES)))]


def _told(parameters: Mapping[str, Any], raw: Raw) -> str:
    layout = "CSR" if raw.sparse else "dense"
    told = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return f"{told}, {'shared' if raw.is_shared else 'per task'} {layout}"


# Problems, each with its reference. What the problem made of a share ("0.1 max") is read from it: it is data as stored.


def linear(
    cls: type[Problem],
    raw: Raw,
    norm: exact.Norm,
    reduction: str,
    parameters: dict[str, Any],
    *,
    penalised: exact.Norm | None = None,
    signs: Array | None = None,
) -> Instance:
    """Return a loss with a norm as a constraint, or as a penalty (`penalised`, where that is another norm)."""
    problem: Any = cls(raw.data, **parameters)  # type: ignore[call-arg]
    ball = None if problem.radius is None else Ball(norm, Fraction(problem.radius))
    penalty = None if problem.penalty is None else (penalised or norm, Fraction(problem.penalty))
    loss = parameters.get("loss", "hinge")
    tasks = raw.tasks if loss != "multiclass" else Tasks.of(raw.blocks, [(y + 1.0) / 2.0 for y in raw.targets])
    return Instance(_told(parameters, raw), problem, Regularised(tasks, loss, reduction, (ball,), (penalty,), signs))


def _hinges(norm: exact.Norm) -> Maker:
    def make(cls: type[Problem], rng: np.random.Generator) -> Instance:
        reduction = _reduction(rng)
        parameters = _radius_or_penalty(rng) | {"reduction": reduction}
        return linear(cls, _raw(rng, _labels), norm, reduction, parameters)

    return make


def _losses(norm: exact.Norm) -> Maker:
    def make(cls: type[Problem], rng: np.random.Generator) -> Instance:
        reduction, loss = _reduction(rng), _loss(rng)
        parameters = _radius_or_penalty(rng) | {"reduction": reduction, "loss": loss}
        return linear(cls, _raw(rng, _TARGETS[loss]), norm, reduction, parameters)

    return make


def _trace_norm_glm(cls: type[Problem], rng: np.random.Generator) -> Instance:
    loss = _loss(rng)
    raw = _raw(rng, _TARGETS[loss])
    return linear(cls, raw, trace_norm, "sum", _radius_or_penalty(rng) | {"loss": loss})


def _l1_ball_glm(cls: type[Problem], rng: np.random.Generator) -> Instance:
    loss = str(rng.choice([*_TARGETS, "multiclass"]))
    nonneg, balls = bool(rng.random() < 0.3), str(rng.choice(["task", "all"]))
    parameters = _radius_or_penalty(rng) | {"loss": loss, "nonneg": nonneg, "balls": balls}
    raw = _classes(rng)[0] if loss == "multiclass" else _raw(rng, _TARGETS[loss])
    norm, reduction = exact.l1_of_columns if balls == "task" else exact.l1, "mean" if loss in ("logistic", "multiclass") else "sum"
    return linear(cls, raw, norm, reduction, parameters, penalised=exact.l1, signs=np.ones(raw.tasks.shape) if nonneg else None)


def _ball_hinge(cls: type[Problem], rng: np.random.Generator) -> Instance:
    raw = _raw(rng, _labels)
    reduction, norm = _reduction(rng), str(rng.choice(["l1", "l2"]))
    return _balls(cls, raw, [float(radius) for radius in rng.choice(_RADII, size=len(raw.blocks))], norm, reduction)


def _balls(cls: type[Problem], raw: Raw, radii: list[float], norm: str, reduction: str) -> Instance:
    parameters = {"radius": radii, "norm": norm, "reduction": reduction}
    exactly = exact.l1 if norm == "l1" else exact.l12_of_columns
    columns = tuple(Ball(exactly, Fraction(radius)) for radius in radii)
    reference = Regularised(raw.tasks, "hinge", reduction, (None,), (None,), columns=columns)
    return Instance(_told(parameters, raw), cls(raw.data, **parameters), reference)  # type: ignore[call-arg]


def _sparse_low_rank(cls: type[Problem], rng: np.random.Generator) -> Instance:
    loss = _loss(rng)
    raw = _raw(rng, _TARGETS[loss])
    penalty, radius = float(rng.choice(_RIDGES)), float(rng.choice(_RADII))
    parameters: dict[str, Any] = {"penalty": penalty, "radius": radius, "loss": loss}
    balls, penalties = (None, Ball(trace_norm, Fraction(radius))), ((exact.l1, Fraction(penalty)), None)
    problem = cls(raw.data, **parameters)  # type: ignore[call-arg]
    return Instance(_told(parameters, raw), problem, Regularised(raw.tasks, loss, "sum", balls, penalties))


def _dirty_model(cls: type[Problem], rng: np.random.Generator) -> Instance:
    loss, reduction = _loss(rng), _reduction(rng)
    raw = _raw(rng, _TARGETS[loss])
    parameters = {"row_penalty": _penalty(rng), "entry_penalty": _penalty(rng), "loss": loss, "reduction": reduction}
    problem: Any = cls(raw.data, **parameters)  # type: ignore[call-arg]
    penalties = (exact.l1inf, Fraction(problem.row_penalty)), (exact.l1, Fraction(problem.entry_penalty))
    return Instance(_told(parameters, raw), problem, Regularised(raw.tasks, loss, reduction, (None, None), penalties))


def _ridge_hinge(cls: type[Problem], rng: np.random.Generator) -> Instance:
    return _ridge(cls, _raw(rng, _labels), float(rng.choice(_RIDGES)))


def _ridge(cls: type[Problem], raw: Raw, ridge: float) -> Instance:
    def penalty(W: Exact) -> Enclosure:
        return Enclosure.of(Fraction(ridge) * (W * W).sum())

    problem = cls(raw.data, ridge=ridge)  # type: ignore[call-arg]
    return Instance(_told({"ridge": ridge}, raw), problem, Regularised(raw.tasks, "hinge", "mean", (None,), (None,), extra=penalty))


def _task_relationships(cls: type[Problem], rng: np.random.Generator) -> Instance:
    raw = _raw(rng, _reals)
    ridge, coupling = (float(rng.choice((0.0, *_RIDGES))) for _ in range(2))
    return _relationships(cls, raw, ridge or (0.0 if coupling else 0.2), coupling)


def _relationships(cls: type[Problem], raw: Raw, ridge: float, coupling: float) -> Instance:
    def penalty(W: Exact) -> Enclosure:
        size = trace_norm(W)
        return Enclosure(size.low**2, size.high**2) * (Fraction(coupling) / 2) + Fraction(ridge) * (W * W).sum() / 2

    parameters = {"ridge": ridge, "coupling": coupling}
    problem = cls(raw.data, **parameters)  # type: ignore[call-arg]
    reference = Regularised(raw.tasks, "squared", "mean", (None,), (None,), factor=2, extra=penalty)
    return Instance(_told(parameters, raw), problem, reference)


def _group_boosting(cls: type[Problem], rng: np.random.Generator) -> Instance:
    raw, labels = _classes(rng)
    loss, norm = str(rng.choice(["logistic", "squared_hinge", "exponential", "hinge"])), str(rng.choice(["l12", "l1inf", "l1"]))
    parameters = {"penalty": _penalty(rng), "loss": loss, "norm": norm}
    problem: Any = cls(raw.data, **parameters)  # type: ignore[call-arg]
    norms = {"l12": exact.l12, "l1inf": exact.l1inf, "l1": exact.l1}
    reference = Boosting(as_fractions(raw.blocks[0]), labels, len(raw.blocks), loss, norms[norm], Fraction(problem.penalty))
    return Instance(_told(parameters, raw), problem, reference)


def _portfolio(cls: type[Problem], rng: np.random.Generator) -> Instance:
    T, d = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    kind, noise = rng.integers(6), rng.standard_normal((T, d))
    if kind == 0:
        X = 1.0 + 1e-6 * noise
    elif kind == 1:
        X = np.asarray(1.0 + 2.0**-52 * rng.integers(-2, 3, size=(T, d)))
    elif kind == 2:
        X = np.exp(0.3 * noise)
    elif kind == 3:
        X = float(rng.choice(_SCALES)) * np.exp(0.3 * noise)
    elif kind == 4:
        X = np.exp(30.0 * noise)
        X[0, 0] = 5e-324
    else:
        X = 1.0 + 0.01 * noise
        X[:, -1] = X[:, 0]
    return portfolio(cls, X, *_box(rng, d))


def portfolio(cls: type[Problem], X: Array, lower: Array | None = None, upper: Array | None = None) -> Instance:
    """Return an instance of portfolio."""
    d = X.shape[1]
    bounds = {} if lower is None else {"lower": lower, "upper": upper}
    problem = cls(TaskData.shared(X, np.ones(len(X)), name="nasty"), **bounds)  # type: ignore[call-arg]
    low, high = (np.zeros(d), np.ones(d)) if lower is None or upper is None else (lower, np.minimum(upper, 1.0))
    reference = Wealth(as_fractions(X), as_fractions(low[:, None]), as_fractions(high[:, None]))
    return Instance(f"{len(X)} periods, {d} assets{', boxed' if bounds else ''}", problem, reference)


def _box(rng: np.random.Generator, d: int) -> tuple[Array | None, Array | None]:
    kind = rng.integers(5)
    if kind == 0:
        return np.zeros(d), np.full(d, 1.0 / d)  # the sum of these is 1 to rounding
    if kind == 1:
        return np.full(d, 1.0 / d), np.ones(d)
    if kind == 2:
        lower = rng.random(d) / (2 * d)
        return lower, np.minimum(1.0, lower + 2.0 / d)
    return None, None


MAKERS: dict[str, Maker] = {
    "ball_hinge": _ball_hinge,
    "dirty_model": _dirty_model,
    "group_boosting": _group_boosting,
    "l1_ball_glm": _l1_ball_glm,
    "l12_glm": _losses(exact.l12),
    "l12_hinge": _hinges(exact.l12),
    "l1inf_glm": _losses(exact.l1inf),
    "l1inf_hinge": _hinges(exact.l1inf),
    "portfolio": _portfolio,
    "ridge_hinge": _ridge_hinge,
    "sparse_low_rank": _sparse_low_rank,
    "task_relationships": _task_relationships,
    "trace_norm_glm": _trace_norm_glm,
}


# Instances that once had false bounds

_ULP = 2.0**-52
_HINGE = np.array([[4.0, 4.0], [1.0, 1.0 + _ULP], [5.0, 5.0]]), np.array([1.0, 1.0, -1.0])
_SQUARES = np.array([[1.0, 1.0], [1.0, 1.0 + _ULP], [-1.0, -1.0]]), np.array([4.0, 1.0, 5.0])
_SEPARABLE = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.25], [1.0, 1.0, 0.0], [0.5, -0.5, 1.0]])
_ONES, _CLASS = np.ones(4), np.array([1.0, -1.0, 1.0, 1.0])

#: The norms of losses that are not hinges.
_NORMS = {"l1inf_glm": exact.l1inf, "l12_glm": exact.l12, "l1_ball_glm": exact.l1_of_columns, "trace_norm_glm": trace_norm}

#: Those of which the reduction is told.
_REDUCED = ("l1inf_glm", "l12_glm")


def _tasks(X: Array, *targets: Array) -> Raw:
    return Raw((frozen(X),) * len(targets), targets, False)


def _hinge_case(scale: float, **parameters: float) -> Case:
    X, y = _HINGE
    return lambda cls: linear(cls, _tasks(scale * X, y), exact.l1inf, "sum", {**parameters, "reduction": "sum"})


def _loss_case(problem: str, raw: Raw, reduction: str, loss: str = "squared", **parameters: float) -> Case:
    told = {"loss": loss, **parameters} | ({"reduction": reduction} if problem in _REDUCED else {})
    return lambda cls: linear(cls, raw, _NORMS[problem], reduction, told)


def _ball_case(norm: str) -> Case:
    return lambda cls: _balls(cls, _tasks(*_HINGE), [1e17], norm, "sum")


def _near_one(seed: int) -> Case:
    return lambda cls: portfolio(cls, 1.0 + 1e-6 * np.random.default_rng(seed).standard_normal((5, 3)))


def _far_ridge(scale: float, ridge: float) -> Case:
    X, y = _HINGE
    return lambda cls: _ridge(cls, _tasks(scale * X, y), ridge)


def _far_relationships(ridge: float, coupling: float) -> Case:
    return lambda cls: _relationships(cls, _tasks(2.0**-1040 * _SQUARES[0], 0.0 * _SQUARES[1]), ridge, coupling)


def _thirds(problem: str) -> Case:
    """A limit of a multiple of the dual point that is 5/3 of the smallest number, and targets that bring it back into the range."""
    raw = _tasks(np.array([[1.0], [2.0]]), np.array([2.0**600, 2.0**601]))
    return _loss_case(problem, raw, "mean" if problem in _REDUCED else "sum", penalty=5 * 5e-324)


_MIRRORED = _tasks(_SQUARES[0], _SQUARES[1], -_SQUARES[1])

#: By the name of the problem, a colon, and what is odd about them.
REPRODUCERS: tuple[tuple[str, Case], ...] = (
    ("l1inf_hinge: rows of one direction but for a unit in the last place, a huge radius", _hinge_case(1.0, radius=1e17)),
    ("l1inf_hinge: the same in other units", _hinge_case(2.0**52, radius=3.0)),
    ("l1inf_hinge: the same with a tiny penalty", _hinge_case(1.0, penalty=1e-18)),
    ("ball_hinge: the same in an l1 ball", _ball_case("l1")),
    ("ball_hinge: the same in an l2 ball", _ball_case("l2")),
    *((f"{problem}: squares of the same, a huge radius", _loss_case(problem, _tasks(*_SQUARES), "sum", radius=1e17)) for problem in _NORMS),
    *(
        (f"{problem}: squares of the same, a tiny penalty", _loss_case(problem, _tasks(*_SQUARES), "sum", penalty=1e-18))
        for problem in _NORMS
    ),
    ("portfolio: relatives near 1", _near_one(0)),
    ("portfolio: other relatives near 1", _near_one(1)),
    # A radius with which the losses come near 0, and lose their digits.
    (
        "l1_ball_glm: classes all but separated",
        _loss_case("l1_ball_glm", _tasks(_SEPARABLE, _CLASS, -_CLASS), "mean", "multiclass", radius=30.0),
    ),
    (
        "trace_norm_glm: labels all but separated",
        _loss_case("trace_norm_glm", _tasks(_SEPARABLE, _ONES, _ONES), "sum", "logistic", radius=60.0),
    ),
    ("ridge_hinge: huge features and a ridge whose double overflows", _far_ridge(1e169, 1e308)),
    ("ridge_hinge: features of which compensated products overflow", _far_ridge(2.0**1010, 2.0**-40)),
    ("ridge_hinge: coefficients whose squares vanish", _far_ridge(2.0**-1040, 2.0**540)),
    *((f"{problem}: a penalty over a dual norm that is 5/3 of the smallest number", _thirds(problem)) for problem in _NORMS),
    *(
        (
            f"trace_norm_glm: a radius of {units} times the smallest number",
            _loss_case("trace_norm_glm", _MIRRORED, "sum", radius=units * 5e-324),
        )
        for units in (5, 7, 11)
    ),
    *(
        (f"task_relationships: ridge {ridge:g} and coupling {coupling:g} on tiny data", _far_relationships(ridge, coupling))
        for ridge, coupling in ((2.0**540, 0.0), (0.0, 2.0**540))
    ),
)
