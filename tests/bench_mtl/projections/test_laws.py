"""What holds for every projection and proximal operator: the twin, the set, no move of what is inside, any layout, scale and bad input."""

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from projection_cases import KINDS, U, cases, distance, exact_sum, none, norms, vector_cases

from bench_mtl.core.errors import InputError
from bench_mtl.projections import (
    METHODS,
    project_box_simplex,
    project_l1_ball,
    project_l1inf_ball,
    project_l2_ball,
    project_l12_ball,
    project_simplex,
    project_trace_ball,
    prox_l1inf,
    prox_l12,
    prox_squared_trace,
    prox_trace,
    soft_threshold,
)
from bench_mtl.validation import slow_projections as slow

pytestmark = pytest.mark.numerics


@dataclass(frozen=True)
class Operator:
    """A projection or proximal operator in one form, its twin, and for balls the exact norm (of each ball) with its slack in units of u."""

    fast: Callable[..., Any]
    twin: Callable[..., Any]
    ndim: int = 2
    norm: Callable[[np.ndarray], Any] | None = None
    slack: float = 0.0
    keywords: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-13
    same_twice: bool = True

    def __call__(self, A: np.ndarray, size: float, **others: Any) -> Any:
        return self.fast(A, size, **self.keywords, **others)

    def expected(self, A: np.ndarray, size: float) -> np.ndarray:
        return np.asarray(self.twin(A, size, **{name: value for name, value in self.keywords.items() if name != "method"}))


def box(v: np.ndarray, share: float, project: Callable[..., Any] = project_box_simplex, **others: Any) -> Any:
    """Within 0 and the size of the largest entry, a `share` of the most that can be had."""
    top = float(np.abs(v).max(initial=0.0)) / 4
    return project(v, share / (1.0 + share) * top * np.size(v), 0.0, top, **others)


def trace(B: np.ndarray) -> Any:
    return np.linalg.svd(B.astype(np.float64), compute_uv=False).sum()


def maxima(B: np.ndarray) -> Any:
    return exact_sum(np.abs(B).max(axis=1, initial=0.0))


def l1(axis: int | None = None) -> Callable[[np.ndarray], Any]:
    return lambda B: np.sort(np.abs(B.astype(np.longdouble)), axis=axis).sum(axis=axis)


def operators() -> Iterator[tuple[str, Operator]]:
    for method in METHODS:
        yield f"simplex {method}", Operator(project_simplex, slow.simplex, 1, keywords={"method": method}, same_twice=False)
        for nonneg in (False, True):
            keywords = {"method": method, "nonneg": nonneg}
            yield f"l1 {method}{' nonneg' * nonneg}", Operator(project_l1_ball, slow.l1_ball, 1, l1(), 4, keywords)
    for axis in (-1, 0):
        yield f"simplex axis {axis}", Operator(project_simplex, slow.simplex, keywords={"axis": axis}, same_twice=False)
        yield f"l1 axis {axis}", Operator(project_l1_ball, slow.l1_ball, 2, l1(axis), 4, {"axis": axis})
    yield "box", Operator(box, partial(box, project=slow.box_simplex), 1, same_twice=False)
    yield "soft threshold", Operator(soft_threshold, slow.soft_threshold)
    for of in (None, 0, 1):
        yield f"l2 axis {of}", Operator(project_l2_ball, slow.l2_ball, 2, partial(norms, axis=of), 8, {"axis": of})
    yield "l1,2", Operator(project_l12_ball, slow.l12_ball, 2, lambda B: exact_sum(norms(B, 1)), 16)
    yield "prox l1,2", Operator(prox_l12, slow.prox_l12)
    for nonneg in (False, True):
        for method in ("newton", "merge"):
            keywords = {"method": method, "nonneg": nonneg}
            yield f"l1,inf {method}{' nonneg' * nonneg}", Operator(project_l1inf_ball, slow.l1inf_ball, 2, maxima, 4, keywords)
        yield f"prox l1,inf{' nonneg' * nonneg}", Operator(prox_l1inf, slow.prox_l1inf, keywords={"nonneg": nonneg})
    for method in ("auto", "svd", "gram", "partial"):
        keywords = {"method": method}
        yield f"trace {method}", Operator(project_trace_ball, slow.trace_ball, 2, trace, 3000, keywords, 1e-12, same_twice=False)
        yield f"prox trace {method}", Operator(prox_trace, slow.prox_trace, keywords=keywords, tolerance=1e-12)
        yield f"prox squared trace {method}", Operator(prox_squared_trace, slow.prox_squared_trace, keywords=keywords, tolerance=1e-12)


OPERATORS = dict(operators())
BALLS = {name: operator for name, operator in OPERATORS.items() if operator.norm}
#: The same once for each function: for what does not depend on the method.
FUNCTIONS = {name: operator for name, operator in OPERATORS.items() if operator.keywords.get("method") in (None, "newton", "auto")}

RATIOS = (1e-300, 1e-12, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-12, 1.0, 1.5)


def inputs(operator: Operator) -> Iterator[tuple[str, np.ndarray, float]]:
    """Data of all kinds with sizes around every corner of the operator."""
    if operator.ndim == 1:
        for name, v in vector_cases():
            largest = float(np.abs(v).max())
            if operator.fast is box:  # whose twin's bracket does not get at smaller ones
                yield from ((f"{name}, {ratio}", v, ratio) for ratio in RATIOS[2:] if 1e-100 < largest < 1e300)
            elif operator.norm or largest > 1e-320:
                with np.errstate(over="ignore"):
                    norm = min(float(np.abs(v).sum()), 1e308)
                yield from ((f"{name}, {ratio}", v, ratio * norm) for ratio in RATIOS if ratio * norm > 0.0)
        return
    spectral = operator.tolerance > 1e-13
    for kind in KINDS:
        some = list(cases(kind))
        for case in some[:: 11 if spectral else 3] if operator.fast is not project_l1inf_ball else some:
            if not spectral or 1e-140 < np.abs(case.A).max() < 1e140:
                yield case.name, case.A, case.radius


@pytest.mark.parametrize("name", OPERATORS)
def test_it_is_the_twin_within_its_set_and_twice_is_once(name: str) -> None:
    operator = OPERATORS[name]

    def failures() -> Iterator[str]:
        for case, A, size in inputs(operator):
            B = operator(A, size)
            twin = operator.expected(A, size)
            scale = max(np.abs(A).max(initial=0.0), size / A.size if operator.fast is project_simplex else 0.0)
            error = distance(B, twin, np.array([scale]))
            if not error <= operator.tolerance:
                yield f"{case}: off by {error:.1e}"
            if operator.keywords.get("nonneg") and not (B >= 0.0).all():
                yield f"{case}: negative"
            if operator.norm is None:
                continue
            norm = np.asarray(operator.norm(B), np.longdouble)
            if not (norm <= np.longdouble(size) * (1 + operator.slack * U)).all():
                yield f"{case}: outside by {norm.max() / np.longdouble(size) - 1 if size else np.inf:.1e}"
            full = np.asarray(operator.norm(np.asarray(twin)), np.longdouble)
            if size > A.size * 1e-290 and not (norm >= full * (1 - 1e-12) - 1e-13 * np.longdouble(size)).all() and operator.slack < 100:
                yield f"{case}: a part of the radius is lost"
            if operator.same_twice and not np.array_equal(operator(B, size), B):
                yield f"{case}: moves again"

    none(failures())


@pytest.mark.parametrize("name", [name for name in OPERATORS if name.startswith("simplex")])
def test_the_mass_of_a_simplex_is_met(name: str) -> None:
    operator = OPERATORS[name]
    for case, A, size in inputs(operator):
        if size > A.size * 1e-300 and (A.ndim == 1 or 0 not in A.shape):
            axis = operator.keywords.get("axis", -1)
            total = np.sort(np.asarray(operator(A, size), np.longdouble), axis=axis).sum(axis=axis)
            assert np.abs(total / np.longdouble(size) - 1).max() <= 8 * U, case


@pytest.mark.parametrize("name", BALLS)
def test_what_is_inside_stays_and_what_is_just_outside_does_not(name: str) -> None:
    operator, rng = BALLS[name], np.random.default_rng(3)
    for shape in ((7,), (5000,)) if operator.ndim == 1 else ((6, 5), (40, 50)):
        A = np.abs(rng.standard_normal(shape))
        norm = float(np.max(operator.norm(A)))
        assert np.array_equal(operator(A, norm * (1 + 1e-12)), A)
        B = operator(A, norm * (1 - 100 * operator.slack * U))
        assert not np.array_equal(B, A)
        assert np.abs(B - A).max() <= 1e-9 * norm
        assert not operator(A, 0.0).any()


elements = st.one_of(st.floats(-100, 100, allow_subnormal=False), st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, 2.0**-40, 1e-150]))
pairs = st.tuples(st.integers(1, 9), st.integers(1, 9)).flatmap(
    lambda shape: st.tuples(*2 * [arrays(np.float64, shape, elements=elements)])
)
sizes = st.one_of(st.floats(1e-3, 1e3), st.floats(1e-9, 10.0))


@pytest.mark.parametrize("name", OPERATORS)
def test_it_is_firmly_nonexpansive_and_order_and_units_do_not_matter(name: str) -> None:
    operator = OPERATORS[name]

    @given(pairs, sizes, st.integers(-300, 300), st.randoms(use_true_random=False))
    def laws(pair: tuple[np.ndarray, np.ndarray], size: float, exponent: int, random: Any) -> None:
        A, Z = (a.ravel() for a in pair) if operator.ndim == 1 else pair
        B = operator(A, size)
        scale = float(max(np.abs(A).max(), np.abs(Z).max(), size))
        rounding = 100 * operator.tolerance * scale
        if operator.fast is not box:
            apart = B - operator(Z, size)
            assert np.vdot(apart, apart) <= np.vdot(apart, A - Z) + rounding * (np.abs(A).sum() + np.abs(Z).sum() + size)
        if operator.norm and operator.slack < 100:  # B is the nearest of its ball: no corner of it is farther on the way to A
            assert np.vdot(A - B, operator(Z, size) - B) <= rounding * (np.abs(A).sum() + size)
        order = list(range(len(A)))
        random.shuffle(order)
        assert np.abs(operator(A[order], size) - B[order]).max() <= rounding
        big = A.copy()
        big[np.abs(A) < 2.0**-40] = 0.0
        unit = 0 if operator.fast in (box, prox_squared_trace) else exponent
        moved = np.ldexp(operator(np.ldexp(big, exponent), float(np.ldexp(size, unit))), -exponent)
        assert np.abs(moved - operator(big, size)).max() <= rounding

    laws()


@pytest.mark.parametrize("name", OPERATORS)
def test_memory_orders_and_outputs(name: str) -> None:
    operator = OPERATORS[name]
    A = np.random.default_rng(1).standard_normal(2400 if operator.ndim == 1 else (60, 40))
    size = 5.0 if operator.fast is not box else 0.3
    B = operator(A, size)
    spread = np.repeat(A, 2, axis=-1)
    read_only = A.copy()
    read_only.flags.writeable = False
    for view in (A, spread[..., ::2], A[::-1].copy()[::-1], np.asfortranarray(A), read_only):
        before = view.copy()
        assert np.array_equal(operator(view, size), B)
        assert np.array_equal(view, before)
        out = np.full(A.shape, np.nan)
        assert operator(view, size, out=out) is out
        assert np.array_equal(out, B)
    result = operator(A, 1e9 if operator.fast is not box else size)
    assert not np.shares_memory(result, A)
    own = A.copy()
    assert operator(own, size, out=own) is own
    assert np.array_equal(own, B)
    overlapping = np.concatenate([A.ravel(), np.zeros(1)])
    operator(overlapping[:-1].reshape(A.shape), size, out=overlapping[1:].reshape(A.shape))
    assert np.array_equal(overlapping[1:].reshape(A.shape), B)
    bad = [np.zeros(3), np.zeros(A.shape, np.float32), np.zeros(A.shape).tolist(), spread[..., ::2], read_only]
    for out in (*bad, *([np.asfortranarray(A)] if A.ndim == 2 else [])):
        with pytest.raises(InputError, match=r"out must be a writable float64 array of shape .* in C order"):
            operator(A, size, out=out)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("scale", [1e-40, 1e-38, 1.0, 1e36])
def test_float32_is_the_rounded_answer_and_stays_in_its_ball(name: str, scale: float) -> None:
    operator = FUNCTIONS[name]
    for n in (5, 50):
        A = (scale * np.random.default_rng(n).standard_normal(n if operator.ndim == 1 else (n, 7))).astype(np.float32)
        for ratio in (1e-3, 0.3, 0.99):
            size = ratio * float(np.abs(A.astype(float)).sum()) if operator.fast is not box else ratio
            B, wide = operator(A, size), operator(A.astype(np.float64), size)
            assert B.dtype == np.float32
            assert np.abs(B - wide).max() <= 2.0**-23 * np.abs(wide).max() + 2.0**-149
            if operator.norm and operator.slack < 100:
                assert (operator.norm(B) <= np.longdouble(size) * (1 + operator.slack * U)).all()
            out = A.copy()
            assert operator(out, size, out=out) is out
            assert np.array_equal(out, B)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bad_input_is_refused_by_name_and_left_alone(name: str) -> None:
    operator = FUNCTIONS[name]
    A = np.ones(12 if operator.ndim == 1 else (4, 3))
    for bad, kind in ((np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")):
        spoilt = A.copy()
        spoilt.flat[7] = bad
        spoilt.flat[9] = np.nan
        place = "7" if A.ndim == 1 else r"\(2, 1\)"
        for size in (0.5, 1e9) if operator.fast is not box else ():
            for out in (None, spoilt):
                before = spoilt.copy()
                with pytest.raises(InputError, match=rf"[Av] has {kind} at index {place}"):
                    operator(spoilt, size, out=out)
                assert np.array_equal(spoilt, before, equal_nan=True)
        if operator.fast is not box:
            with pytest.raises(InputError, match=r"(mass|radius|weight|threshold) must be finite"):
                operator(A, bad)
    if operator.fast is box:
        return
    for size in (-1.0, -5e-324):
        with pytest.raises(InputError, match="must be finite and at least 0"):
            operator(A, size)
    for size in ("one", None, True):
        with pytest.raises(InputError, match="must be a number"):
            operator(A, size)  # type: ignore[arg-type]
    masked = np.ma.array(np.ones(A.shape), mask=np.arange(A.size).reshape(A.shape) == 1)
    for other in (np.array([["a"]]), np.array([[1j]]), [[1.0], [1.0, 2.0]], None, masked):
        with pytest.raises(InputError, match=r"must be an array of real numbers|must have"):
            operator(other, 1.0)  # type: ignore[arg-type]
    if operator.fast is not soft_threshold:
        with pytest.raises(InputError, match=r"must have .* dimension"):
            operator(np.zeros((2, 2, 2)), 1.0)
    if "method" in operator.keywords:
        for method in ("nwton", None, np.array(["newton", "sort"])):
            with pytest.raises(InputError, match="method must be one of"):
                operator.fast(A, 1.0, method=method)
    if "axis" in operator.keywords:
        for axis in (2, -3, "rows", np.array([0, 1])):
            with pytest.raises(InputError, match="axis must be"):
                operator.fast(A, 1.0, axis=axis)
        np.testing.assert_array_equal(operator.fast(A, 1.0, axis=A.ndim - 1), operator.fast(A, 1.0, axis=-1))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_and_whole_numbers(name: str) -> None:
    operator = FUNCTIONS[name]
    shapes = ((0,),) if operator.ndim == 1 else ((0, 3), (3, 0), (0, 0))
    for shape in shapes if operator.fast not in (project_simplex, box) else ():
        assert operator(np.zeros(shape), 1.0).shape == shape
    whole = np.arange(12) if operator.ndim == 1 else np.arange(12).reshape(4, 3)
    for kind in (np.int8, np.uint8, np.int64):
        assert np.array_equal(operator(whole.astype(kind), 2), operator(whole.astype(float), 2.0))
    assert np.array_equal(operator(whole.tolist(), 2), operator(whole.astype(float), 2.0))
    with pytest.raises(InputError, match=r"sparse|must have"):
        project_simplex(sp.csr_array(np.eye(2)))


@pytest.mark.parametrize(
    "name", ["simplex newton", "l1 newton", "l1 axis -1", "soft threshold", "l2 axis None", "l2 axis 1", "l1,inf newton", "prox l1,inf"]
)
def test_nothing_that_grows_is_allocated_where_out_is_given(name: str) -> None:
    operator = OPERATORS[name]
    for shape in ((400_000,),) if operator.ndim == 1 else ((400, 1000), (40_000, 10)):
        A = np.random.default_rng(0).standard_normal(shape)
        out = np.empty_like(A)
        peaks = []
        for _ in range(3):  # of which the least is the operator's own: other threads and the collector's callbacks are traced too
            tracemalloc.start()
            operator(A, 100.0, out=out)
            operator(A, 1.0, out=out)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert min(peaks) < 100_000 + (64 * len(A) if A.ndim == 2 else 0)  # a few numbers a row
