"""What a cell of `chen-faces` computes: sparse and low-rank parts that tell people apart, as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl import NEGLIGIBLE_ENTRY, load
from bench_mtl.runner import Found
from papers.chen.sparse_low_rank import fit_parts, rounded, singular_values

#: Rows and columns of the pictures, which the files hold column by column.
SHAPES = {"ar10p_faces": (60, 40), "orl_faces_32x32": (32, 32), "yaleb_faces_32x32": (32, 32)}

SOLVER = "admm"
#: The relative gap to which the model is solved, and seconds on the clock of the solver.
TARGET, SECONDS = 1e-5, 120.0

#: A singular value counts for the rank above this share of the largest one.
COUNTED = 1e-3


def data_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the faces, as `bench_mtl.load` takes them: a task a person, labels -1 and +1."""
    return {"name": settings["data"], "preprocess": ["standardise"]}


def compute(settings: Mapping[str, Any], data_dir: Path | None) -> Found:
    """Solve the model and look at its parts."""
    data = load(data_of(settings), data_dir=data_dir)
    gamma, tau = settings["gamma"], settings["tau"]
    fit = fit_parts(data, gamma, tau, SOLVER, TARGET, SECONDS)
    P, Q = fit.point
    values = singular_values(Q, tau)
    sparse, low_rank = (np.reshape(part[:, 0], SHAPES[settings["data"]], order="F") for part in (P, Q))
    found = {
        "nonzero_percent": 100.0 * float((np.abs(P) > NEGLIGIBLE_ENTRY * np.abs(P).max()).mean()),
        "rank": int(np.count_nonzero(values > COUNTED * values[0])),
        "empty_gamma": float(np.abs(data.design.adjoint(data.targets)).max()),
        "sparse_picture": rounded(sparse, 3),
        "low_rank_picture": rounded(low_rank, 3),
    }
    return fit.found(found)
