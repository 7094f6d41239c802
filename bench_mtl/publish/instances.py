"""An instance as files that other programs read: its arrays, and its cone programme."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping
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
from bench_mtl.publish.cones import cone_programme, to_cbf, to_mps
from bench_mtl.publish.paths import instance_name
from bench_mtl.results.frames import numbers

if TYPE_CHECKING:
    import pandas as pd

#: What is written at most; a model, whose data are counted over all tasks, takes far more than its data.
MOST = {"entries of data": 500_000, "entries of data over all tasks": 200_000, "bytes of a file": 4 * 2**20}

#: Options of data that are written to folders, or on a cluster.
_ELSEWHERE = ("folder", "cluster", "workers", "memory_gib")

#: The files of one instance by their endings, and a sentence on what is missing.
Attachments = tuple[dict[str, bytes], str]


def attachments(runs: pd.DataFrame, samples: pd.DataFrame, registry: Registry, data_dir: Path | None) -> Attachments:
    """Return an instance as npz and as MPS or CBF, or say why not.

    It is built again here, and left out where it is not shown to be the instance of the rows: where its dimensions differ, or both the
    fingerprint of its data and what is proven of the point that solvers start from, which depends on all of them.
    """
    files: dict[str, bytes] = {}
    try:
        for ending, content in _files(runs, samples, registry, data_dir):
            _require_at_most("bytes of a file", len(content))
            files[ending] = content
    except Exception as error:  # a problem of a plug-in may raise anything, and the site is made all the same
        # Of an error that is not ours the type alone, since its words may name folders of this machine.
        words = one_line(str(error), LONGEST_LABEL).removesuffix(".") if isinstance(error, (BenchError, ValueError)) else ""
        return files, f"No {'model (MPS or CBF)' if files else 'files of the instance'}: {words or type(error).__name__}."
    return files, ""


def _files(runs: pd.DataFrame, samples: pd.DataFrame, registry: Registry, data_dir: Path | None) -> Iterator[tuple[str, bytes]]:
    """Yield the endings of files and what they hold. A ValueError says in words that can be shown why one is missing."""
    first = runs.iloc[0]
    spec, parameters = json.loads(first["data"]), json.loads(first["parameters"])
    seed = None if math.isnan(numbers(runs, "seed").iloc[0]) else int(first["seed"])
    if not spec.keys().isdisjoint(_ELSEWHERE):  # which would write folders, or ask a cluster, that a results file names
        raise ValueError("its data are in shards")
    try:
        family = registry.problem(str(first["problem"]))
        data = load(spec, data_dir=data_dir, seed=seed, prices=family.takes_prices)
        print_of_data = fingerprint(spec, data_dir=data_dir, seed=seed)
    except (BenchError, TypeError):  # whose words may name folders of this machine
        raise ValueError("its data, or its problem, are not to be had where this site was made") from None
    _require_at_most("entries of data", data.design.n_stored)
    problem = make_problem(family, data, parameters)
    _require_same(problem, runs, samples, print_of_data)
    if data.orientation is not None:
        raise ValueError("its data say which sign each coefficient may have, for which such a file has no place")
    yield "npz", npz(data, parameters)
    if Capability.CONIC not in problem.offers:
        raise ValueError("the problem has none for generic solvers")
    _require_at_most("entries of data over all tasks", data.design.n_stored * (data.design.n_tasks if data.design.is_shared else 1))
    programme, name = cone_programme(problem.to_cvxpy(next(iter(problem.conic_forms)))), instance_name(str(first["instance_key"]))
    if programme.is_linear:
        yield "mps", to_mps(programme, f"instance_{name}")
    else:
        yield "cbf", to_cbf(programme, f"bench-mtl, instance {name}")


def _require_at_most(what: str, number: int) -> None:
    if number > MOST[what]:
        raise ValueError(f"{number} {what}, and at most {MOST[what]} are written")


def _require_same(problem: Problem, runs: pd.DataFrame, samples: pd.DataFrame, print_of_data: str) -> None:
    """Refuse a problem that nothing shows to be that of the rows."""
    stated = [json.loads(dimensions) for dimensions in runs["dimensions"].unique() if dimensions != "{}"]
    if not stated:
        raise ValueError("it was never built for the rows, so that nothing tells whether it is the same")
    if any(each != {name: int(size) for name, size in problem.dimensions.items()} for each in stated):
        raise ValueError("built here, it has other dimensions than in the rows")
    start = problem.certify(Iterate(problem.start_point()))
    first = samples[samples["asked_tolerance"].isna() & (samples["number"] == 0)]
    bounds = np.concatenate([[numbers(rows, "primal"), numbers(rows, "dual")] for rows in (first, runs)], axis=1)
    is_alike = np.isclose([[start.primal], [start.dual]], bounds, rtol=1e-9, atol=0.0).all(axis=0).any()
    if not is_alike and print_of_data not in set(runs["data_fingerprint"]):
        raise ValueError("the fingerprint of its data is another than in the rows, and no run has the bounds that its start point proves")


def npz(data: TaskData, parameters: Mapping[str, Any]) -> bytes:
    """Return examples, targets and parameters as an npz file that `bench_mtl.data` reads: the same data give the same bytes.

    Features are `X` or the parts of a CSR matrix, targets `Y` (n x m), or `y` with the number of each row's task in `task` where tasks have
    rows of their own. `parameters` is their JSON, as bytes in ASCII.
    """
    design = data.design
    # Labels in a type of whole numbers, which says that they are labels.
    targets = data.targets.astype(np.int8) if np.isin(data.targets, (-1.0, 1.0)).all() else data.targets
    blocks = [design.block(k) for k in range(1 if design.is_shared else design.n_tasks)]
    arrays: dict[str, Any] = {"Y": targets}
    if not design.is_shared:
        arrays = {"y": targets, "task": np.repeat(np.arange(design.n_tasks), design.sizes)}
    if is_sparse(blocks[0]):
        X = sp.csr_array(sp.vstack(blocks, format="csr"))
        arrays |= {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": np.array(X.shape)}
    else:
        arrays["X"] = np.vstack(blocks)
    arrays["parameters"] = np.frombuffer(json.dumps(dict(parameters), sort_keys=True).encode("ascii"), dtype=np.uint8)
    sink = io.BytesIO()
    np.savez_compressed(sink, allow_pickle=False, **arrays)
    return sink.getvalue()
