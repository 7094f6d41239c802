"""An instance as files that other programs read: its arrays, and its cone programme."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.errors import BenchError
from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.core.types import Iterate
from bench_mtl.data.catalogue import load
from bench_mtl.data.fingerprint import fingerprint
from bench_mtl.engine.registry import Registry, make_problem
from bench_mtl.model.protocols import Capability, Problem
from bench_mtl.model.task_data import TaskData
from bench_mtl.publish.cone_programme import cone_programme, to_cbf, to_mps
from bench_mtl.publish.names import key_name
from bench_mtl.results.frames import numbers

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.core.types import AnyArray, Array

#: Entries of the data of an instance that is written, and of those of one whose cone programme is made, which takes far more.
MOST_ENTRIES, MOST_MODELLED = 500_000, 200_000

#: Bytes of a file.
MOST_BYTES = 4 * 2**20

#: By how much what is proven of the start point may differ from that in the rows, relative to it.
_SAME = 1e-9


@dataclass(frozen=True)
class Attachments:
    """The files of one instance, and what a reader is told of them."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    """By the endings of their names."""
    said: tuple[str, ...] = ()
    """Sentences."""


def attachments(runs: pd.DataFrame, samples: pd.DataFrame, registry: Registry, data_dir: Path | None) -> Attachments:
    """Return an instance as npz and as MPS or CBF, or say why not.

    It is built again here, and left out where it is not shown to be the instance of the rows: where its dimensions differ, or both the
    fingerprint of its data and what is proven of the point that solvers start from, which depends on all of them.

    Parameters
    ----------
    runs, samples : of one instance
    data_dir : where data files are looked for
    """
    first = runs.iloc[0]
    spec, parameters = json.loads(first["data"]), json.loads(first["parameters"])
    seed = None if math.isnan(numbers(runs, "seed").iloc[0]) else int(first["seed"])
    try:
        family = registry.problem(str(first["problem"]))
        data = load(spec, data_dir=data_dir, seed=seed, prices=family.takes_prices)
        found = fingerprint(spec, data_dir=data_dir, seed=seed)
    except (BenchError, TypeError):  # whose words may name folders of this machine
        return Attachments(said=("No files of the instance: its data, or its problem, are not to be had where this site was made.",))
    if (entries := data.design.n_stored) > MOST_ENTRIES:
        return Attachments(said=(f"No files of the instance: its data have {entries} entries, and {MOST_ENTRIES} are written.",))
    try:
        problem = make_problem(family, data, parameters)
        doubt = _doubt(problem, runs, samples, found)
    except Exception as error:  # a problem of a plug-in may raise anything, and the site is made all the same
        return Attachments(said=(f"No files of the instance, for it cannot be built: {_reason(error)}.",))
    if doubt:
        return Attachments(said=(f"No files of the instance: {doubt}.",))
    files, said = {"npz": npz(data, parameters)}, list[str]()
    ending, model, why = _model(problem, data, key_name(str(first["instance_key"])))
    if model is not None:
        files[ending] = model
    said += [why] if why else []
    kept = {name: content for name, content in files.items() if len(content) <= MOST_BYTES}
    said += [
        f"No {name.upper()} file: it would have {len(content) / 2**20:.1f} MiB, and {MOST_BYTES / 2**20:g} are written."
        for name, content in files.items()
        if name not in kept
    ]
    return Attachments(kept, tuple(said))


def _doubt(problem: Problem, runs: pd.DataFrame, samples: pd.DataFrame, found: str) -> str:
    """Return why a problem is not that of the rows; empty where nothing says so."""
    stated = [json.loads(text) for text in runs["dimensions"].unique() if json.loads(text)]
    own = {name: int(size) for name, size in problem.dimensions.items()}
    if any(each != own for each in stated):
        return "built here, it has other dimensions than in the rows"
    if not stated:
        return "it was never built for the rows, so that nothing tells whether it is the same"
    if found in set(runs["data_fingerprint"]):
        return ""
    start = problem.certify(Iterate(problem.start_point()))
    first = samples[samples["asked_tolerance"].isna() & (samples["number"] == 0)]
    told = {pair for rows in (first, runs) for pair in zip(numbers(rows, "primal"), numbers(rows, "dual"), strict=True)}
    if any(_is_same(start.primal, primal) and _is_same(start.dual, dual) for primal, dual in told):
        return ""
    return "the fingerprint of its data is another than in the rows, and no run has the bounds that its start point proves"


def _is_same(value: float, told: float) -> bool:
    return math.isfinite(value) and math.isclose(value, told, rel_tol=_SAME)


def npz(data: TaskData, parameters: Mapping[str, Any]) -> bytes:
    """Return examples, targets and parameters as an npz file that `bench_mtl.data` reads: the same data give the same bytes.

    Features are `X` or the parts of a CSR matrix, targets `Y` (n x m), or `y` with the number of each row's task in `task` where tasks have
    rows of their own. `parameters` is their JSON, as bytes in ASCII.
    """
    design, m = data.design, data.design.n_tasks
    if design.is_shared:
        X, arrays = design.block(0), {"Y": _targets(data.targets)}
    else:
        blocks = [design.block(k) for k in range(m)]
        X = sp.vstack([sp.csr_array(block) for block in blocks], format="csr") if design.is_sparse else np.vstack(blocks)
        arrays = {"y": _targets(data.targets), "task": np.repeat(np.arange(m), design.sizes)}
    if is_sparse(X):
        X = sp.csr_array(X)
        arrays |= {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": np.array(X.shape)}
    else:
        arrays["X"] = np.asarray(X)
    arrays["parameters"] = np.frombuffer(json.dumps(dict(parameters), sort_keys=True).encode("ascii"), dtype=np.uint8)
    sink = io.BytesIO()
    np.savez_compressed(sink, allow_pickle=False, **arrays)
    return sink.getvalue()


def _targets(values: Array) -> AnyArray:
    """Return targets as they are, and labels in a type of whole numbers, which says that they are labels."""
    return values.astype(np.int8) if np.isin(values, (-1.0, 1.0)).all() else values


def _model(problem: Problem, data: TaskData, key: str) -> tuple[str, bytes | None, str]:
    """Return the ending of the file of a problem's cone programme, the file, and why there is none."""
    design = data.design
    entries = design.n_stored * (design.n_tasks if design.is_shared else 1)
    if Capability.CONIC not in problem.offers:
        return "cbf", None, "The problem has no model for generic solvers, so that there is no MPS or CBF file."
    if entries > MOST_MODELLED:
        return "cbf", None, f"No MPS or CBF file: over all tasks the data have {entries} entries, and of {MOST_MODELLED} models are made."
    try:
        programme = cone_programme(problem.to_cvxpy(next(iter(problem.conic_forms))))
        if programme.is_linear:
            return "mps", to_mps(programme, f"instance_{key}"), ""
        return "cbf", to_cbf(programme, f"bench-mtl, instance {key}"), ""
    except Exception as error:  # of CVXPY, or of a plug-in
        return "cbf", None, f"No MPS or CBF file: {_reason(error)}."


def _reason(error: Exception) -> str:
    """Return an error in words; of one that is not ours its type alone, since its words may name folders of this machine."""
    words = one_line(str(error), LONGEST_LABEL).removesuffix(".") if isinstance(error, (BenchError, ValueError)) else ""
    return words or type(error).__name__
