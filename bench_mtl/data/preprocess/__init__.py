"""Preprocessing by name. Statistics are pooled over the rows of all tasks, so that tasks keep common features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import require_finite
from bench_mtl.core.designs import PerTaskDesign, SharedDesign, stacked_rows
from bench_mtl.core.errors import InputError, unknown
from bench_mtl.core.types import Matrix
from bench_mtl.data.preprocess.steps import SVD, Fitted, Step, perceptron_kernel, standardise, stumps, svd, tfidf, trees, unit_rows
from bench_mtl.model.task_data import TaskData

__all__ = ["FORMS", "preprocess"]

_STEPS: dict[str, Step] = {"unit_rows": unit_rows, "standardise": standardise, "tfidf": tfidf}
_WITH_ARGUMENTS = {"svd": svd, "perceptron_kernel": perceptron_kernel, "stumps": stumps, "trees": trees}

#: How the steps are written, those with arguments with them.
FORMS = ("none", *_STEPS, SVD, "perceptron_kernel", "stumps:J", "trees:J:DEPTH")


def preprocess(data: TaskData, steps: Sequence[str]) -> TaskData:
    """Return `data` with the named steps applied to its features, in order.

    ============== ===================================================================================================
    ``none``        nothing
    ``unit_rows``   every row scaled to Euclidean length 1; zero rows stay zero
    ``standardise`` every feature to mean 0 and (population) standard deviation 1; constant features become 0. CSR is only
                    scaled, not centred, so that it stays sparse; its constant features keep their values
    ``tfidf``       counts times log((1 + n) / (1 + rows with the word)) + 1, rows not normalised (add ``unit_rows``)
    ``svd:K``       coordinates X V in the K leading right singular directions V of the uncentred rows; dense
    ``stumps:J``    outputs -1/+1 of J decision stumps drawn at random; ``stumps:J:SEED``
    ``trees:J:D``   outputs -1/+1 of J trees of depth D at most, grown on random partitions of the classes; ``trees:J:D:SEED``
    ============== ===================================================================================================

    and ``perceptron_kernel``, ``perceptron_kernel:S``, ``perceptron_kernel:S:WIDTH``: kernel features on the support points of a
    multiclass perceptron (`bench_mtl.data.preprocess.steps.perceptron_kernel` has its formula), with an `orientation`.

    Statistics are those of all training rows of all tasks together; held-out examples are transformed with them. Each step but
    ``none`` adds a sentence to `notes`. `truth` belongs to the features as they were, so it is dropped, except by ``unit_rows`` on
    -1/+1 labels, which W still gives. An `orientation` stays with the features that it belongs to, and is dropped by ``svd:K``,
    ``stumps`` and ``trees``.

    Parameters
    ----------
    data : tasks with shared or per-task designs, dense or CSR.
    steps : names, in order.

    Raises
    ------
    InputError : an unknown name, a K that is no whole number from 1 to the rank, negative counts, overflow, and what
        ``perceptron_kernel``, ``stumps`` and ``trees`` refuse.
    """
    for step in [steps] if isinstance(steps, str) else steps:
        data = _apply(data, step)
    return data


def _apply(data: TaskData, name: str) -> TaskData:
    step = _named(name)
    if step is None:
        return data
    with np.errstate(all="ignore"):  # overflow is refused by name below
        rows = stacked_rows(data.design)
        fitted = step(data, rows)
        notes = [*data.notes, fitted.note]
        if data.truth and not _keeps_truth(data, fitted):
            notes.append(f"The true coefficients do not belong to the features after '{name}' and were dropped.")
        if data.orientation is not None and not fitted.keeps_features:
            notes.append(f"The signs of the coefficients do not belong to the features after '{name}' and were dropped.")
        held_out = None if data.held_out is None else _transformed(data.held_out, fitted, stacked_rows(data.held_out.design), name)
        return replace(_transformed(data, fitted, rows, name), notes=tuple(notes), held_out=held_out)


def _transformed(data: TaskData, fitted: Fitted, rows: Matrix, name: str) -> TaskData:
    """Return `data` over other rows, without what no longer belongs to them."""
    result = fitted.transform(rows)
    require_finite(f"X after preprocessing step '{name}'", result.data if isinstance(result, sp.csr_array) else result)
    truth = data.truth if _keeps_truth(data, fitted) else {}
    orientation = data.orientation if fitted.keeps_features else fitted.orientation
    return replace(data, design=_split(data, result), truth=truth, orientation=orientation)


def _keeps_truth(data: TaskData, fitted: Fitted) -> bool:
    return fitted.keeps_signs and bool(np.all(np.abs(data.targets) == 1.0))


def _named(name: str) -> Step | None:
    if not isinstance(name, str):
        raise InputError("preprocess", name, "names of steps")
    if name == "none":
        return None
    if name in _STEPS:
        return _STEPS[name]
    family = name.partition(":")[0]
    if family in _WITH_ARGUMENTS:
        return _WITH_ARGUMENTS[family](name)
    raise unknown("preprocessing step", name, FORMS)


def _split(data: TaskData, rows: Matrix) -> SharedDesign | PerTaskDesign:
    """Return a design like that of `data` over other rows, as many as `stacked_rows` gives."""
    if data.design.is_shared:
        return SharedDesign(rows, data.n_tasks)
    ends = np.cumsum(data.design.sizes)
    return PerTaskDesign([rows[end - size : end] for end, size in zip(ends, data.design.sizes, strict=True)])
