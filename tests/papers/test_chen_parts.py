"""Figures 2 and 3 of Chen, Liu and Ye: cells against plain steps, and what is read from rows whose story is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench_mtl.data import synthetic_sparse_low_rank
from papers.chen import faces_cell, fig2_cell
from papers.chen.faces import OTHER, PAPER, in_face, roughness_in_face, values
from papers.chen.faces_cell import pictured, roughness
from papers.chen.sparse_low_rank import rounded
from papers.index import experiment
from papers.judge import Judged, Verdict
from papers.report import read_rows

TINY = {"tasks": 6, "features": 9, "examples": 12, "rank": 2, "zero_features": 3, "zero_tasks": 2}
SYNTHETIC = {"sparse_std": 2.0, "low_rank_std": 0.5, "gamma": 4.0, "tau": 3.0, "seed": 0}
FACES = {"data": "orl_faces_32x32", "gamma": 4.0, "tau": 0.4}


def by_proximal_gradient(tasks: Sequence[tuple[Any, Any]], gamma: float, tau: float) -> tuple[Any, Any]:
    """P and Q by many plain steps, one task at a time, with a projection by bisection."""
    P = Q = np.zeros((tasks[0][0].shape[1], len(tasks)))
    L = 2.0 * max(np.linalg.norm(X, 2) ** 2 for X, _ in tasks)
    for _ in range(1500):
        G = np.column_stack([X.T @ (X @ (P[:, k] + Q[:, k]) - y) for k, (X, y) in enumerate(tasks)])
        P = np.sign(P - G / L) * np.maximum(np.abs(P - G / L) - gamma / L, 0.0)
        U, sizes, Vt = np.linalg.svd(Q - G / L, full_matrices=False)
        low, high = 0.0, sizes[0] if sizes.sum() > tau else 0.0
        for _ in range(50):
            theta = 0.5 * (low + high)
            low, high = (theta, high) if np.maximum(sizes - theta, 0.0).sum() > tau else (low, theta)
        Q = (U * np.maximum(sizes - high, 0.0)) @ Vt
    return P, Q


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
def test_synthetic_tasks_against_a_plain_method_and_loops() -> None:
    found = fig2_cell.compute(SYNTHETIC, None)
    assert found.status == "verified"
    data = synthetic_sparse_low_rank(**TINY, sparse_std=2.0, low_rank_std=0.5, seed=0)
    P, Q = by_proximal_gradient([data.task(k) for k in range(6)], 4.0, 3.0)
    true_P, true_Q = data.truth["P"], data.truth["Q"]
    inside = [P[j, k] == 0.0 for j in range(9) for k in range(6) if j < 3 or k < 2]
    outside = [P[j, k] == 0.0 for j in range(9) for k in range(6) if j >= 3 and k >= 2]
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


def test_faces_against_a_plain_method(tiny: Path) -> None:
    found = faces_cell.compute(FACES, tiny)
    assert found.status == "verified"
    with np.load(tiny / "orl_faces_32x32.npz") as file:
        X, y = np.asarray(file["X"], dtype=float), np.asarray(file["y"])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    P, Q = by_proximal_gradient([(X, Y[:, k]) for k in range(3)], 4.0, 0.4)
    values = found.values
    assert 0 < np.count_nonzero(P) < 18  # else the comparison says little
    assert values["nonzero_percent"] == pytest.approx(100.0 * np.count_nonzero(P) / 18)
    assert values["rank"] == np.linalg.matrix_rank(Q, tol=1e-3 * np.linalg.norm(Q, 2))
    assert values["trace_norm"] == pytest.approx(0.4, rel=1e-6)
    assert values["empty_gamma"] == pytest.approx(abs(X.T @ Y).max())
    # The file holds a picture column by column: pixel 3 is the first of the second column.
    for name, part in (("sparse", P), ("low_rank", Q)):
        picture = np.array([[part[0, 0], part[3, 0]], [part[1, 0], part[4, 0]], [part[2, 0], part[5, 0]]])
        assert np.reshape(values[f"{name}_picture"], (3, 2)) == pytest.approx(picture, abs=3e-3 * abs(picture).max())


def test_a_gamma_that_leaves_nothing_of_p(tiny: Path) -> None:
    values = fig2_cell.compute({**SYNTHETIC, "gamma": 1e6, "seed": 1}, None).values
    assert (values["zeros_inside"], values["zeros_outside"], values["error_sparse"]) == (1.0, 1.0, 1.0)
    assert not {"picture", "values"} & set(values)  # of the first draw alone
    values = faces_cell.compute({**FACES, "gamma": 1e4}, tiny).values
    assert (values["nonzero_percent"], values["roughness_sparse"], values["sparse_picture"]) == (0.0, None, [0.0] * 6)
    assert values["rank"] >= 1


def test_pictures() -> None:
    entries = np.random.default_rng(0).standard_normal((4, 5)) * 1e-7
    assert np.reshape(rounded(entries), (4, 5)) == pytest.approx(entries, abs=1e-3 * abs(entries).max())
    assert max(len(repr(entry)) for entry in rounded(entries)) <= 11
    assert rounded(np.zeros((2, 2))) == [0.0] * 4
    assert pictured(np.arange(6.0), (3, 2)).tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    board = np.indices((6, 6)).sum(axis=0) % 2 * 2.0 - 1.0
    noise = np.random.default_rng(0).standard_normal((200, 200))
    for rough in (roughness, roughness_in_face):
        assert rough(np.ones((4, 5))) == 0.0
        assert rough(3.0 * board) == pytest.approx(2.0)  # neighbours are opposite: (1 - -1)^2 / 2
        assert rough(noise) == pytest.approx(1.0, abs=0.02)
    assert roughness(np.zeros((4, 5))) is None
    board[0] = 100.0  # hair
    assert roughness_in_face(board) == pytest.approx(2.0)


def judged(name: str, rows: Sequence[dict[str, Any]]) -> list[Judged]:
    return list(read_rows(experiment(name), rows).judged)


def of_figure_2(inside: float, outside: float, visible: int) -> list[dict[str, Any]]:
    """Rows of every assumption, all alike."""
    found = {"zeros_inside": inside, "zeros_outside": outside, "visible_values": visible, "status": "verified"}
    return [{**settings, **found} for settings in experiment("chen-fig2").scale("small").grid]


def test_parts_that_are_found_and_parts_that_are_not() -> None:
    yes, no, lost = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.UNKNOWN
    for rows, verdicts in (
        (of_figure_2(0.9, 0.1, 11), [yes, yes, yes, lost]),
        (of_figure_2(1.0, 0.98, 13), [yes, no, no, lost]),  # nothing left of P: its zeros say nothing
        (of_figure_2(0.4, 0.1, 7), [no, no, no, lost]),
    ):
        repeated = [{**row, "seed": row["seed"] + more} for row in rows for more in (0, 10)]
        assert [each.verdict for each in judged("chen-fig2", repeated)] == verdicts


def test_what_depends_on_a_deviation() -> None:
    rows = [{**row, "seed": row["seed"] + more} for row in of_figure_2(0.9, 0.1, 10) for more in (0, 10)]
    for row in rows:
        row["zeros_outside"] = 0.8 if row["sparse_std"] == 10.0 else 0.1
    _, pattern, count, _ = judged("chen-fig2", rows)
    assert (pattern.verdict, count.verdict) == (Verdict.DEPENDS, Verdict.REPRODUCED)
    assert pattern.why.startswith("of 60 protocols; depends on Deviation of P;")
    assert count.value == 10.0


def of_faces(sparser: float = -1.0, higher: float = 1.0, *, noise: bool = False, corner: bool = False) -> list[dict[str, Any]]:
    """Rows of all sets of faces: non-zeros that go with gamma, a rank that goes with tau."""
    rows = []
    for settings in experiment("chen-faces").scale("full").grid:
        shape = faces_cell.SHAPES[settings["data"]]
        sparse, flat = np.zeros(shape), np.linspace(-1.0, 1.0, shape[0] * shape[1])
        sparse[(0, 0) if corner else (shape[0] // 2, shape[1] // 2)] = 1.0
        low_rank = np.random.default_rng(0).standard_normal(len(flat)) if noise else flat
        found = {"nonzero_percent": 80.0 + sparser * settings["gamma"] - settings["tau"], "rank": round(50 + 50 * higher * settings["tau"])}
        found |= {"sparse_picture": sparse.ravel().tolist(), "low_rank_picture": low_rank.tolist(), "empty_gamma": 66.0}
        rows.append({**settings, **found, "status": "verified"})
    return rows


def readings(rows: Sequence[dict[str, Any]], *measures: str) -> list[set[str]]:
    """Of the statements on measures, in all sets of faces."""
    found = [each for each in judged("chen-faces", rows) if each.reading]
    return [{each.reading for each in found if each.claim.measure.startswith(measure)} for measure in measures]


BOTH = ("non-zeros of P", "rank of Q")
ALL = (*BOTH, "share of changing steps of gamma", "share of changing steps of tau", "share of P", "roughness")


def test_what_faces_show() -> None:
    yes, no = {"holds"}, {"does not hold"}
    assert readings(of_faces(), *ALL) == [yes] * 6
    assert readings(of_faces(sparser=1.0), *ALL) == [no, yes, no, yes, yes, yes]
    assert readings(of_faces(higher=-1.0), *ALL) == [yes, no, yes, no, yes, yes]
    assert readings(of_faces(noise=True, corner=True), *ALL) == [yes, yes, yes, yes, no, no]
    assert {each.verdict for each in judged("chen-faces", of_faces())} == {Verdict.OTHER_DATA, Verdict.UNKNOWN}


def test_a_tenth_of_the_steps_may_go_the_other_way_and_those_that_change_nothing_do_not_count() -> None:
    rows = pd.DataFrame(of_faces())
    of_ar = rows["data"] == "ar10p_faces"
    rows.loc[of_ar & (rows["gamma"] == 3.0) & (rows["tau"] < 0.1), "nonzero_percent"] = 0.0
    rows.loc[of_ar & (rows["gamma"] == 20.0) & (rows["tau"] == 0.02), "nonzero_percent"] = rows["nonzero_percent"][
        of_ar & (rows["gamma"] == 14.0) & (rows["tau"] == 0.02)
    ].iloc[0]
    found = values(rows)
    shares = found[found["measure"].str.startswith("share of changing steps of gamma")].set_index("faces")["value"]
    assert shares.to_dict() == {"AR, 10 people": 3 / 35, "ORL": 0.0, "Yale B": 0.0}
    assert set(found["setting"]) == {OTHER, *PAPER.values(), "-"}
    assert 0.4 < in_face((60, 40)).mean() < 0.45
