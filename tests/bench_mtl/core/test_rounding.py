"""Enclosures against exact rational arithmetic, on entries of unlike sizes, tiny and huge ones."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact_values import rational, require_between, unlike

from bench_mtl.core.rounding import (
    Interval,
    enclose_dot,
    entropies,
    euclidean_norms,
    gamma,
    soft_plus,
)

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
