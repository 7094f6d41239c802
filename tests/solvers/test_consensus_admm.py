"""`ConsensusADMM`: the same optimum with any number of blocks, the same bits wherever they are worked on, nothing left behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import psutil
import pytest
import scipy.sparse as sp
from shared_cluster import SharedCluster

from bench_mtl.core import dask_blocks
from bench_mtl.core.dask_cluster import client_at
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate, Limits, Status, Tolerance
from bench_mtl.engine.driver import run
from bench_mtl.model.forms import GroupForm
from bench_mtl.model.task_data import TaskData
from bench_mtl.problems.group_boosting import GroupBoosting
from bench_mtl.solvers.admm import ADMM
from bench_mtl.solvers.consensus_admm import ConsensusADMM, solver
from bench_mtl.solvers.consensus_admm.division import Division


def boosting(n: int = 60, J: int = 8, K: int = 3, *, seed: int = 0, **parameters: Any) -> GroupBoosting:
    rng = np.random.default_rng(seed)
    H = np.where(rng.random((n, J)) < 0.5, 1.0, -1.0)
    y = (H @ rng.exponential(size=(J, K)) + rng.standard_normal((n, K))).argmax(axis=1)
    return GroupBoosting(_data(H, y, K), **{"penalty": "0.1 max", **parameters})


def _data(H: Any, classes: Any, K: int) -> TaskData:
    return TaskData.shared(H, np.where(np.arange(K) == np.asarray(classes)[:, None], 1.0, -1.0), name="test")


def iterates(problem: GroupBoosting, steps: int = 8, **options: Any) -> list[Iterate]:
    with closing(ConsensusADMM(**options).steps(problem)) as running:  # type: ignore[type-var]
        return list(islice(running, steps))


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_run_goes_on_from_a_state_to_the_same_bits(loss: str, blocks: int) -> None:
    """Wherever the blocks are worked on; penalties are balanced after steps 4, 8, 16, and averages begin anew."""
    problem = boosting(loss=loss)
    undisturbed = iterates(problem, 30, blocks=blocks)
    for k in (0, 1, 3, 4, 5, 8, 17, 22):
        start = undisturbed[k]
        assert (start.state is None) == (k == 0)
        with closing(ConsensusADMM(blocks=blocks, workers=2).resume(problem, start)) as running:  # type: ignore[type-var]
            again = list(islice(running, 30 - k))
        require_same_bits(again, undisturbed[k:])


def require_same_bits(ones: Sequence[Iterate], others: Sequence[Iterate]) -> None:
    for one, other in zip(ones, others, strict=True):
        assert one[2:4] == other[2:4]
        np.testing.assert_array_equal(one.primal, other.primal)
        assert (one.dual is None) == (other.dual is None)
        assert one.dual is None or np.array_equal(one.dual, other.dual)  # type: ignore[arg-type]


def test_states_of_other_blocks_are_refused_and_an_end_is_one() -> None:
    problem = boosting()
    start = iterates(problem, 5, blocks=3)[-1]
    with pytest.raises(InputError, match=r"was made by consensus_admm\(blocks=3, .*, not by consensus_admm\(blocks=2, "):
        next(ConsensusADMM(blocks=2).resume(problem, start))
    ended = iterates(problem, 1000, residual_tolerance=1e-2)[-1]
    assert ended.step < 1000
    assert problem.certify(ended).relative_gap < 0.5
    assert [one.step for one in ConsensusADMM(residual_tolerance=1e-2).resume(problem, ended)] == [ended.step]


#: Every norm and both kinds of steps; the other pairs are slow.
PAIRS = [
    pytest.param(loss, norm, marks=[] if (loss == "hinge") == (norm == "l12") else pytest.mark.slow)
    for loss in ("logistic", "hinge")
    for norm in ("l12", "l1inf", "l1")
]


@pytest.mark.parametrize(("loss", "norm"), PAIRS)
def test_any_number_of_blocks_reaches_the_optimum(loss: str, norm: str) -> None:
    problem = boosting(loss=loss, norm=norm)
    objectives = []
    for blocks in (1, 2, 4, 8) if loss == "logistic" else (1, 4):
        limits = Limits(seconds=30.0, iterations=20_000)
        record = run(problem, ConsensusADMM(blocks=blocks), tolerance=Tolerance(1e-5), limits=limits)
        assert record.status is Status.VERIFIED, record.reason
        assert record.best is not None
        objectives.append(record.best.primal)
    assert max(objectives) - min(objectives) <= 1e-4 * min(objectives)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_is_the_textbook_method(loss: str) -> None:
    """Against the iteration of Boyd et al., section 7.1.2, its multipliers not scaled and its block steps taken to the end."""
    problem, lam, Q = boosting(12, 4, 3, loss=loss, penalty=0.05), 0.1, 3
    form = problem.form(GroupForm)
    options = {"relaxation": 1.0, "penalty": lam, "balance": False, "blocks": Q}
    found = iterates(problem, 90 if loss == "logistic" else 2, **options)
    if loss == "hinge":  # at its first step, S_q is what it begins with: the rest is tested with one block
        assert found[1].primal.min() >= 0.0
        return
    division = Division.of(form.fit.classes, Q)
    blocks = [piece.block() for piece in division.pieces(form.fit)]
    from bench_mtl.solvers.admm.blocks import Setting

    setting = Setting(lam, 0.0, 1.0, 1e-10)
    Z = problem.zero()
    states = [block.start(Z, setting) for block in blocks]
    Y = [problem.zero() for _ in range(Q)]
    for _ in range(90):
        for q, block in enumerate(blocks):
            for _ in range(4):
                states[q] = block.step(states[q], Z - Y[q] / lam, setting)
        mean = sum(states[q].weights + Y[q] / lam for q in range(Q)) / Q
        Z = form.prox(mean, 1.0 / (Q * lam))
        Y = [Y[q] + lam * (states[q].weights - Z) for q in range(Q)]
    assert np.allclose(found[-1].primal, Z, atol=2e-3)
    assert problem.certify(Iterate(Z)).relative_gap < 1e-4


def test_one_block_is_admm() -> None:
    for loss in ("logistic", "hinge"):
        problem = boosting(loss=loss)
        mine = iterates(problem, blocks=1)
        for a, b in zip(mine, islice(ADMM().steps(problem), 8), strict=True):
            assert np.allclose(a.primal, b.primal, atol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", pytest.param("hinge", marks=pytest.mark.slow)])
def test_workers_and_backends_change_no_bit(loss: str, cluster: SharedCluster) -> None:
    problem = boosting(90, loss=loss)
    expected = iterates(problem, blocks=3)
    for options in ({"workers": 2}, {"backend": "dask", "cluster": cluster.address}):
        require_same_bits(iterates(problem, blocks=3, **options), expected)


def test_blocks_are_alike() -> None:
    classes = np.repeat([0, 1, 2], [50, 9, 2])
    division = Division.of(classes, 4)
    assert np.array_equal(np.sort(np.concatenate(division.rows)), np.arange(61))
    counts = np.array([np.bincount(classes[rows], minlength=3) for rows in division.rows])
    assert counts.sum(axis=1).max() - counts.sum(axis=1).min() <= 1
    assert (counts.max(axis=0) - counts.min(axis=0)).max() <= 1
    values = [rows[:, None] * 1.0 for rows in division.rows]
    assert np.array_equal(division.joined(values)[:, 0], np.arange(61))


CASES: dict[str, Any] = {
    "a block an example": lambda loss: (boosting(6, loss=loss), 6),
    "blocks without some classes": lambda loss: (boosting(12, 5, 6, loss=loss), 5),
    "more learners than examples": lambda loss: (boosting(12, 30, loss=loss), 3),
    "sparse": lambda loss: (
        GroupBoosting(
            _data(sp.random_array((40, 10), density=0.3, rng=np.random.default_rng(0), format="csr"), np.arange(40) % 4, 4),
            penalty="0.2 max", loss=loss,
        ),
        3,
    ),
    "a class without examples": lambda loss: (GroupBoosting(_data(np.eye(4)[:, :3], [0, 1, 1, 0], 4), penalty=0.01, loss=loss), 2),
}  # fmt: skip


#: Every case with one of the smooth losses, in turn, and three cases with the hinge; the rest is slow.
SMOOTH = ("logistic", "squared_hinge", "exponential")
FAST_HINGES = ("a block an example", "blocks without some classes", "a class without examples")
CASE_PAIRS = [
    pytest.param(name, loss, marks=[] if loss == SMOOTH[i % 3] or (loss == "hinge" and name in FAST_HINGES) else pytest.mark.slow)
    for i, name in enumerate(CASES)
    for loss in (*SMOOTH, "hinge")
]


@pytest.mark.parametrize(("name", "loss"), CASE_PAIRS)
def test_awkward_data(name: str, loss: str) -> None:
    problem, blocks = CASES[name](loss)
    record = run(problem, ConsensusADMM(blocks=blocks), tolerance=Tolerance(1e-4), limits=Limits(seconds=20.0, iterations=20_000))
    assert record.status is Status.VERIFIED, record.reason


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_dask_worker_that_is_killed_changes_no_bit(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dask_blocks.Workers] = []
    monkeypatch.setattr(solver, "Workers", lambda *options: made.append(dask_blocks.Workers(*options)) or made[0])
    problem = boosting(200, loss=loss)
    expected = iterates(problem, 12, blocks=4)
    with closing(ConsensusADMM(blocks=4, workers=2, backend="dask").steps(problem)) as running:  # type: ignore[type-var]
        found = list(islice(running, 4))
        pids = list(made[0].client.run(os.getpid).values())
        assert len(pids) == 2
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            found += list(islice(running, 4))
        pids += made[0].client.run(os.getpid).values()
    require_same_bits(found, expected)
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_more_blocks_than_examples_are_a_mistake_and_no_run_to_skip() -> None:
    problem = boosting()
    assert ConsensusADMM(blocks=60).incompatibility(problem) is None
    with pytest.raises(InputError, match=r"blocks: .* cannot make 61 blocks of the 60 examples of group_boosting"):
        ConsensusADMM(blocks=61).incompatibility(problem)
    record = run(problem, ConsensusADMM(blocks=61))
    assert record.status is Status.ERROR
    assert record.reason.startswith("InputError: blocks: ")


def test_options_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = (
        {"blocks": 0}, {"blocks": 1.5}, {"workers": 0}, {"backend": "processes"}, {"cluster": ""}, {"cluster": "tcp://host:1"},
        {"relaxation": 2.0}, {"penalty": -1.0}, {"balance": 2}, {"residual_tolerance": 0.0},
    )  # fmt: skip
    for options in bad:
        with pytest.raises(InputError, match=next(iter(options))):
            ConsensusADMM(**options)  # type: ignore[arg-type]
    for cluster in ("foo", "tcp://host", "http://host:1", "host:0", "tcp://host:70000", "tcp://ho st:1", 8786, None):
        with pytest.raises(InputError, match=r"cluster must be local or the address of a Dask scheduler, such as tcp://host:8786, not"):
            ConsensusADMM(backend="dask", cluster=cluster)  # type: ignore[arg-type]
    for cluster in ("host:1", "tcp://10.0.0.1:8786", "tls://a.example:65535", "tcp://[::1]:8786", "inproc://10.0.0.1/12/1"):
        assert ConsensusADMM(backend="dask", cluster=cluster).cluster == cluster
    monkeypatch.setattr(dask_blocks, "client_at", partial(client_at, seconds=0.2))
    with pytest.raises(InputError, match="no Dask scheduler answers at tcp"):
        iterates(boosting(), backend="dask", cluster="tcp://127.0.0.1:9")  # a port that nobody listens at
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match="backend dask needs Dask"):
        iterates(boosting(), backend="dask")
