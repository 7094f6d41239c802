"""`ADMM` and `ConsensusADMM` on losses of scores of classes: steps against slow twins, the same bits wherever blocks are."""

import sys
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import numpy as np
import pytest
from shared_cluster import SharedCluster

from bench_mtl import InputError, Iterate, Limits, Status, TaskData, Tolerance, run
from bench_mtl.model.forms import GroupForm
from bench_mtl.problems.group_boosting import GroupBoosting
from bench_mtl.solvers import ADMM, ConsensusADMM
from bench_mtl.solvers.admm.blocks import Piece, Setting, divided, pieces

SMOOTH = ("logistic", "squared_hinge", "exponential")


def boosting(n: int = 60, J: int = 8, K: int = 3, **parameters: Any) -> GroupBoosting:
    """Random signs, with a learner twice and one that is constant."""
    rng = np.random.default_rng(0)
    H = np.where(rng.random((n, J)) < 0.5, 1.0, -1.0)
    y = (H @ rng.exponential(size=(J, K)) + rng.standard_normal((n, K))).argmax(axis=1)
    H[:, -1], H[:, -2] = 1.0, H[:, 0]
    data = TaskData.shared(H, np.where(np.arange(K) == y[:, None], 1.0, -1.0), name="test")
    return GroupBoosting(data, **{"penalty": "0.1 max", **parameters})


def iterates(problem: GroupBoosting, steps: int = 8, **options: Any) -> list[Iterate]:
    with closing(ConsensusADMM(**options).steps(problem)) as running:  # type: ignore[type-var]
        return list(islice(running, steps))


def require_same_bits(ones: Sequence[Iterate], others: Sequence[Iterate]) -> None:
    for one, other in zip(ones, others, strict=True):
        assert one[2:4] == other[2:4]
        np.testing.assert_array_equal(one.primal, other.primal)
        assert (one.dual is None) == (other.dual is None)
        assert one.dual is None or np.array_equal(one.dual, other.dual)  # type: ignore[arg-type]


@pytest.mark.parametrize("J", [8, 50])
def test_hinge_step_is_the_textbook_method(J: int) -> None:
    problem, lam, beta, share = boosting(20, J, loss="hinge"), 0.3, 0.05, 1.5
    fit: Any = problem.form(GroupForm).fit
    H, target = np.asarray(fit.design.block(0)), np.random.default_rng(1).standard_normal(problem.point_shape)
    setting, block = Setting(lam, beta, share, 0.0), Piece(fit, 1.0).block()
    state = block.start(problem.zero(), setting)
    for _ in range(4):
        S, Y = state.scores, state.multipliers
        W = np.linalg.solve(beta * H.T @ H + lam * np.eye(J), beta * H.T @ (S - Y) + lam * target)
        ahead = share * H @ W + (1.0 - share) * S + Y
        new, dual = fit.prox(ahead, 1.0 / beta)
        state = block.step(state, target, setting)
        for ours, theirs in zip((state.weights, state.scores, state.multipliers, state.dual), (W, new, ahead - new, dual), strict=True):
            assert np.allclose(ours, theirs, atol=1e-10)


def test_consensus_is_the_textbook_method() -> None:
    """Against the iteration of Boyd et al., section 7.1.2, its multipliers not scaled and its block steps taken to the end."""
    problem, lam, Q = boosting(12, 4, 3, penalty=0.05), 0.1, 3
    form = problem.form(GroupForm)
    ours = iterates(problem, 90, relaxation=1.0, penalty=lam, balance=False, blocks=Q)[-1]
    blocks = [piece.block() for piece in pieces(form.fit, divided(form.fit.classes, Q))]
    setting, Z = Setting(lam, 0.0, 1.0, 1e-10), problem.zero()
    states, Y = [block.start(Z, setting) for block in blocks], np.zeros((Q, *Z.shape))
    for _ in range(90):
        for q, block in enumerate(blocks):
            for _ in range(4):
                states[q] = block.step(states[q], Z - Y[q] / lam, setting)
        W = np.stack([state.weights for state in states])
        Z = form.prox((W + Y / lam).mean(axis=0), 1.0 / (Q * lam))
        Y = Y + lam * (W - Z)
    assert np.allclose(ours.primal, Z, atol=2e-3)
    assert problem.certify(Iterate(Z)).relative_gap < 1e-4


@pytest.mark.parametrize("loss", ["exponential", "hinge"])
def test_no_penalty(loss: str) -> None:
    """Nothing can be proven then, for a dual point must be feasible to the last bit: CVXPY says what the optimum is."""
    problem = boosting(60, 3, 4, loss=loss, penalty=0.0)
    optimum = float(problem.to_cvxpy().problem.solve(solver="CLARABEL"))
    record = run(problem, ADMM(), tolerance=Tolerance(1e-9), limits=Limits(iterations=400))
    assert optimum - 1e-7 <= record.best.primal <= optimum + 1e-6


def test_one_block_is_admm() -> None:
    for loss in ("logistic", "hinge"):
        problem = boosting(loss=loss)
        for one, other in zip(iterates(problem, blocks=1), islice(ADMM().steps(problem), 8), strict=True):  # whose sums take all threads
            assert np.allclose(one.primal, other.primal, atol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", pytest.param("hinge", marks=pytest.mark.slow)])
def test_workers_and_backends_change_no_bit(loss: str, cluster: SharedCluster) -> None:
    problem = boosting(90, loss=loss)
    expected = iterates(problem, blocks=3)
    for options in ({"workers": 2}, {"backend": "dask", "cluster": cluster.address}):
        require_same_bits(iterates(problem, blocks=3, **options), expected)


def test_blocks_are_alike() -> None:
    classes = np.repeat([0, 1, 2], [50, 9, 2])
    division = divided(classes, 4)
    assert np.array_equal(np.sort(np.concatenate(division)), np.arange(61))
    counts = np.array([np.bincount(classes[rows], minlength=3) for rows in division])
    assert np.ptp(counts.sum(axis=1)) <= 1
    assert np.ptp(counts, axis=0).max() <= 1
    fit = boosting(61).form(GroupForm).fit
    assert [piece.share for piece in pieces(fit, division)] == pytest.approx(counts.sum(axis=1) / 61)


def test_what_cannot_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    record = run(boosting(), ConsensusADMM(blocks=61))
    assert record.status is Status.ERROR
    assert "cannot make 61 blocks of the 60 examples of group_boosting" in record.reason
    monkeypatch.setattr("bench_mtl.solvers.admm.group.factorisable", lambda design: False)
    assert "admm factorises" in str(ADMM().incompatibility(boosting(loss="hinge")))
    assert ADMM().incompatibility(boosting()) is None


def test_clusters_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for cluster in ("foo", "tcp://host", "http://host:1", "host:0", "tcp://host:70000", "tcp://ho st:1", 8786, None):
        with pytest.raises(InputError, match=r"cluster must be local or the address of a Dask scheduler, such as tcp://host:8786, not"):
            ConsensusADMM(backend="dask", cluster=cluster)  # type: ignore[arg-type]
    for cluster in ("host:1", "tcp://10.0.0.1:8786", "tls://a.example:65535", "tcp://[::1]:8786", "inproc://10.0.0.1/12/1"):
        assert ConsensusADMM(backend="dask", cluster=cluster).cluster == cluster
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match="backend dask needs Dask"):
        iterates(boosting(), backend="dask")
