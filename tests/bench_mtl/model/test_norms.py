"""Norms: their dual norms and corners."""

from __future__ import annotations

import numpy as np
import pytest

from bench_mtl.model.norms import l1inf_vertex
from bench_mtl.projections import norm_l1inf, norm_linf1

RNG = np.random.default_rng(0)


def test_the_vertex_of_the_l1inf_ball_attains_the_dual_norm() -> None:
    G = RNG.standard_normal((5, 3))
    vertex = l1inf_vertex(G, 2.0)
    assert norm_l1inf(vertex) == 2.0
    assert float(np.vdot(G, vertex)) == pytest.approx(-2.0 * norm_linf1(G))
