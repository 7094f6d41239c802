"""Figure 3 of Chen, Liu and Ye: a cell recomputed by hand, and what is read from rows whose story is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.engine.registry import load_registry
from bench_mtl.papers import Verdict, cells_of, experiment
from bench_mtl.papers.chen import faces_cell
from bench_mtl.papers.chen.faces import GAMMAS, PAPER, TAUS, read
from bench_mtl.papers.chen.faces_cell import compute, pictured, roughness

SETTINGS = {"data": "orl_faces_32x32", "gamma": 4.0, "tau": 0.4}


@pytest.fixture
def faces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with pictures of 3 x 2 pixels of three people."""
    generator = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 8).astype(np.int16)
    X = np.clip(generator.normal(120.0, 30.0, (24, 6)) + 40.0 * generator.standard_normal((3, 6))[y], 0.0, 255.0).astype(np.uint8)
    np.savez(tmp_path / "orl_faces_32x32.npz", X=X, y=y)
    monkeypatch.setitem(faces_cell.SHAPES, "orl_faces_32x32", (3, 2))
    monkeypatch.setattr(faces_cell, "TARGET", 1e-9)
    return tmp_path


def by_proximal_gradient(folder: Path, gamma: float, tau: float) -> tuple[Any, Any, Any]:
    """P, Q and X^T Y by many plain steps on standardised pixels."""
    with np.load(folder / "orl_faces_32x32.npz") as file:
        X, y = np.asarray(file["X"], dtype=float), np.asarray(file["y"])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    P, Q, L = np.zeros((6, 3)), np.zeros((6, 3)), 2.0 * np.linalg.norm(X, 2) ** 2
    for _ in range(800):
        G = X.T @ (X @ (P + Q) - Y)
        P = np.sign(P - G / L) * np.maximum(abs(P - G / L) - gamma / L, 0.0)
        U, values, Vt = np.linalg.svd(Q - G / L, full_matrices=False)
        low, high = 0.0, values[0]
        for _ in range(60 if values.sum() > tau else 0):
            theta = 0.5 * (low + high)
            low, high = (theta, high) if np.maximum(values - theta, 0.0).sum() > tau else (low, theta)
        Q = (U * np.maximum(values - (high if values.sum() > tau else 0.0), 0.0)) @ Vt
    return P, Q, X.T @ Y


def test_a_cell_against_a_plain_method(faces: Path) -> None:
    found = compute(SETTINGS, faces)
    assert found.status == "verified"
    P, Q, products = by_proximal_gradient(faces, 4.0, 0.4)
    values = found.values
    assert 0 < np.count_nonzero(P) < 18  # else the comparison says little
    assert values["nonzero_percent"] == pytest.approx(100.0 * np.count_nonzero(P) / 18)
    assert values["rank"] == np.linalg.matrix_rank(Q, tol=1e-3 * np.linalg.norm(Q, 2))
    assert values["trace_norm"] == pytest.approx(0.4, rel=1e-6)
    assert values["empty_gamma"] == pytest.approx(abs(products).max())
    # The file holds a picture column by column: pixel 3 is the first of the second column.
    for name, part in (("sparse", P), ("low_rank", Q)):
        picture = np.array([[part[0, 0], part[3, 0]], [part[1, 0], part[4, 0]], [part[2, 0], part[5, 0]]])
        assert np.reshape(values[f"{name}_picture"], (3, 2)) == pytest.approx(picture, abs=3e-3 * abs(picture).max())


def test_an_empty_sparse_part(faces: Path) -> None:
    values = compute({**SETTINGS, "gamma": 1e4}, faces).values
    assert values["nonzero_percent"] == 0.0
    assert values["roughness_sparse"] is None
    assert values["sparse_picture"] == [0.0] * 6
    assert values["rank"] >= 1


def test_roughness_of_pictures_that_are_known() -> None:
    assert roughness(np.ones((4, 5))) == 0.0
    assert roughness(np.zeros((4, 5))) is None
    board = np.indices((6, 6)).sum(axis=0) % 2 * 2.0 - 1.0
    assert roughness(board) == pytest.approx(2.0)  # neighbours are opposite: (1 - -1)^2 / 2
    assert roughness(3.0 * board) == pytest.approx(2.0)
    noise = np.random.default_rng(0).standard_normal((200, 200))
    assert roughness(noise) == pytest.approx(1.0, abs=0.02)


def test_pixels_are_column_by_column() -> None:
    assert pictured(np.arange(6.0), (3, 2)).tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


@pytest.mark.parametrize(("name", "value"), [("gamma", 0.0), ("tau", -1.0), ("data", "faces")])
def test_bad_settings_are_named(faces: Path, name: str, value: Any) -> None:
    parameter = {"gamma": "penalty", "tau": "radius"}.get(name, name)
    with pytest.raises(InputError, match=parameter):
        compute({**SETTINGS, name: value}, faces)


def test_a_folder_without_faces_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ar10p_faces"):
        cells_of(experiment("chen-faces"), "small", load_registry(), tmp_path)


def rows(sparser: float = -1.0, higher: float = 1.0, *, noise: bool = False, in_the_face: bool = True) -> pd.DataFrame:
    """Rows of two sets of faces: non-zeros that go with gamma, a rank that goes with tau."""
    generator = np.random.default_rng(0)
    table: list[dict[str, Any]] = []
    for data, size in (("ar10p_faces", 2400), ("orl_faces_32x32", 1024)):
        for i, gamma in enumerate(GAMMAS):
            for j, tau in enumerate(TAUS):
                parts = {"nonzero_percent": 20.0 + 2.0 * sparser * i - 0.1 * j, "rank": int(20 + 3 * higher * j)}
                rough = {"roughness_sparse": 1.0, "roughness_low_rank": 0.1, "trace_norm": tau, "empty_gamma": 66.0}
                sparse = np.zeros(faces_cell.SHAPES[data])
                sparse[(sparse.shape[0] // 2, sparse.shape[1] // 2) if in_the_face else (0, -1)] = 1.0
                low_rank = generator.standard_normal(size) if noise else np.linspace(-1.0, 1.0, size)
                pictures = {"sparse_picture": sparse.ravel().tolist(), "low_rank_picture": low_rank.tolist()}
                about = {"relative_gap": 1e-6, "status": "verified", "seconds": 1.0}
                table.append({"data": data, "gamma": gamma, "tau": tau, **parts, **rough, **pictures, **about})
    return pd.DataFrame(table)


def verdicts(frame: pd.DataFrame, words: str) -> list[Verdict]:
    return [each.verdict for each in read(frame).comparisons if words in each.what]


BOTH, SPARSER, HIGHER, ROUGH = "the second setting", "sparse regularisation", "rank constraint", "rough shape"
MARKS = "facial marks"


def test_what_holds_and_what_does_not() -> None:
    yes, no = [Verdict.REPRODUCED] * 2, [Verdict.NOT_REPRODUCED] * 2
    for words in (BOTH, SPARSER, HIGHER, ROUGH):
        assert verdicts(rows(), words) == yes, words
    assert (verdicts(rows(sparser=1.0), SPARSER), verdicts(rows(sparser=1.0), HIGHER)) == (no, yes)
    assert (verdicts(rows(higher=-1.0), HIGHER), verdicts(rows(higher=-1.0), SPARSER)) == (no, yes)
    assert verdicts(rows(sparser=1.0), BOTH) == verdicts(rows(higher=-1.0), BOTH) == no
    assert verdicts(rows(noise=True), ROUGH) == no
    assert verdicts(rows(), MARKS) == [Verdict.UNKNOWN] * 2  # in the face, but marks or not no number says
    assert verdicts(rows(in_the_face=False), MARKS) == no  # in a corner: hair or background
    assert verdicts(rows(higher=0.0), HIGHER) == no  # nothing goes as published


def test_a_few_neighbours_the_other_way_are_allowed_and_many_leave_it_open() -> None:
    frame = rows()
    frame.loc[(frame["data"] == "ar10p_faces") & (frame["gamma"] == GAMMAS[0]) & (frame["tau"] == TAUS[0]), "nonzero_percent"] = 0.0
    found = [each for each in read(frame).comparisons if SPARSER in each.what]
    assert [each.verdict for each in found] == [Verdict.REPRODUCED] * 2
    assert found[0].ours == "35 of 36 neighbours in the grid as published, 1 the other way"
    frame.loc[(frame["data"] == "ar10p_faces") & (frame["gamma"] == GAMMAS[1]), "nonzero_percent"] += 50.0
    assert verdicts(frame, SPARSER) == [Verdict.UNKNOWN, Verdict.REPRODUCED]


def test_published_numbers_are_beside_ours_and_cannot_be_compared() -> None:
    found = [each for each in read(rows()).comparisons if "gamma 11" in each.what and "AR" in each.what]
    assert [each.published_value for each in found] == [15.07, 3.0]
    i, j = GAMMAS.index(PAPER[0][0]), TAUS.index(PAPER[0][1])
    assert [each.our_value for each in found] == [20.0 - 2.0 * i - 0.1 * j, 20.0 + 3.0 * j]
    assert {each.verdict for each in found} == {Verdict.UNKNOWN}


def test_what_was_not_run_is_said_to_be_so() -> None:
    nothing = read(pd.DataFrame())
    assert {each.verdict for each in nothing.comparisons} == {Verdict.NOT_RUN, Verdict.UNKNOWN}
    frame = rows()
    assert verdicts(frame[frame["tau"] == TAUS[0]], BOTH) == [Verdict.NOT_RUN] * 2
    assert verdicts(frame[frame["tau"] == TAUS[0]], ROUGH) == [Verdict.NOT_RUN] * 2
    assert verdicts(frame[frame["tau"] == TAUS[0]], HIGHER) == [Verdict.NOT_RUN] * 2
    assert verdicts(frame[frame["data"] == "ar10p_faces"], HIGHER) == [Verdict.REPRODUCED]


def test_tables_and_figures() -> None:
    from bench_mtl.report.figures import style

    frame = rows()
    frame.loc[0, "roughness_sparse"] = None
    sections = {section.name: section for section in read(frame).sections}
    assert set(sections) == {"ar10p-pictures", "ar10p-grid", "orl-pictures", "orl-grid"}
    for section in sections.values():
        assert section.draw is not None
        assert style.files(section.draw(), ["svg"])["svg"].startswith(b"<?xml")
    shown, table = sections["orl-grid"].display, sections["orl-grid"].table
    assert shown is not None
    assert shown.iloc[1].tolist()[:3] == ["5", "18.00 %, 20", "17.90 %, 23"]
    assert table is not None
    assert not any("picture" in column for column in table.columns)


def test_the_scales() -> None:
    small, full = (experiment("chen-faces").scale(name).grid for name in ("small", "full"))
    assert [setting for setting in small if setting not in full] == []
    for grid in (small, full):
        assert {(gamma, tau) for gamma, tau in PAPER} <= {(setting["gamma"], setting["tau"]) for setting in grid}
