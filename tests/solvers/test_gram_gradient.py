"""The compiled gradient loop on X^T X gives the iterates of the plain methods."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from low_rank_cases import AWKWARD

from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.projected_gradient import ProjectedGradient

METHODS = [
    (ProjectedGradient, {}),
    (ProjectedGradient, {"step_rule": "line_search", "initial_lipschitz": 0.5}),
    (AcceleratedGradient, {}),
    (AcceleratedGradient, {"restart": "gradient"}),
    (AcceleratedGradient, {"step_rule": "line_search", "initial_lipschitz": 0.5, "restart": "gradient"}),
]


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize(("method", "options"), METHODS)
def test_same_iterates_as_without(name: str, method: type, options: dict[str, object]) -> None:
    problem = AWKWARD[name]
    fast, slow = (method(**options, gram=gram).steps(problem) for gram in ("always", "never"))
    for ours, plain in islice(zip(fast, slow, strict=False), 25):
        assert ours.step == plain.step
        assert np.allclose(ours.primal, plain.primal, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("change", [1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("method", [ProjectedGradient, AcceleratedGradient])
def test_the_stopping_rule_stops_at_the_same_step(method: type, change: float) -> None:
    problem = AWKWARD["per task"]
    last = [list(islice(method(objective_change=change, gram=gram).steps(problem), 50_000))[-1] for gram in ("always", "never")]
    assert abs(last[0].step - last[1].step) <= 1
    assert np.allclose(last[0].primal, last[1].primal, atol=1e-8)


def test_gram_always_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.model.normal_equations.LARGEST_FACTOR", 4)
    assert "too large for this design" in str(ProjectedGradient(gram="always").incompatibility(AWKWARD["shared"]))
