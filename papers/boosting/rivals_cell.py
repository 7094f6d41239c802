"""What a cell of the comparison computes: one learner on one split, its parameter chosen on a third of the training examples."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl import Status, load
from bench_mtl.runner import Found
from papers.boosting.learners import LEARNERS, MOST_STUMPS, TOLERANCE


@dataclass(frozen=True)
class DataSet:
    """A data set and how many of its examples train and test."""

    source: Mapping[str, Any]
    training: int
    test: int
    is_file: bool = True


SETS: Mapping[str, DataSet] = {
    "synthetic": DataSet({"name": "synthetic_multiclass"}, 600, 1000, is_file=False),
    "digits": DataSet({"name": "digits"}, 600, 1000, is_file=False),
    "Scene": DataSet({"name": "scene", "classes": "single"}, 600, 1000),
    "Yeast": DataSet({"name": "yeast", "classes": "sets:10"}, 600, 500),
    "faces, ORL": DataSet({"name": "orl_faces_32x32"}, 280, 120),
}

#: Of the training examples, to choose the parameter on.
VALIDATION_SHARE = 1.0 / 3.0


def compute(settings: Mapping[str, Any], data_dir: Path | None) -> Found:
    """Choose the parameter of one learner on one split, fit it to all training examples, and judge it on the test examples."""
    from sklearn.model_selection import train_test_split

    chosen, learner, seed = SETS[settings["data"]], LEARNERS[settings["model"]], int(settings["seed"])
    data = load({**chosen.source, "examples": chosen.training, "held_out": chosen.test, "seed": seed}, data_dir=data_dir)
    assert data.held_out is not None
    X, X_test = (np.asarray(each.design.block(0), dtype=np.float64) for each in (data, data.held_out))
    y, y_test = (each.targets.argmax(axis=1) for each in (data, data.held_out))
    X_fit, X_val, y_fit, y_val = train_test_split(X, y, test_size=VALIDATION_SHARE, random_state=seed, stratify=y)
    started = time.perf_counter()
    tried = learner.tried(X_fit, y_fit, data.n_tasks, seed, X_val)
    errors = {value: float(np.mean(predicted != y_val)) for value, predicted in tried}
    setting = min(errors, key=lambda value: errors[value])  # of equal ones the first, which is the sparsest
    tuned = time.perf_counter()
    machine = learner.fit(setting, X, y, data.n_tasks, seed)
    values = {
        "test_error": float(np.mean(machine.predict(X_test) != y_test)),
        "stumps": len(machine.cuts),
        "features": len({feature for feature, _ in machine.cuts}),
        "setting": float(setting),
        "validation_error": errors[setting],
        "tuning_seconds": tuned - started,
        "fit_seconds": time.perf_counter() - tuned,
        **machine.details,
    }
    return Found(values, *_ending(machine.details))


def _ending(details: Mapping[str, Any]) -> tuple[Status, str]:
    gap = details.get("relative_gap")
    if gap is None:
        return Status.INACCURATE, "no bound: ended after its rounds"
    if gap <= TOLERANCE:
        return Status.VERIFIED, f"relative gap {gap:.1e} proven over all stumps"
    return Status.INACCURATE, f"relative gap {gap:.1e} proven over all stumps, with {MOST_STUMPS} stumps or after 60 s"


def files(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the data sets of a cell that are read from files."""
    chosen = SETS[settings["data"]]
    return [dict(chosen.source)] if chosen.is_file else []
