"""Stochastic steps against a loop over examples, and the regret of the online setting."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate, Limits, Status, Tolerance
from bench_mtl.data import TaskData, synthetic_l1inf
from bench_mtl.engine.driver import run
from bench_mtl.model.forms import HingeForm
from bench_mtl.model.regret import OnlineRun, regret_curve
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.projections import norm_l1inf, project_l1inf_ball, prox_l1inf
from bench_mtl.solvers.frank_wolfe import FrankWolfe
from bench_mtl.solvers.stochastic_subgradient import StochasticSubgradient

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((12, 6)), np.where(RNG.random((12, 3)) < 0.5, 1.0, -1.0)
XS = [RNG.standard_normal((n, 6)) for n in (4, 9, 5)]
YS = [np.where(RNG.random(len(Xk)) < 0.5, 1.0, -1.0) for Xk in XS]
DATA: dict[str, TaskData] = {
    "shared": TaskData.shared(X, Y),
    "shared CSR": TaskData.shared(sp.csr_array(X * (np.abs(X) > 0.5)), Y),
    "per task": TaskData.per_task(XS, YS),
    "per task CSR": TaskData.per_task([sp.csr_array(Xk * (np.abs(Xk) > 0.5)) for Xk in XS], YS),
}


def by_hand(problem: L1InfHinge, batch: int, eta0: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The average of W_1 ... W_t by a loop over examples, and the losses."""
    form = problem.form(HingeForm)
    n, m = form.labels.size, form.design.n_tasks
    shared = form.design.is_shared
    task = np.tile(np.arange(m), n // m) if shared else np.repeat(np.arange(m), form.design.sizes)
    rows = form.design.block(0) if shared else None
    if rows is None:
        blocks = [form.design.block(k) for k in range(m)]
        rows = sp.vstack(blocks).toarray() if form.design.is_sparse else np.concatenate(blocks)
    rows = rows.toarray() if sp.issparse(rows) else rows
    rows = np.repeat(rows, m, axis=0) if shared else rows
    rng = np.random.default_rng(0)
    W, total, losses = np.zeros((6, m)), np.zeros((6, m)), []
    for t in range(1, steps + 1):
        total = total + W
        G, loss = np.zeros_like(W), 0.0
        for i in rng.integers(n, size=batch):
            slack = 1.0 - form.labels.ravel()[i] * (rows[i] @ W[:, task[i]])
            if slack > 0:
                loss += n / batch * form.weights.ravel()[i] * slack
                G[:, task[i]] -= n / batch * form.weights.ravel()[i] * form.labels.ravel()[i] * rows[i]
        losses.append(loss + (0.0 if problem.penalty is None else problem.penalty * norm_l1inf(W)))
        eta = eta0 / np.sqrt(t)
        W = (
            project_l1inf_ball(W - eta * G, problem.radius)
            if problem.radius is not None
            else prox_l1inf(W - eta * G, eta * problem.penalty)
        )
    return total / steps, np.array(losses)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("form", [{"radius": 0.5}, {"penalty": 0.05}])
def test_steps_are_those_of_a_loop_over_examples(name: str, batch: int, form: dict[str, float]) -> None:
    problem = L1InfHinge(DATA[name], **form)
    solver = StochasticSubgradient(batch=batch, step_size=0.1, averaging="all")
    last = list(islice(solver.steps(problem), 40))[-1]
    average, losses = by_hand(problem, batch, 0.1, last.step)
    assert np.allclose(last.primal, average, atol=1e-12)
    assert np.allclose(solver.play(problem, last.step).losses, losses)
    assert last.work == pytest.approx(last.step * batch / problem.labels.size)


def test_the_suffix_begins_at_the_last_power_of_two_but_one() -> None:
    problem = L1InfHinge(DATA["shared"], radius=0.5)
    whole, suffix = (
        {it.step: it.primal * it.step for it in islice(StochasticSubgradient(averaging=averaging).steps(problem), 1, 24)}
        for averaging in ("all", "suffix")
    )
    assert np.allclose(suffix[20] * 13 / 20, whole[20] - whole[7])  # steps 8 to 20


@pytest.mark.parametrize("form", [{"radius": 0.5}, {"penalty": 0.3}])
def test_it_proves_a_gap_by_itself(form: dict[str, float]) -> None:
    problem = L1InfHinge(synthetic_l1inf(tasks=3, features=8, examples=10), **form)
    record = run(problem, StochasticSubgradient(batch=5), tolerance=Tolerance(0.1), limits=Limits(iterations=20_000))
    assert record.status is Status.VERIFIED, record.reason


def test_one_seed_one_run() -> None:
    problem = L1InfHinge(DATA["per task"], radius=0.5)
    first, again, other = (StochasticSubgradient(seed=seed).play(problem, 50).losses for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


FORMS: dict[str, Callable[[], L1InfHinge]] = {
    "radius": lambda: L1InfHinge(synthetic_l1inf(tasks=3, features=8, examples=10), radius=2.0),
    "penalty": lambda: L1InfHinge(synthetic_l1inf(tasks=3, features=8, examples=10), penalty=0.2),
}


@pytest.mark.parametrize("form", FORMS)
def test_regret_a_round_is_enclosed_and_falls_like_the_root(form: str) -> None:
    from bench_mtl.solvers.smoothed_gradient import SmoothedGradient

    problem = FORMS[form]()
    optimum = run(problem, FrankWolfe() if form == "radius" else SmoothedGradient(), tolerance=Tolerance(1e-5))
    assert optimum.solution is not None
    played = StochasticSubgradient(batch=1).play(problem, 8000)
    curve = regret_curve(problem.form(HingeForm), played, Iterate(optimum.solution, optimum.dual))
    assert curve.rounds[-1] == 8000
    assert np.all(curve.against_fixed <= curve.bound + 1e-9)
    early, late = (int(np.searchsorted(curve.rounds, T)) for T in (80, 8000))
    assert curve.bound[late] < 0.35 * curve.bound[early]  # 0.1 where it falls exactly like 1 / sqrt T
    total = curve.bound * np.sqrt(curve.rounds)  # regret / sqrt T
    assert total[late] < 3 * total[: late + 1].max()
    assert curve.against_fixed[late] > -0.05 * problem.objective(problem.zero())


def test_the_regret_of_standing_still_is_what_the_optimum_gains() -> None:
    """Every example once, at W = 0: the regret is F(0) - F* a round, and both ends agree to the gap."""
    problem = FORMS["radius"]()
    n = problem.labels.size
    best = run(problem, FrankWolfe(), tolerance=Tolerance(1e-7))
    assert best.solution is not None
    assert best.best is not None
    still = OnlineRun(np.arange(n)[:, None], n * problem.weights.ravel())
    curve = regret_curve(problem.form(HingeForm), still, Iterate(best.solution, best.dual))
    expected = problem.objective(problem.zero()) - best.best.primal
    assert curve.against_fixed[-1] == pytest.approx(expected, rel=1e-6)
    assert curve.bound[-1] == pytest.approx(expected, rel=1e-6)


def test_bad_input_is_refused() -> None:
    form = FORMS["radius"]().form(HingeForm)
    with pytest.raises(InputError, match="must have rounds"):
        regret_curve(form, OnlineRun(np.zeros((0, 1), dtype=np.int64), np.zeros(0)), Iterate(np.zeros((8, 3)), np.zeros(30)))
    with pytest.raises(InputError, match="fixed must have a dual point"):
        regret_curve(form, OnlineRun(np.zeros((1, 1), dtype=np.int64), np.zeros(1)), Iterate(np.zeros((8, 3))))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch": 0}, "batch must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"step_size": 0.0}, "step_size must be finite and above 0"),
        ({"averaging": "last"}, "averaging must be one of suffix, all"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        StochasticSubgradient(**options)  # type: ignore[arg-type]
