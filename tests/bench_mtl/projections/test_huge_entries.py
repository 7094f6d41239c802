"""Projections of entries so huge that their units in the last place exceed the radius: no mass is lost, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bench_mtl.core.types import Array
from bench_mtl.projections import project_box_simplex, project_l1_ball, project_l1inf_ball, project_l12_ball, project_simplex

UNIT = Fraction(1, 2**53)
EXPONENTS = (0, 8, 15, 16, 17, 18, 20, 30, 100, 200, 299)
METHODS = ("newton", "filter", "sort", "pivot")


def total(w: Array) -> Fraction:
    return sum((Fraction(float(entry)) for entry in w.ravel()), Fraction(0))


def entries(rng: np.random.Generator, size: int) -> Array:
    """Numbers of a huge size: unlike, alike, a few units in the last place apart, or beside small ones."""
    huge = 10.0 ** float(rng.choice(EXPONENTS))
    kind = rng.integers(4)
    if kind == 0:
        return np.full(size, huge)
    if kind == 1:
        return huge + np.spacing(huge) * rng.integers(-3, 4, size=size)
    v = huge * rng.standard_normal(size)
    return np.where(rng.random(size) < 0.5, rng.standard_normal(size), v) if kind == 2 else v


def is_mass(found: Fraction, mass: float) -> bool:
    return abs(found - Fraction(mass)) <= 8 * UNIT * Fraction(mass)


def test_one_huge_entry_within_a_box() -> None:
    assert project_box_simplex(np.array([1e20]), 1.0, 0.5, 1.0) == [1.0]


@pytest.mark.parametrize("seed", range(4))
def test_no_mass_is_lost_within_boxes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(200):
        n = int(rng.integers(1, 6))
        v, lower = entries(rng, n), rng.random(n) * (rng.random() < 0.5)
        upper = np.full(n, np.inf) if rng.random() < 0.2 else lower + rng.random(n) * float(rng.choice([1.0, 10.0]))
        share = rng.random()
        mass = float(lower.sum() + share * (np.where(np.isfinite(upper), upper, 5.0) - lower).sum())
        w = project_box_simplex(v, mass, lower, upper)
        assert np.all(w >= lower)
        assert np.all(w <= upper)
        assert is_mass(total(w), mass), (v, mass, lower, upper)


@pytest.mark.parametrize("method", METHODS)
def test_no_mass_is_lost_on_simplices(method: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        v, mass = entries(rng, int(rng.integers(1, 6))), float(10.0 ** rng.uniform(-3, 3))
        assert is_mass(total(project_simplex(v, mass, method=method)), mass), (v, mass)
        within = total(np.abs(v)) <= Fraction(mass)
        w = project_l1_ball(v, mass, method=method)
        assert np.array_equal(w, v) if within else is_mass(total(np.abs(w)), mass), (v, mass)


def test_no_mass_is_lost_in_balls_of_matrices() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        A, radius = entries(rng, 12).reshape(4, 3), float(10.0 ** rng.uniform(-3, 3))
        if total(np.abs(A).max(axis=1)) > 2 * Fraction(radius):
            levels = np.abs(project_l1inf_ball(A, radius)).max(axis=1)
            lengths = np.sqrt((project_l12_ball(A, radius) ** 2).sum(axis=1))
            for found in (levels, lengths):
                assert np.isclose(found.sum(), radius, rtol=1e-14), (A, radius)
