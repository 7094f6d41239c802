"""Figure 2 of Chen, Liu and Ye: a cell recomputed by hand, and what is read from rows whose story is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.data import synthetic_sparse_low_rank
from bench_mtl.papers import Verdict, experiment
from bench_mtl.papers.chen import fig2, fig2_cell, sparse_low_rank
from bench_mtl.papers.chen.fig2 import DEVIATIONS, TAU, read

TINY = {"tasks": 6, "features": 9, "examples": 12, "rank": 2, "zero_features": 3, "zero_tasks": 2}
SETTINGS = {"sparse_std": 2.0, "low_rank_std": 0.5, "gamma": 4.0, "tau": 3.0, "seed": 0}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The experiment on few tasks."""
    for name, value in TINY.items():
        monkeypatch.setattr(fig2_cell, name.upper(), value)


def by_proximal_gradient(data: Any, gamma: float, tau: float) -> tuple[Any, Any]:
    """P and Q by many plain steps, one task at a time, with a projection by bisection."""
    d, m = data.n_features, data.n_tasks
    P, Q = np.zeros((d, m)), np.zeros((d, m))
    L = 2.0 * max(np.linalg.norm(data.task(k)[0], 2) ** 2 for k in range(m))
    for _ in range(1500):
        G = np.column_stack([X.T @ (X @ (P[:, k] + Q[:, k]) - y) for k, (X, y) in enumerate(map(data.task, range(m)))])
        P = np.sign(P - G / L) * np.maximum(np.abs(P - G / L) - gamma / L, 0.0)
        U, values, Vt = np.linalg.svd(Q - G / L, full_matrices=False)
        low, high = 0.0, values[0]
        for _ in range(50 if values.sum() > tau else 0):
            theta = 0.5 * (low + high)
            low, high = (theta, high) if np.maximum(values - theta, 0.0).sum() > tau else (low, theta)
        Q = (U * np.maximum(values - (high if values.sum() > tau else 0.0), 0.0)) @ Vt
    return P, Q


@pytest.mark.usefixtures("tiny")
def test_a_cell_against_a_plain_method_and_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fig2_cell, "TARGET", 1e-9)
    found = fig2_cell.compute(SETTINGS, None)
    assert found.status == "verified"
    data = synthetic_sparse_low_rank(**TINY, sparse_std=2.0, low_rank_std=0.5, seed=0)
    P, Q = by_proximal_gradient(data, 4.0, 3.0)
    true_P, true_Q = data.truth["P"], data.truth["Q"]
    inside = [P[j, k] == 0.0 for j in range(9) for k in range(6) if j < 3 or k < 2]
    outside = [P[j, k] == 0.0 for j in range(9) for k in range(6) if j >= 3 and k >= 2]
    values = found.values
    assert 0.0 < np.mean(outside) < np.mean(inside) < 1.0  # else the comparison says little
    assert values["zeros_inside"] == pytest.approx(np.mean(inside))
    assert values["zeros_outside"] == pytest.approx(np.mean(outside))
    assert values["nonzero_values"] == np.linalg.matrix_rank(Q, tol=1e-6 * np.linalg.norm(Q, 2))
    for name, part, truth in (("sparse", P, true_P), ("low_rank", Q, true_Q), ("sum", P + Q, true_P + true_Q)):
        error = np.sqrt(((part - truth) ** 2).sum() / (truth**2).sum())
        assert values[f"error_{name}"] == pytest.approx(error, rel=1e-3)
    assert np.reshape(values["picture"], (9, 6)) == pytest.approx(P, abs=1e-3 * abs(P).max())
    assert np.reshape(values["true_picture"], (9, 6)) == pytest.approx(true_P, abs=1e-3 * abs(true_P).max())
    assert values["values"] == pytest.approx(np.linalg.svd(Q, compute_uv=False), abs=1e-3 * np.linalg.norm(Q, 2))
    assert values["true_trace_norm"] == pytest.approx(np.linalg.svd(true_Q, compute_uv=False).sum())


@pytest.mark.usefixtures("tiny")
def test_other_draws_have_no_picture() -> None:
    values = fig2_cell.compute({**SETTINGS, "seed": 1}, None).values
    assert "picture" not in values
    assert "values" not in values


@pytest.mark.usefixtures("tiny")
def test_a_gamma_that_leaves_nothing_of_p() -> None:
    values = fig2_cell.compute({**SETTINGS, "gamma": 1e6}, None).values
    assert (values["zeros_inside"], values["zeros_outside"], values["error_sparse"]) == (1.0, 1.0, 1.0)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(("name", "value"), [("gamma", 0.0), ("tau", -1.0), ("sparse_std", -1.0), ("seed", -1)])
def test_bad_settings_are_named(name: str, value: float) -> None:
    parameter = {"gamma": "penalty", "tau": "radius"}.get(name, name)
    with pytest.raises(InputError, match=parameter):
        fig2_cell.compute({**SETTINGS, name: value}, None)


def test_numbers_of_a_picture_are_short_and_near() -> None:
    values = np.random.default_rng(0).standard_normal((4, 5)) * 1e-7
    short = sparse_low_rank.rounded(values)
    assert np.reshape(short, (4, 5)) == pytest.approx(values, abs=1e-3 * abs(values).max())
    assert max(len(repr(entry)) for entry in short) <= 11
    assert sparse_low_rank.rounded(np.zeros((2, 2))) == [0.0] * 4


def rows(inside: float, outside: float, visible: float, *, seeds: int = 3, pictures: bool = False) -> pd.DataFrame:
    """Rows of every assumption, all alike but for a little noise."""
    generator = np.random.default_rng(0)
    table = []
    for setting in experiment("chen-fig2").scale("small").grid:
        if setting["seed"] != 0 or "design_std" in setting:
            continue
        for seed in range(seeds):
            row = {**setting, "seed": seed, "zeros_inside": inside, "zeros_outside": outside + 0.01 * generator.random()}
            row |= {"nonzero_values": visible + 1, "visible_values": visible, "error_sparse": 0.5, "error_low_rank": 0.5, "error_sum": 0.4}
            row |= {"true_trace_norm": 128.0, "relative_gap": 1e-7, "status": "verified", "seconds": 1.0}
            if pictures and seed == fig2.SHOWN_SEED:
                row |= {"picture": generator.random(3000).tolist(), "true_picture": generator.random(3000).tolist()}
                row |= {"values": [2.0] * 10 + [0.0] * 20, "true_values": [3.0] * 10 + [0.0] * 20}
            table.append(row)
    return pd.DataFrame(table)


def verdicts(frame: pd.DataFrame) -> list[Verdict]:
    """Zeros, pattern, count: each with 1/2 and without; then the lost pictures."""
    return [each.verdict for each in read(frame).comparisons]


def test_parts_that_are_found_and_parts_that_are_not() -> None:
    yes, no, lost = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.UNKNOWN
    assert verdicts(rows(0.9, 0.1, 11)) == [yes] * 6 + [lost]
    assert verdicts(rows(1.0, 0.98, 13)) == [yes] * 2 + [no] * 4 + [lost]  # nothing left of P: its zeros say nothing
    assert verdicts(rows(0.4, 0.1, 7)) == [no] * 6 + [lost]


def test_what_depends_on_a_deviation_is_said_to_depend_on_the_protocol() -> None:
    frame = rows(0.9, 0.1, 10)
    frame.loc[frame["sparse_std"] == 10.0, "zeros_outside"] = 0.8
    found = read(frame).comparisons
    assert found[2].verdict is Verdict.DEPENDS
    assert "true of 4 of 6 assumed deviations" in found[2].why
    assert found[4].verdict is Verdict.REPRODUCED
    assert found[4].difference == 0.0


def test_what_was_not_run_is_said_to_be_so() -> None:
    assert verdicts(pd.DataFrame()) == [Verdict.NOT_RUN] * 6 + [Verdict.UNKNOWN]
    frame = rows(0.9, 0.1, 10)
    one = frame[(frame["gamma"] == 150.0) & (frame["sparse_std"] == 5.0)]
    found = read(one).comparisons
    assert [each.verdict for each in found[::2]] == [Verdict.REPRODUCED] * 3 + [Verdict.UNKNOWN]
    assert {each.verdict for each in found[1::2]} == {Verdict.NOT_RUN}
    assert found[4].difference is None  # that of the first deviations, which were not run


def test_tables_and_figures() -> None:
    from bench_mtl.report.figures import style

    sections = {section.name: section for section in read(rows(0.9, 0.1, 10, pictures=True)).sections}
    assert set(sections) == {"paper-setting", "sparse-part", "low-rank-part", "scan", "designs"}
    for name in ("sparse-part", "low-rank-part"):
        draw = sections[name].draw
        assert draw is not None
        assert style.files(draw(), ["svg"])["svg"].startswith(b"<?xml")
    table = sections["paper-setting"].table
    assert table is not None
    assert len(table) == 2 * len(DEVIATIONS)
    assert set(table["tau"]) == {TAU}
    assert set(table["draws"]) == {3}
    assert table["zeros_outside"].between(0.1, 0.11).all()


def test_the_full_scale_takes_over_the_small_one() -> None:
    small, full = (experiment("chen-fig2").scale(name).grid for name in ("small", "full"))
    assert [setting for setting in small if setting not in full] == []
    assert len({tuple(setting.items()) for setting in full}) == len(full)
