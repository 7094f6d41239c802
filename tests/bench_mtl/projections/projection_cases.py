"""The cases on which projections are compared with their slow twins (`bench_mtl.validation.slow_projections`), and measures of results."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

#: Unit roundoff.
U = 2.0**-53


def distance(B: np.ndarray, expected: np.ndarray, A: np.ndarray) -> float:
    """max |B - expected| relative to max |A|; two spacings of subnormal numbers, which a feasible result needs, are not counted."""
    if not A.size:
        return 0.0
    gap = np.abs(B.astype(np.longdouble) - expected).max() - 2 * np.longdouble(np.finfo(B.dtype).smallest_subnormal)
    return float(max(gap, np.longdouble(0)) / max(np.abs(A.astype(np.longdouble)).max(), np.longdouble(1e-320)))


def sum_of_maxima(B: np.ndarray) -> float:
    """||B||_{1,inf}, rounded once."""
    return math.fsum(np.abs(B).max(axis=1, initial=0.0).tolist())


def within(B: np.ndarray, radius: float) -> bool:
    """Whether ||B||_{1,inf} <= radius, without rounding."""
    maxima = np.abs(B).max(axis=1, initial=0.0).astype(float)
    shift = -64 if max(radius, maxima.max(initial=0.0)) > 1e280 else 0  # a sum of the largest numbers has to stay finite
    return math.fsum(np.ldexp([*maxima, -radius], shift).tolist()) <= 0.0


def feasible(B: np.ndarray, radius: float) -> bool:
    """Whether ||B||_{1,inf} <= radius (1 + 4 u)."""
    return within(B, radius * (1.0 + 4.0 * U))


def none(failures: Iterator[str]) -> None:
    found = list(failures)
    assert not found, f"{len(found)} cases, the first: {found[0]}"


def norms(A: np.ndarray, axis: int | None) -> np.ndarray:
    """Euclidean norms in long double, whose range the squares of doubles do not leave."""
    return np.sqrt((A.astype(np.longdouble) ** 2).sum(axis=axis, keepdims=True))


def exact_sum(w: np.ndarray) -> np.longdouble:
    """The sum, to 2^-60 or so, of any scale."""
    return np.sort(w.astype(np.longdouble), axis=None).sum()


@dataclass(frozen=True)
class Case:
    """One projection to make, and a name to find it again."""

    name: str
    A: np.ndarray
    radius: float


def _one_dominates(rng: np.random.Generator, d: int, m: int) -> np.ndarray:
    A = rng.standard_normal((d, m))
    A[rng.integers(d)] *= 1e6
    return A


def _peak_among_equals(rng: np.random.Generator, d: int, m: int) -> np.ndarray:
    A = np.full((d, m), 0.7)
    A[0, rng.integers(m)] = 50.0
    return A


def _subnormal(rng: np.random.Generator, d: int, m: int) -> np.ndarray:
    return np.ldexp(rng.integers(-(2**20), 2**20, (d, m)).astype(float), -1074)


#: The data of the cases: the random, the tied, the tiny and those that lead searches astray.
KINDS: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "gauss": lambda rng, d, m: rng.standard_normal((d, m)),
    "uniform": lambda rng, d, m: rng.random((d, m)),
    "ties": lambda rng, d, m: rng.integers(-3, 4, (d, m)).astype(float),
    "equal rows": lambda rng, d, m: np.tile(rng.standard_normal(m), (d, 1)),
    "constant": lambda rng, d, m: np.full((d, m), -0.1),
    "constant rows": lambda rng, d, m: np.repeat(rng.standard_normal((d, 1)), m, axis=1),
    "zero rows": lambda rng, d, m: rng.standard_normal((d, m)) * (rng.random((d, 1)) < 0.3),
    "cauchy": lambda rng, d, m: rng.standard_cauchy((d, m)),
    "cauchy^3": lambda rng, d, m: rng.standard_cauchy((d, m)) ** 3,
    "geometric": lambda rng, d, m: 2.0 ** -((np.arange(m) + rng.integers(0, 3, (d, 1))) % 60.0),
    "geometric by row": lambda rng, d, m: 2.0 ** -(np.arange(d)[:, None] % 60.0) * rng.uniform(0.5, 1.0, (d, m)),
    "one dominates": _one_dominates,
    "peak among equals": _peak_among_equals,
    "subnormal": _subnormal,
    "some subnormal": lambda rng, d, m: np.where(rng.random((d, m)) < 0.5, _subnormal(rng, d, m), rng.standard_normal((d, m))),
}

SHAPES = (
    (1, 1), (1, 2), (2, 1), (1, 10), (9, 1), (3, 2), (5, 3), (4, 4), (6, 5), (7, 6), (30, 6), (12, 10), (40, 10), (8, 33), (25, 60),
    (3, 300), (250, 4),
)  # fmt: skip
SCALES = (1.0, 1e-150, 1e150, 1e-8, 1e8, 1e-100, 1e100, 3.0)


def cases(kind: str) -> Iterator[Case]:
    """Every shape with every radius; the scales take turns."""
    rng = np.random.default_rng(list(kind.encode()))
    turn = 0
    for d, m in SHAPES:
        for label, radius_of in RADII.items():
            scale = 1.0 if "subnormal" in kind else SCALES[turn % len(SCALES)]
            turn += 1
            A = scale * KINDS[kind](rng, d, m)
            yield Case(f"{kind} {d} x {m}, scale {scale:g}, radius {label}", A, radius_of(sum_of_maxima(A)))


#: Radii as functions of the norm.
RADII: dict[str, Callable[[float], float]] = {
    "0": lambda norm: 0.0,
    "1e-300": lambda norm: 1e-300,
    "1e-12 of the norm": lambda norm: 1e-12 * norm,
    "0.001 of the norm": lambda norm: 0.001 * norm,
    "0.1 of the norm": lambda norm: 0.1 * norm,
    "half the norm": lambda norm: 0.5 * norm,
    "0.9 of the norm": lambda norm: 0.9 * norm,
    "an ulp below the norm": lambda norm: max(0.0, math.nextafter(norm, -math.inf)),
    "the norm": lambda norm: norm,
    "an ulp above the norm": lambda norm: math.nextafter(norm, math.inf),
    "1.5 of the norm": lambda norm: 1.5 * norm,
}


def vector_cases() -> Iterator[tuple[str, np.ndarray]]:
    """Vectors of every kind that has broken a projection: ties, heavy tails, all scales, subnormals, lengths around the block sizes."""
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 10, 63, 2049, 5000):
        yield f"normal {n}", rng.standard_normal(n)
        yield f"ties {n}", rng.integers(-3, 4, n).astype(float)
        yield f"equal {n}", np.full(n, -0.1)
        yield f"Cauchy cubed {n}", rng.standard_cauchy(n) ** 3
    for scale in (5e-324, 1e-310, 1e-300, 1e-150, 1e150, 1e300):
        yield f"scale {scale}", np.round(4 * rng.standard_normal(4500), 1) * scale
    yield "lognormal", rng.lognormal(0, 3, 6000)
    yield "far away", 1e12 + rng.standard_normal(5000)
    yield "one large", np.append(np.full(5000, 1e-9), 1.0)
    yield "largest doubles", np.full(5, np.finfo(float).max)
    yield "halves", 2.0 ** -np.arange(1074.0)
    yield "factorials", 1 - np.cumprod(np.append(1e-15, np.arange(2.0, 18.0)))
    yield "sorted", np.sort(rng.standard_normal(5000))
    yield "units in the last place apart", 1e17 + np.spacing(1e17) * rng.integers(-3, 4, size=40)
