"""Figures 2 and 3 of Chen, Liu and Ye: cells against loops over a solution that is proven, and what is read of the pictures."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench_mtl.data import TaskData, synthetic_sparse_low_rank
from papers.chen import faces_cell, fig2_cell
from papers.chen.faces import against, in_face, roughness_in_face
from papers.chen.sparse_low_rank import fit_parts, rounded

TINY = {"tasks": 6, "features": 9, "examples": 12, "rank": 2, "zero_features": 3, "zero_tasks": 2}
SYNTHETIC = {"sparse_std": 2.0, "low_rank_std": 0.5, "gamma": 4.0, "tau": 3.0, "seed": 0}
FACES = {"data": "orl_faces_32x32", "gamma": 4.0, "tau": 0.4}


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Few tasks, and a folder with pictures of 3 x 2 pixels of three people."""
    for name, value in TINY.items():
        monkeypatch.setattr(fig2_cell, name.upper(), value)
    generator = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 8).astype(np.int16)
    X = np.clip(generator.normal(120.0, 30.0, (24, 6)) + 40.0 * generator.standard_normal((3, 6))[y], 0.0, 255.0).astype(np.uint8)
    np.savez(tmp_path / "orl_faces_32x32.npz", X=X, y=y)
    monkeypatch.setitem(faces_cell.SHAPES, "orl_faces_32x32", (3, 2))
    for cell in (fig2_cell, faces_cell):
        monkeypatch.setattr(cell, "TARGET", 1e-9)
    return tmp_path


@pytest.mark.usefixtures("tiny")
def test_synthetic_tasks_against_loops() -> None:
    found = fig2_cell.compute(SYNTHETIC, None)
    assert found.status == "verified"
    data = synthetic_sparse_low_rank(**TINY, sparse_std=2.0, low_rank_std=0.5, seed=0)
    P, Q = fit_parts(data, 4.0, 3.0, fig2_cell.SOLVER, 1e-9, 60.0).point
    is_there = np.abs(P) > 1e-6 * np.abs(P).max()
    true_P, true_Q = data.truth["P"], data.truth["Q"]
    inside = [not is_there[j, k] for j in range(9) for k in range(6) if j < 3 or k < 2]
    outside = [not is_there[j, k] for j in range(9) for k in range(6) if j >= 3 and k >= 2]
    values = found.values
    assert 0.0 < np.mean(outside) < np.mean(inside) < 1.0  # else the comparison says little
    assert values["zeros_inside"] == pytest.approx(np.mean(inside))
    assert values["zeros_outside"] == pytest.approx(np.mean(outside))
    assert values["nonzero_values"] == np.linalg.matrix_rank(Q, tol=1e-6 * np.linalg.norm(Q, 2))
    assert values["visible_values"] == np.linalg.matrix_rank(Q, tol=0.05 * np.linalg.norm(Q, 2))
    for name, part, truth in (("sparse", P, true_P), ("low_rank", Q, true_Q), ("sum", P + Q, true_P + true_Q)):
        assert values[f"error_{name}"] == pytest.approx(np.sqrt(((part - truth) ** 2).sum() / (truth**2).sum()), rel=1e-3)
    assert np.reshape(values["picture"], (9, 6)) == pytest.approx(P, abs=1e-3 * abs(P).max())
    assert np.reshape(values["true_picture"], (9, 6)) == pytest.approx(true_P, abs=1e-3 * abs(true_P).max())
    assert values["values"] == pytest.approx(np.linalg.svd(Q, compute_uv=False), abs=1e-3 * np.linalg.norm(Q, 2))
    assert values["true_trace_norm"] == pytest.approx(np.linalg.svd(true_Q, compute_uv=False).sum())


def test_faces_against_plain_formulas(tiny: Path) -> None:
    found = faces_cell.compute(FACES, tiny)
    assert found.status == "verified"
    with np.load(tiny / "orl_faces_32x32.npz") as file:
        X, y = np.asarray(file["X"], dtype=float), np.asarray(file["y"])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    P, Q = fit_parts(TaskData.shared(X, Y), 4.0, 0.4, faces_cell.SOLVER, 1e-9, 60.0).point
    values, count = found.values, int((np.abs(P) > 1e-6 * np.abs(P).max()).sum())
    assert 0 < count < 18  # else the comparison says little
    assert values["nonzero_percent"] == pytest.approx(100.0 * count / 18)
    assert values["rank"] == np.linalg.matrix_rank(Q, tol=1e-3 * np.linalg.norm(Q, 2))
    assert values["empty_gamma"] == pytest.approx(abs(X.T @ Y).max())
    # The file holds a picture column by column: pixel 3 is the first of the second column.
    for name, part in (("sparse", P), ("low_rank", Q)):
        picture = np.array([[part[0, 0], part[3, 0]], [part[1, 0], part[4, 0]], [part[2, 0], part[5, 0]]])
        assert np.reshape(values[f"{name}_picture"], (3, 2)) == pytest.approx(picture, abs=3e-3 * abs(picture).max())


def test_pictures() -> None:
    entries = np.random.default_rng(0).standard_normal((4, 5)) * 1e-7
    assert np.reshape(rounded(entries), (4, 5)) == pytest.approx(entries, abs=1e-3 * abs(entries).max())
    assert max(len(repr(entry)) for entry in rounded(entries)) <= 11
    assert rounded(np.zeros((2, 2))) == [0.0] * 4
    board = np.indices((6, 6)).sum(axis=0) % 2 * 2.0 - 1.0
    noise = np.random.default_rng(0).standard_normal((200, 200))
    assert roughness_in_face(np.ones((4, 5))) == 0.0
    assert roughness_in_face(3.0 * board) == pytest.approx(2.0)  # neighbours are opposite: (1 - -1)^2 / 2
    assert roughness_in_face(noise) == pytest.approx(1.0, abs=0.02)
    board[0] = 100.0  # hair
    assert roughness_in_face(board) == pytest.approx(2.0)
    assert 0.4 < in_face((60, 40)).mean() < 0.45


def test_steps_that_change_nothing_do_not_count() -> None:
    steps = pd.DataFrame([("A", tau, gamma, gamma) for tau in (1, 2) for gamma in range(4)], columns=["faces", "tau", "gamma", "found"])
    steps.loc[[1, 6], "found"] = [0, 3]  # along gamma: 0, 0, 2, 3 and 0, 1, 3, 3
    assert against(steps, "gamma", "tau", "found", 1.0).to_dict() == {"A": 1.0}
    steps.loc[3, "found"] = 1
    assert against(steps, "gamma", "tau", "found", -1.0).to_dict() == {"A": 0.25}
