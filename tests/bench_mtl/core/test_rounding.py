"""Enclosures against exact rational arithmetic, on entries of unlike sizes, tiny and huge ones."""

from contextlib import nullcontext
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact_values import rational, require_between, unlike

from bench_mtl.core.rounding import (
    LARGEST,
    Interval,
    compensated,
    enclose_dot,
    entropies,
    euclidean_norms,
    gamma,
    quotient,
    soft_plus,
)
from bench_mtl.model.norms import enclose_lengths

pytestmark = pytest.mark.numerics


@pytest.mark.parametrize("seed", range(3))
def test_operations_are_enclosed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, signs = unlike(rng, 40), unlike(rng, 40), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    x, y = Interval.around(a, 1e-9 * np.abs(a)), Interval.exact(b)
    ra, rb = rational(a), rational(b)
    for found, exact in (
        (x + y, ra + rb),
        (x - y, ra - rb),
        (1.0 - x, 1 - ra),
        (x * y, ra * rb),
        (x * b, ra * rb),
        (Interval.exact(a) * Interval.exact(b), ra * rb),
        (x.square(), ra * ra),
        (x.magnitude(), abs(ra)),
        (-x, -ra),
        (x.signed(signs), ra * rational(signs)),
        (x.positive_part(), np.maximum(ra, 0)),
        (x.at_most(0.5), np.minimum(ra, Fraction(1, 2))),
        (x / (y.magnitude() + 1.0), ra / (abs(rb) + 1)),
        (x.sum(), [ra.sum()]),
        (x.reshape(8, 5).sum(axis=0), ra.reshape(8, 5).sum(axis=0)),
        (x.reshape(8, 5).largest(axis=1), ra.reshape(8, 5).max(axis=1)),
        (enclose_dot(a, b), [(ra * rb).sum()]),
        (euclidean_interval(a), [(ra * ra).sum()]),
    ):
        require_between(found, exact)
    assert np.all(np.isinf((x / Interval(-1.0, 1.0)).width))


@pytest.mark.parametrize("power", [-1040, -1022, -540, 0, 500, 1010])
@pytest.mark.parametrize("with_compensation", [False, True])
def test_products_and_quotients_are_enclosed_at_the_ends_of_the_range(power: int, with_compensation: bool) -> None:
    rng = np.random.default_rng(power % 97)
    a, b = np.ldexp(rng.standard_normal((2, 6)), [[power], [-power // 2]])
    with np.errstate(all="ignore"), compensated() if with_compensation else nullcontext():
        for x, y in ((a, a), (a, b), (a[:1], b[:1])):
            found = enclose_dot(x, y)
            low, high = found.ends
            exact = (rational(x) * rational(y)).sum()
            assert low == -np.inf or Fraction(low) <= exact
            assert high == np.inf or exact <= Fraction(high)
        for x, y in zip(np.abs(a).tolist(), np.abs(b).tolist(), strict=True):
            low, high = quotient(x, Interval.exact(y)).ends
            assert Fraction(low) <= Fraction(x) / Fraction(y)
            assert high == np.inf or Fraction(x) / Fraction(y) <= Fraction(high)
        back = Interval.exact(a).ldexp(-50)
    require_between(back, rational(a) / 2**50)


def test_a_power_of_two_beyond_the_range_is_above_the_largest_number() -> None:
    with np.errstate(over="ignore"):
        assert Interval.exact(np.float64(1.0)).ldexp(2000).ends == (LARGEST, np.inf)
        assert Interval.exact(np.float64(-1.0)).ldexp(2000).ends == (-np.inf, -LARGEST)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_bounds_nothing(odd: float) -> None:
    for X in (np.array([odd, 1.0]), np.array([1e-200, odd])):
        assert np.all(euclidean_norms(X) == np.inf)
        assert enclose_dot(X, X).ends == (-np.inf, np.inf)
    with np.errstate(all="ignore"):
        assert quotient(1.0, Interval.exact(np.nan)).ends == (0.0, np.inf)
        upper = enclose_lengths(Interval.exact(np.array([[odd, 1.0]])), axis=1).upper
    assert not np.isfinite(upper).any()


def euclidean_interval(a: Any) -> Interval:
    """The square of the norm is no more than the square of its bound."""
    return Interval(0.0, float(euclidean_norms(a)[0]) ** 2 * (1 + 1e-15))


@pytest.mark.parametrize("name", ["log", "log1p", "exp", "entropies", "soft_plus", "root"])
def test_functions_are_enclosed(name: str) -> None:
    rng = np.random.default_rng(1)
    domain = {"exp": rng.uniform(-700.0, 700.0, 200), "soft_plus": rng.uniform(-700.0, 700.0, 200)}
    p = np.concatenate([10.0 ** rng.uniform(-300, 0, 150), 1.0 - 10.0 ** rng.uniform(-15, -1, 50)])
    x = domain.get(name, p)

    def precise(v: float) -> Decimal:
        d = Decimal(v)
        return {
            "log": d.ln,
            "log1p": lambda: (1 + d).ln(),
            "exp": d.exp,
            "entropies": lambda: -d * d.ln(),
            "soft_plus": lambda: (1 + d.exp()).ln(),
            "root": d.sqrt,
        }[name]()

    functions = {"entropies": entropies, "soft_plus": soft_plus}
    found = functions[name](Interval.exact(x)) if name in functions else getattr(Interval.exact(x), name)()
    with localcontext() as context:
        context.prec = 400 if name in ("soft_plus", "log1p") else 60
        require_between(found, [Fraction(precise(float(v))) for v in x])
    assert np.all(found.width <= 1e-13 * np.abs(found.upper) + 1e-300)


def test_an_entropy_between_bounds_has_its_peak() -> None:
    found = entropies(Interval(np.array([0.2, 0.0, 0.9]), np.array([0.9, 1.0, 1.0])))
    assert np.all(found.upper[:2] >= np.exp(-1.0))
    assert np.all(found.upper[:2] <= 0.36788)
    assert np.all(found.lower <= [-0.9 * np.log(0.9), 0.0, 0.0])


def test_gamma_has_no_bound_for_sums_beyond_the_precision() -> None:
    assert gamma(10) >= 10 * 2.0**-53
    assert gamma(2**52) == np.inf
