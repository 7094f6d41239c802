"""Singer's online experiments: what cells compute, recomputed by hand, and the bound that they are beside."""

import math

import numpy as np
import pytest

from bench_mtl.data import TaskData, synthetic_market
from bench_mtl.projections import project_l1_ball, project_simplex
from papers.singer import online_cell, sequential_cell
from papers.singer.curves import gradient_bound, slope
from papers.singer.passes import checkpoints

CELL = {"stream": "stream", "radius": 3.0, "seed": 1, "rounds": 64}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few features and two step sizes."""
    monkeypatch.setattr(
        online_cell, "STREAMS", {"stream": {"name": "synthetic_stream", "features": 300, "density": 0.03, "relevant": 0.05}}
    )
    monkeypatch.setattr(online_cell, "ETAS", (0.5, 4.0))


@pytest.mark.usefixtures("tiny")
def test_online_passes_against_loops() -> None:
    data = online_cell._one_label("stream", 1, 64, None)
    X, y = data.design.block(0).toarray(), data.targets[:, 0]
    for method in (online_cell.PROJECTED, online_cell.EG):
        found = online_cell.compute({**CELL, "method": method}, None).values
        for eta0, totals, counts in zip(found["etas"], found["total"], found["non_zeros"], strict=True):
            w, total, sums = np.zeros(300), 0.0, {}
            u, v, slack = np.ones(300), np.ones(300), 1.0
            for t, (x, label) in enumerate(zip(X, y, strict=True), start=1):
                total += math.log1p(math.exp(-label * (x @ w)))
                g = -label / (1.0 + math.exp(label * (x @ w))) * x
                eta = eta0 / math.sqrt(t)
                if method == online_cell.PROJECTED:
                    w = project_l1_ball(w - eta * g, 3.0)
                else:
                    u, v = u * np.exp(-eta * 3.0 * g), v * np.exp(eta * 3.0 * g)
                    w = 3.0 * (u - v) / (u.sum() + v.sum() + slack)
                sums[t] = total
            assert totals == pytest.approx([sums[T] for T in checkpoints(64)], rel=1e-9)
            if method == online_cell.PROJECTED:
                assert counts[-1] == np.count_nonzero(w)
            else:
                assert counts[-1] == np.count_nonzero(X.any(axis=0))
    fixed = online_cell.compute({**CELL, "method": online_cell.FIXED}, None)
    assert fixed.status == "verified"
    assert all(low <= high for low, high in zip(fixed.values["fixed_bound"], fixed.values["fixed"], strict=True))


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 7, 9])
def test_the_beginning_of_a_stream_of_tasks_is_what_came_in_turn(rounds: int) -> None:
    rows = [np.arange(3.0 * k, 3.0 * k + 3)[:, None] for k in range(3)]
    begun = online_cell.beginning(TaskData.per_task(rows, [np.sign(X[:, 0] - 4.5) for X in rows]), rounds)
    came = [float(rows[t % 3][t // 3, 0]) for t in range(rounds)]
    assert [begun.task(k)[0][:, 0].tolist() for k in range(begun.design.n_tasks)] == [came[k::3] for k in range(min(3, rounds))]


def test_sequential_portfolios_against_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequential_cell, "MARKETS", {"calm": {"periods": 64, "assets": 5, "volatility": 0.1}})
    monkeypatch.setattr(sequential_cell, "CAP", 0.4)
    X = np.asarray(synthetic_market(periods=64, assets=5, volatility=0.1, seed=2).design.block(0))
    found = {m: sequential_cell.compute({"market": "calm", "method": m, "seed": 2}, None).values for m in sequential_cell.METHODS}
    for method in (sequential_cell.EG, sequential_cell.PROJECTED):
        place = found[method]["etas"].index(2.0)
        w, total = np.full(5, 0.2), 0.0
        for t, x in enumerate(X, start=1):
            total -= math.log(w @ x)
            gains = 2.0 / math.sqrt(t) * x / (w @ x)
            w = project_simplex(w + gains) if method == sequential_cell.PROJECTED else w * np.exp(gains) / (w * np.exp(gains)).sum()
        assert found[method]["total"][place][-1] == pytest.approx(total, rel=1e-9)
    assert found[sequential_cell.HOLD]["total"][0][-1] == pytest.approx(-math.log(X.prod(axis=0).mean()))
    assert found[sequential_cell.UNIFORM]["total"][0][-1] == pytest.approx(-np.log(X.mean(axis=1)).sum())
    assert found["fixed"]["fixed_bound"][-1] <= found["fixed_capped"]["fixed"][-1]
    assert found["fixed"]["fixed_bound"][-1] <= found[sequential_cell.UNIFORM]["total"][0][-1]


def test_slopes_are_of_logarithms_and_the_bound_is_the_sum_of_its_two_parts() -> None:
    assert slope(checkpoints(64), [T**0.4 for T in checkpoints(64)]) == pytest.approx(0.4)
    assert math.isnan(slope(checkpoints(64), [-1.0] * 7))
    expected = 36.0 * math.sqrt(3) / 4.0 + 0.5 * 4.0 * 2.0 * (1.0 + 1.0 / math.sqrt(2) + 1.0 / math.sqrt(3))
    assert gradient_bound(3, 2.0, 6.0, 2.0) == pytest.approx(expected)
