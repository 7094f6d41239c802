"""SCS with spectral cones: what it takes, and its answers where it is built with them."""

from __future__ import annotations

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.data import synthetic_l1inf
from bench_mtl.model.forms import SplitForm
from bench_mtl.model.losses import Logistic
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.solvers import scs_spectral
from bench_mtl.solvers.conic import Conic
from bench_mtl.solvers.scs_spectral import ScsSpectral

EXAMPLES = list(SparseLowRank.examples(np.random.default_rng(0)))


def test_it_says_what_it_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scs_spectral, "_has_spectral_cones", lambda: False)
    assert ScsSpectral().incompatibility(EXAMPLES[0]) == "scs was built without spectral cones"
    assert ScsSpectral().version == "not installed"
    logistic = next(each for each in EXAMPLES if each.has_form(SplitForm) and isinstance(each.fit.loss, Logistic))
    assert ScsSpectral().incompatibility(logistic) == "scs_spectral takes the squared loss, not the logistic one"
    hinge = L1InfHinge(synthetic_l1inf(tasks=2, features=3, examples=4), radius=1.0)
    assert "SplitForm" in str(ScsSpectral().incompatibility(hinge))


@pytest.mark.parametrize("options", [{"ladder": ()}, {"ladder": (0.0,)}, {"options": 3}])
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        ScsSpectral(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("problem", EXAMPLES[:4])
def test_what_scs_is_given_is_the_problem(problem: SparseLowRank) -> None:
    """The objective of a feasible point of the model is that of the point, for wide and tall Q."""
    program = ScsSpectral().build(problem)
    rng = np.random.default_rng(1)
    d, m = problem.design.n_features, problem.design.n_tasks
    P, Q = rng.standard_normal((d, m)), rng.standard_normal((d, m))
    residual = program.design.stack(problem.fit.targets - problem.design.forward(P + Q))
    x = np.concatenate([P.ravel(order="F"), Q.ravel(order="F"), [np.abs(P).sum()], residual])
    data = program.data
    slack = data["b"] - data["A"] @ x
    N = program.cones["z"]
    np.testing.assert_allclose(slack[:N], 0.0, atol=1e-12)
    assert slack[N] == problem.radius
    held = slack[N + 1 : N + 1 + d * m].reshape((max(d, m), min(d, m)), order="F")
    np.testing.assert_array_equal(held, Q if d >= m else Q.T)
    np.testing.assert_array_equal(slack[N + 1 + d * m :], x[np.r_[2 * d * m, : d * m]])
    value = 0.5 * x @ (data["P"] @ x) + data["c"] @ x
    assert value == pytest.approx(problem.make_forms()[0].objective(np.stack([P, Q])))  # type: ignore[attr-defined]
    point, dual = program.read(x)
    np.testing.assert_array_equal(point, np.stack([P, Q]))
    assert dual.shape == problem.dual_shape


@pytest.mark.parametrize("problem", EXAMPLES[:4])
def test_it_agrees_with_clarabel(problem: SparseLowRank) -> None:
    solver = ScsSpectral()
    reason = solver.incompatibility(problem)
    if reason is not None:
        pytest.skip(reason)
    answer = solver.solve(solver.build(problem), 1e-7, 30.0)
    conic = Conic()
    reference = conic.solve(conic.compile(conic.build(problem)), 1e-9, 30.0)
    assert answer.iterate is not None
    assert reference.iterate is not None
    assert answer.claims_optimal
    assert "direct" in answer.info["linear_solver"]
    assert problem.certify(answer.iterate).relative_gap < 1e-4
    assert problem.certify(answer.iterate).primal == pytest.approx(problem.certify(reference.iterate).primal, rel=1e-4)
