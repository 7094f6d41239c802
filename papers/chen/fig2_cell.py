"""What a cell of `chen-fig2` computes: the two parts found in one draw of the tasks, against the true ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl import NEGLIGIBLE_ENTRY
from bench_mtl.data import synthetic_sparse_low_rank
from bench_mtl.runner import Found
from papers import Array
from papers.chen.sparse_low_rank import fit_parts, rounded, singular_values

TASKS, FEATURES, EXAMPLES = 30, 100, 60
RANK, ZERO_FEATURES, ZERO_TASKS = 10, 30, 10

SOLVER = "admm"
#: The relative gap to which the model is solved, and seconds on the clock of the solver.
TARGET, SECONDS = 1e-6, 120.0

#: A singular value that can be seen in a plot: above this share of the largest.
VISIBLE = 0.05
#: The draw that is pictured, with the designs of the paper.
SHOWN_SEED = 0


def compute(settings: Mapping[str, Any], data_dir: Path | None) -> Found:
    """Solve the model on one draw of the tasks and compare its parts with the true ones."""
    data = synthetic_sparse_low_rank(
        tasks=TASKS, features=FEATURES, examples=EXAMPLES, rank=RANK, zero_features=ZERO_FEATURES, zero_tasks=ZERO_TASKS,
        sparse_std=settings["sparse_std"], low_rank_std=settings["low_rank_std"], seed=settings["seed"],
        design_std=settings.get("design_std", 1.0),
    )  # fmt: skip
    fit = fit_parts(data, settings["gamma"], settings["tau"], SOLVER, TARGET, SECONDS)
    ours_P, ours_Q = fit.point
    P, Q = data.truth["P"], data.truth["Q"]
    is_zero = np.abs(ours_P) <= NEGLIGIBLE_ENTRY * np.abs(ours_P).max()
    values = singular_values(ours_Q, settings["tau"])
    true_values = np.asarray(np.linalg.svd(Q, compute_uv=False))
    found: dict[str, Any] = {
        "zeros_inside": float(is_zero[P == 0.0].mean()),
        "zeros_outside": float(is_zero[P != 0.0].mean()),
        "nonzero_values": int(np.count_nonzero(values > NEGLIGIBLE_ENTRY * values[0])),
        "visible_values": int(np.count_nonzero(values > VISIBLE * values[0])),
        "error_sparse": _relative_error(ours_P, P),
        "error_low_rank": _relative_error(ours_Q, Q),
        "error_sum": _relative_error(ours_P + ours_Q, P + Q),
        "true_trace_norm": float(true_values.sum()),
    }
    if settings["seed"] == SHOWN_SEED and "design_std" not in settings:
        found |= {"picture": rounded(ours_P), "true_picture": rounded(P)}
        found |= {"values": rounded(values), "true_values": rounded(true_values)}
    return fit.found(found)


def _relative_error(found: Array, truth: Array) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))
