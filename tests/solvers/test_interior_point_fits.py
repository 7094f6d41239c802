"""Interior points of smooth losses under an l1,inf norm: the Newton direction written out, starts, sets of rows, other solvers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from pairwise_cases import pairwise_cases

from bench_mtl.core.types import Limits, Status, Tolerance
from bench_mtl.data import TaskData
from bench_mtl.engine.driver import run
from bench_mtl.model.forms import L1InfForm
from bench_mtl.model.losses import loss_named
from bench_mtl.model.protocols import Form
from bench_mtl.problems.l1inf_glm import L1InfGLM
from bench_mtl.solvers.interior_point import InteriorPoint
from bench_mtl.solvers.interior_point.fits import FitEquations
from bench_mtl.solvers.working_set import WorkingSet

LIMITS = Limits(seconds=60.0, iterations=5000)
LOSSES = ("squared", "logistic")


def drawn(rng: np.random.Generator, d: int, kind: str, *, n: int = 30, m: int = 3) -> TaskData:
    """Labels, which are targets of a squared loss too, that five features explain."""
    Xs = [rng.standard_normal((n + 5 * k * ("shared" not in kind), d)) * (rng.random(d) < 0.7) for k in range(m)]
    if "shared" in kind:
        Xs = Xs[:1] * m
    W = rng.standard_normal((d, m)) * (np.arange(d) < 5)[:, None]
    labels = [np.where(X @ W[:, k] + 0.5 * rng.standard_normal(len(X)) >= 0.0, 1.0, -1.0) for k, X in enumerate(Xs)]
    wrap: Any = sp.csr_array if "sparse" in kind else np.asarray
    if "shared" in kind:
        return TaskData.shared(wrap(Xs[0]), np.column_stack(labels))
    return TaskData.per_task([wrap(X) for X in Xs], labels)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("parameters", [{"radius": 0.8}, {"penalty": "0.1 max"}, {"penalty": 0.5, "reduction": "sum"}], ids=str)
def test_starts_inside_and_misses_the_derivatives_only(loss: str, parameters: dict[str, Any]) -> None:
    """The dual point proves something from the start."""
    form = L1InfGLM(drawn(np.random.default_rng(0), 12, "dense"), loss=loss, **parameters).form(L1InfForm)
    eq = FitEquations(form, form.penalty)
    x = eq.start(np.zeros((3, 12)))
    assert x is not None
    assert (x.slack > 0.0).all()
    assert (x.dual > 0.0).all()
    rest = eq.residuals(x)
    p, q = eq.layout.bounds(x.dual)
    np.testing.assert_allclose(form.adjoint(eq.dual_point(x)).T, p - q, rtol=1e-9, atol=1e-12)
    assert max(np.abs(rest.u).max(), np.abs(rest.v).max(), abs(rest.c), np.abs(rest.mu).max()) <= 1e-12 * (1.0 + float(x.slack.max()))
    dual = eq.dual_point(x)
    assert 0.0 < form.bound(dual, form.adjoint(dual)) <= eq.objective(x)


@pytest.mark.parametrize(
    ("loss", "parameters", "kind"),
    pairwise_cases(
        LOSSES,
        [{"radius": 0.8}, {"penalty": "0.1 max"}, {"penalty": "0.01 max", "reduction": "sum"}],
        ["dense", "sparse", "shared", "shared sparse"],
    ),
)
def test_any_first_set_leads_to_the_optimum_of_all_rows(loss: str, parameters: dict[str, Any], kind: str) -> None:
    problem = L1InfGLM(drawn(np.random.default_rng(2), 60, kind), loss=loss, **parameters)
    whole = run(problem, InteriorPoint(), tolerance=Tolerance(1e-8), limits=LIMITS).best
    assert whole is not None
    for first in (1, 7):
        record = run(problem, WorkingSet(first=first), tolerance=Tolerance(1e-8), limits=LIMITS)
        assert record.status is Status.VERIFIED, record.reason
        assert record.best is not None
        assert record.best.primal == pytest.approx(whole.primal, rel=3e-8)
        assert record.samples[-1].step <= 60


class CoupledForm(L1InfGLM):
    """Least squares, whose form says that its loss couples the tasks."""

    def make_forms(self) -> tuple[Form, ...]:
        return (L1InfForm(replace(self.fit, loss=loss_named("multiclass")), self.radius, self.penalty),)


def test_losses_without_second_derivatives_are_left_to_others() -> None:
    problem = CoupledForm(drawn(np.random.default_rng(4), 8, "shared"), radius=1.0)
    for solver in (WorkingSet(), InteriorPoint()):
        assert "needs second derivatives of single predictions, which loss 'multiclass' has not" in str(solver.incompatibility(problem))
