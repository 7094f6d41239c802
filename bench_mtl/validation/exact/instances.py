"""Small nasty instances of every problem: rows equal to a unit in the last place, sums that cancel, far scales, odd radii."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
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
    """Yield `count` instances of a problem, the named ones first; none of one that has no reference here. `classes` has them by name."""
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


def _raw(rng: np.random.Generator, targets: Callable[[np.random.Generator, Array], Array]) -> Raw:
    m, d = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    together = bool(rng.random() < 0.5)
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


#: What the targets of a loss are drawn by, and the losses that problems of any loss take turns with.
_TARGETS = {"squared": _reals, "huber:0.5": _reals, "logistic": _labels, "hinge": _labels}
_LOSSES, _REDUCTIONS = ("squared", "huber:0.5", "logistic"), ("mean", "sum")


def _one_of(rng: np.random.Generator, words: Sequence[str]) -> str:
    return str(rng.choice(words))


def _penalty(rng: np.random.Generator) -> Any:
    return _PENALTIES[int(rng.integers(len(_PENALTIES)))]


def _built(cls: type[Problem], raw: Raw, parameters: dict[str, Any], reference: Callable[[Any], Reference]) -> Instance:
    """Return the problem on these data, with the reference that a function makes of it."""
    problem = cls(raw.data, **parameters)  # type: ignore[call-arg]
    words = ", ".join(f"{name}={value}" for name, value in parameters.items())
    layout = f"{'shared' if raw.is_shared else 'per task'} {'CSR' if raw.sparse else 'dense'}"
    return Instance(f"{words}, {layout}", problem, reference(problem))


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
    loss = parameters.get("loss", "hinge")
    tasks = raw.tasks if loss != "multiclass" else Tasks.of(raw.blocks, [(y + 1.0) / 2.0 for y in raw.targets])
    of_penalty, ridge = penalised or norm, Fraction(parameters.get("ridge", 0.0)) / 2
    if "feature_factors" in parameters:
        of_penalty = exact.of_features(of_penalty, as_fractions(parameters["feature_factors"]))
    signs = np.ones(tasks.shape) if parameters.get("nonnegative") else signs

    def squares(W: Exact) -> Enclosure:
        return Enclosure.of(ridge * (W * W).sum())

    def reference(problem: Any) -> Reference:
        ball = None if problem.radius is None else Ball(norm, Fraction(problem.radius))
        penalty = None if problem.penalty is None else (of_penalty, Fraction(problem.penalty))
        return Regularised(tasks, loss, reduction, (ball,), (penalty,), signs, extra=squares if ridge else None)

    return _built(cls, raw, parameters, reference)


def _extras(parameters: dict[str, Any], raw: Raw, rng: np.random.Generator) -> dict[str, Any]:
    """Return parameters of a problem under a norm of rows, some of them with options and another loss; drawn after all else."""
    kind, d = rng.integers(8), raw.tasks.shape[0]
    if kind == 0 and parameters["loss"] != "logistic":
        parameters["loss"] = "quantile:0.3"
    if kind in (1, 2):
        parameters["nonnegative"] = True
    if kind in (2, 3, 4) and "penalty" in parameters:
        parameters["ridge"] = float(rng.choice(_RIDGES))
    if kind in (0, 2, 4) and isinstance(parameters.get("penalty"), float):
        parameters["feature_factors"] = rng.choice([1.0, 1e-9, 0.3, 1e9, 3.0, 0.0 if "ridge" in parameters else 0.1], size=d)
    return parameters


def _drawn(norm: exact.Norm, losses: Sequence[str] = _LOSSES, reductions: Sequence[str] = _REDUCTIONS) -> Maker:
    """Return what draws instances of a problem with one norm; of one loss, or one reduction, none is told to the problem."""

    def make(cls: type[Problem], rng: np.random.Generator) -> Instance:
        words = {}
        for name, choices in (("reduction", reductions), ("loss", losses)):
            if len(choices) > 1:
                words[name] = _one_of(rng, choices)
        parameters = _radius_or_penalty(rng) | words
        raw = _raw(rng, _TARGETS[words.get("loss", losses[0])])
        if len(words) == 2:
            parameters = _extras(parameters, raw, rng)
        return linear(cls, raw, norm, words.get("reduction", reductions[0]), parameters)

    return make


def _l1_ball_glm(cls: type[Problem], rng: np.random.Generator) -> Instance:
    loss = _one_of(rng, (*_LOSSES, "multiclass"))
    nonneg, balls = bool(rng.random() < 0.3), _one_of(rng, ("task", "all"))
    parameters = _radius_or_penalty(rng) | {"loss": loss, "nonneg": nonneg, "balls": balls}
    raw = _classes(rng)[0] if loss == "multiclass" else _raw(rng, _TARGETS[loss])
    norm, reduction = exact.l1_of_columns if balls == "task" else exact.l1, "mean" if loss in ("logistic", "multiclass") else "sum"
    return linear(cls, raw, norm, reduction, parameters, penalised=exact.l1, signs=np.ones(raw.tasks.shape) if nonneg else None)


def _ball_hinge(cls: type[Problem], rng: np.random.Generator) -> Instance:
    raw = _raw(rng, _labels)
    reduction, norm = _one_of(rng, _REDUCTIONS), _one_of(rng, ("l1", "l2"))
    return _balls(cls, raw, [float(radius) for radius in rng.choice(_RADII, size=len(raw.blocks))], norm, reduction)


def _balls(cls: type[Problem], raw: Raw, radii: list[float], norm: str, reduction: str) -> Instance:
    exactly = exact.l1 if norm == "l1" else exact.l12_of_columns
    columns = tuple(Ball(exactly, Fraction(radius)) for radius in radii)
    reference = Regularised(raw.tasks, "hinge", reduction, (None,), (None,), columns=columns)
    return _built(cls, raw, {"radius": radii, "norm": norm, "reduction": reduction}, lambda _: reference)


def _sparse_low_rank(cls: type[Problem], rng: np.random.Generator) -> Instance:
    loss = _one_of(rng, _LOSSES)
    raw = _raw(rng, _TARGETS[loss])
    penalty, radius = float(rng.choice(_RIDGES)), float(rng.choice(_RADII))
    balls, penalties = (None, Ball(trace_norm, Fraction(radius))), ((exact.l1, Fraction(penalty)), None)
    reference = Regularised(raw.tasks, loss, "sum", balls, penalties)
    return _built(cls, raw, {"penalty": penalty, "radius": radius, "loss": loss}, lambda _: reference)


def _dirty_model(cls: type[Problem], rng: np.random.Generator) -> Instance:
    loss, reduction = _one_of(rng, _LOSSES), _one_of(rng, _REDUCTIONS)
    raw = _raw(rng, _TARGETS[loss])

    def reference(problem: Any) -> Reference:
        penalties = (exact.l1inf, Fraction(problem.row_penalty)), (exact.l1, Fraction(problem.entry_penalty))
        return Regularised(raw.tasks, loss, reduction, (None, None), penalties)

    parameters = {"row_penalty": _penalty(rng), "entry_penalty": _penalty(rng), "loss": loss, "reduction": reduction}
    return _built(cls, raw, parameters, reference)


def _ridge(cls: type[Problem], raw: Raw, ridge: float) -> Instance:
    def penalty(W: Exact) -> Enclosure:
        return Enclosure.of(Fraction(ridge) * (W * W).sum())

    reference = Regularised(raw.tasks, "hinge", "mean", (None,), (None,), extra=penalty)
    return _built(cls, raw, {"ridge": ridge}, lambda _: reference)


def _task_relationships(cls: type[Problem], rng: np.random.Generator) -> Instance:
    raw = _raw(rng, _reals)
    ridge, coupling = (float(rng.choice((0.0, *_RIDGES))) for _ in range(2))
    return _relationships(cls, raw, ridge or (0.0 if coupling else 0.2), coupling)


def _relationships(cls: type[Problem], raw: Raw, ridge: float, coupling: float) -> Instance:
    def penalty(W: Exact) -> Enclosure:
        size = trace_norm(W)
        return Enclosure(size.low**2, size.high**2) * (Fraction(coupling) / 2) + Fraction(ridge) * (W * W).sum() / 2

    reference = Regularised(raw.tasks, "squared", "mean", (None,), (None,), factor=2, extra=penalty)
    return _built(cls, raw, {"ridge": ridge, "coupling": coupling}, lambda _: reference)


def _group_boosting(cls: type[Problem], rng: np.random.Generator) -> Instance:
    raw, labels = _classes(rng)
    norms = {"l12": exact.l12, "l1inf": exact.l1inf, "l1": exact.l1}
    loss, norm = _one_of(rng, ("logistic", "squared_hinge", "exponential", "hinge")), _one_of(rng, tuple(norms))

    def reference(problem: Any) -> Reference:
        return Boosting(as_fractions(raw.blocks[0]), labels, len(raw.blocks), loss, norms[norm], Fraction(problem.penalty))

    return _built(cls, raw, {"penalty": _penalty(rng), "loss": loss, "norm": norm}, reference)


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
    "l12_glm": _drawn(exact.l12),
    "l12_hinge": _drawn(exact.l12, ("hinge",)),
    "l1inf_glm": _drawn(exact.l1inf),
    "l1inf_hinge": _drawn(exact.l1inf, ("hinge",)),
    "portfolio": _portfolio,
    "ridge_hinge": lambda cls, rng: _ridge(cls, _raw(rng, _labels), float(rng.choice(_RIDGES))),
    "sparse_low_rank": _sparse_low_rank,
    "task_relationships": _task_relationships,
    "trace_norm_glm": _drawn(trace_norm, reductions=("sum",)),
}


# Instances that once had false bounds


def _tasks(X: Array, *targets: Array) -> Raw:
    return Raw((frozen(X),) * len(targets), targets, False)


_ULP = 2.0**-52
_X, _y = np.array([[4.0, 4.0], [1.0, 1.0 + _ULP], [5.0, 5.0]]), np.array([1.0, 1.0, -1.0])
_HINGE = _tasks(_X, _y)
_SQUARES = np.array([[1.0, 1.0], [1.0, 1.0 + _ULP], [-1.0, -1.0]]), np.array([4.0, 1.0, 5.0])
_MIRRORED = _tasks(_SQUARES[0], _SQUARES[1], -_SQUARES[1])
_SEPARABLE = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.25], [1.0, 1.0, 0.0], [0.5, -0.5, 1.0]])
_ONES, _CLASS = np.ones(4), np.array([1.0, -1.0, 1.0, 1.0])
#: Targets that bring a limit of a multiple of the dual point, 5/3 of the smallest number, back into the range.
_THIRDS = _tasks(np.array([[1.0], [2.0]]), np.array([2.0**600, 2.0**601]))

#: The norms of losses that are not hinges, and the problems of those that are told the reduction.
_NORMS = {"l1inf_glm": exact.l1inf, "l12_glm": exact.l12, "l1_ball_glm": exact.l1_of_columns, "trace_norm_glm": trace_norm}
_REDUCED = ("l1inf_glm", "l12_glm")


def _hinge_case(raw: Raw, **parameters: float) -> Case:
    return lambda cls: linear(cls, raw, exact.l1inf, "sum", {**parameters, "reduction": "sum"})


def _loss_case(problem: str, raw: Raw, reduction: str, loss: str = "squared", **parameters: float) -> Case:
    words = {"loss": loss, **parameters} | ({"reduction": reduction} if problem in _REDUCED else {})
    return lambda cls: linear(cls, raw, _NORMS[problem], reduction, words)


def _reproducers() -> Iterator[tuple[str, Case]]:
    yield "l1inf_hinge: rows of one direction but for a unit in the last place, a huge radius", _hinge_case(_HINGE, radius=1e17)
    yield "l1inf_hinge: the same in other units", _hinge_case(_tasks(2.0**52 * _X, _y), radius=3.0)
    yield "l1inf_hinge: the same with a tiny penalty", _hinge_case(_HINGE, penalty=1e-18)
    for norm in ("l1", "l2"):
        yield f"ball_hinge: the same in an {norm} ball", partial(_balls, raw=_HINGE, radii=[1e17], norm=norm, reduction="sum")
    for problem in _NORMS:
        reduction = "mean" if problem in _REDUCED else "sum"
        yield f"{problem}: squares of the same, a huge radius", _loss_case(problem, _tasks(*_SQUARES), "sum", radius=1e17)
        yield f"{problem}: squares of the same, a tiny penalty", _loss_case(problem, _tasks(*_SQUARES), "sum", penalty=1e-18)
        name = f"{problem}: a penalty over a dual norm that is 5/3 of the smallest number"
        yield name, _loss_case(problem, _THIRDS, reduction, penalty=5 * 5e-324)
    for seed in (0, 1):
        X = 1.0 + 1e-6 * np.random.default_rng(seed).standard_normal((5, 3))
        yield f"portfolio: relatives near 1, drawn from {seed}", partial(portfolio, X=X)
    # A radius with which the losses come near 0, and lose their digits.
    classes, labels = _tasks(_SEPARABLE, _CLASS, -_CLASS), _tasks(_SEPARABLE, _ONES, _ONES)
    yield "l1_ball_glm: classes all but separated", _loss_case("l1_ball_glm", classes, "mean", "multiclass", radius=30.0)
    yield "trace_norm_glm: labels all but separated", _loss_case("trace_norm_glm", labels, "sum", "logistic", radius=60.0)
    for what, scale, ridge in (
        ("huge features and a ridge whose double overflows", 1e169, 1e308),
        ("features of which compensated products overflow", 2.0**1010, 2.0**-40),
        ("coefficients whose squares vanish", 2.0**-1040, 2.0**540),
    ):
        yield f"ridge_hinge: {what}", partial(_ridge, raw=_tasks(scale * _X, _y), ridge=ridge)
    for units in (5, 7, 11):
        name = f"trace_norm_glm: a radius of {units} times the smallest number"
        yield name, _loss_case("trace_norm_glm", _MIRRORED, "sum", radius=units * 5e-324)
    tiny = _tasks(2.0**-1040 * _SQUARES[0], 0.0 * _SQUARES[1])
    for ridge, coupling in ((2.0**540, 0.0), (0.0, 2.0**540)):
        name = f"task_relationships: ridge {ridge:g} and coupling {coupling:g} on tiny data"
        yield name, partial(_relationships, raw=tiny, ridge=ridge, coupling=coupling)


#: By the name of the problem, a colon, and what is odd about them.
REPRODUCERS: tuple[tuple[str, Case], ...] = tuple(_reproducers())
