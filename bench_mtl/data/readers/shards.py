"""Data sets in shards: a folder with a manifest and the examples in parts, which are memory-mapped when they are used.

::

    FOLDER/shards.json                        what there is: sizes, and the length and hash of every file
    FOLDER/00000.npy                          the features of the first shard, dense, or
    FOLDER/00000.data.npy, .indices.npy, .indptr.npy    the arrays of its CSR matrix
    FOLDER/00000.targets.npy                  its targets, examples x tasks
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl.core.blocks import Here
from bench_mtl.core.checks import is_sparse, real_array, real_matrix, real_number, true_or_false, whole_number
from bench_mtl.core.dask_blocks import OnDask, Place, Workers
from bench_mtl.core.dask_cluster import scheduler_address
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError, not_written
from bench_mtl.core.files import folder_beside, is_file
from bench_mtl.core.sharded_design import design_of
from bench_mtl.core.shards import FileShard, Shards, Sizes
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.readers.common import naming, parsing, readable_file
from bench_mtl.model.task_data import TaskData

MANIFEST = "shards.json"
FORMAT = "bench-mtl shards"
#: A worker that may allocate less does not start: Dask, NumPy and compiled code take about as much.
_LEAST_GIB = 0.3

#: The most features and tasks that a manifest may state: compiled code counts no further.
_MOST_INDEX = 2**31 - 1
#: Of manifests: the second says of every shard which task has its examples.
SHARED, BY_TASK = 1, 2


def write_shards(
    folder: str | Path,
    parts: Iterable[tuple[Any, Any]],
    *,
    name: str = "unnamed",
    origin: Mapping[str, Any] | None = None,
    tasks: Sequence[int] | None = None,
) -> Path:
    """Write a data set in shards, one for each pair of features (rows x d, dense or sparse) and targets (rows x m); return its manifest.

    One part is in memory at a time. The folder appears when all of it is written.

    Parameters
    ----------
    origin : what the manifest tells, as JSON, of where the data come from
    tasks : the task that the examples of each part belong to, ascending from 0, where tasks have examples of their own; targets are one
        column then. None where all tasks have all examples

    Raises
    ------
    InputError : the folder exists, there is no part, parts are not alike, one has NaN or inf, or `tasks` do not fit the parts.
    """
    folder = Path(folder)
    if folder.exists():
        raise InputError(f"{folder} exists: shards are written to a new folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder_beside(folder) as made:
        inside = made / folder.name
        inside.mkdir()
        _require_ascending(tasks)
        shards: list[dict[str, Any]] = []
        for number, part in enumerate(parts):  # what does not fit ends it before the next part is made
            shard = _written(inside, f"{number:05d}", *_checked(number, *part))
            shards.append(shard)
            for key in ("features", "tasks", "sparse"):
                if shard[key] != shards[0][key]:
                    raise InputError(f"part {number} has {key} {shard[key]}, but part 0 has {shards[0][key]}")
            if tasks is not None and shard["tasks"] != 1:
                raise InputError(f"where tasks have examples of their own targets are one column, not {shard['tasks']}")
            if tasks is not None and len(shards) > len(tasks):
                raise InputError(f"tasks has {len(tasks)} entries, but there are more parts")
        if not shards:
            raise InputError("there is no part to write")
        common = {key: shards[0][key] for key in ("features", "tasks", "sparse")}
        kept = [{key: shard[key] for key in ("name", "rows", "stored", "files")} for shard in shards]
        manifest = {"format": FORMAT, "version": SHARED, "name": name, **common, "shards": kept}
        if tasks is not None:
            if len(tasks) > len(shards):
                raise InputError(f"tasks has {len(tasks)} entries, but there are {len(shards)} parts")
            own = [{**shard, "task": int(task)} for shard, task in zip(kept, tasks, strict=True)]
            manifest |= {"version": BY_TASK, "tasks": int(tasks[-1]) + 1, "shards": own}
        manifest |= {} if origin is None else {"origin": dict(origin)}
        with _writing(inside):
            (inside / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
            inside.rename(folder)
    return folder / MANIFEST


def read_shards(
    path: str | Path, *, verify: bool = False, cluster: str | None = None, workers: int | None = None, memory_gib: float | None = None
) -> TaskData:
    """Tasks with a design in shards, of which no one matrix is made; targets are in memory.

    Parameters
    ----------
    path : the manifest, ``FOLDER/shards.json``, or the folder
    verify : whether the hash of every file is compared with the manifest's, which reads all of them; their lengths always are
    cluster : who computes with them: None this process; "local" Dask workers of this machine; or the address of a scheduler, whose workers
        see the files by the same path
    workers : how many local workers, 2 by default
    memory_gib : how much memory each of these may take, in GiB, 0.3 at least

    Raises
    ------
    InputError : no such manifest, files that are missing, or are not those that it describes; `workers` or `memory_gib` without a local
        cluster, a `cluster` that is no address.
    """
    place = _place(cluster, workers, memory_gib)
    is_folder = isinstance(path, (str, Path)) and is_file("path", Path(path) / MANIFEST)
    source = readable_file(Path(path) / MANIFEST if is_folder else path).absolute()
    with naming(source):
        with parsing("a manifest of shards"):
            manifest = json.loads(source.read_text(encoding="utf-8"))
            if manifest["format"] != FORMAT or manifest["version"] not in (SHARED, BY_TASK):
                raise InputError(f"is no manifest of {FORMAT} {SHARED} or {BY_TASK}")
            has_tasks = manifest["version"] == BY_TASK
            tasks = tuple(whole_number("task", entry["task"]) for entry in manifest["shards"]) if has_tasks else None
            d, m = (whole_number(key, manifest[key], minimum=1, maximum=_MOST_INDEX) for key in ("features", "tasks"))
            entries, sparse = manifest["shards"], true_or_false("sparse", manifest["sparse"])
            counts = [whole_number("rows", entry["rows"], minimum=1) for entry in entries]
            files = [
                (name, {key: facts[key] for key in ("bytes", "sha256")}) for entry in entries for name, facts in entry["files"].items()
            ]
            names, stored = [str(entry["name"]) for entry in entries], sum(whole_number("stored", entry["stored"]) for entry in entries)
            name_of_all = str(manifest["name"])
            if not entries:
                raise InputError("has no shards")
        for name, facts in files:
            _require(source.parent / name, facts, true_or_false("verify", verify))
        shards = [FileShard(source.parent, name, (rows, d), sparse).as_written() for name, rows in zip(names, counts, strict=True)]
        sizes = Sizes(tuple(counts), d, m, sparse, stored, tasks)
        blocks = Here(shards) if place is None else OnDask(Workers(place), sizes.counts, tuple((shard,) for shard in shards))
        targets = np.concatenate(list(_targets(source.parent, entries, m if tasks is None else 1)))
        design = design_of(Shards(blocks, sizes))
    return TaskData(design, frozen(targets if tasks is None else targets[:, 0]), name_of_all)


@contextmanager
def _writing(inside: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise not_written(f"shards cannot be written to {inside.parent.parent / inside.name}", error) from None


def shard_files(manifest: Path) -> dict[Path, str]:
    """Return the hashes that a manifest has of its files."""
    with naming(manifest), parsing("a manifest of shards"):
        entries = json.loads(manifest.read_text(encoding="utf-8"))["shards"]
        return {manifest.parent / name: str(facts["sha256"]) for entry in entries for name, facts in entry["files"].items()}


def _require_ascending(tasks: Sequence[int] | None) -> None:
    """Raise InputError unless the tasks of parts, where they have any, are numbered in their order."""
    numbers = [] if tasks is None else [whole_number("tasks", task) for task in tasks]
    if numbers and (sorted(numbers) != numbers or set(numbers) != set(range(numbers[-1] + 1))):
        raise InputError(f"tasks must ascend from 0 and leave none out, not {numbers[:8]}")


def _place(cluster: str | None, workers: int | None, memory_gib: float | None) -> Place | None:
    """Return where the workers are; None where this process does without."""
    if cluster is None and workers is not None:
        cluster = "local"
    if cluster != "local" and (workers is not None or memory_gib is not None):
        raise InputError("workers and memory_gib are those of a new cluster: cluster must be local")
    if cluster is None:
        return None
    if cluster != "local":
        return Place(scheduler_address("cluster", cluster))
    memory = None if memory_gib is None else real_number("memory_gib", memory_gib, minimum=_LEAST_GIB)
    return Place(workers=2 if workers is None else whole_number("workers", workers, minimum=1), memory_gib=memory)


def _checked(number: int, X: Any, Y: Any) -> tuple[Matrix, Array]:
    matrix = real_matrix(f"X of part {number}", X)
    targets = real_array(f"Y of part {number}", Y)
    targets = targets[:, None] if targets.ndim == 1 else targets
    if targets.ndim != 2 or len(targets) != matrix.shape[0] or 0 in (*matrix.shape, targets.shape[1]):
        raise InputError(
            f"part {number} has X of shape {matrix.shape} and Y of shape {targets.shape}: rows must agree, and none may be empty"
        )
    return matrix, targets


def _written(folder: Path, name: str, X: Matrix, Y: Array) -> dict[str, Any]:
    """Write the files of a shard; return what the manifest says of it."""
    sparse = is_sparse(X)
    arrays: dict[str, Any] = {"targets": np.ascontiguousarray(Y)}
    if sparse:
        X.sort_indices()
        arrays |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    else:
        arrays |= {"": np.ascontiguousarray(X)}
    files = {}
    for part, array in arrays.items():
        path = folder / (f"{name}.{part}.npy" if part else f"{name}.npy")
        with _writing(folder):
            np.save(path, array, allow_pickle=False)
        files[path.name] = {"bytes": path.stat().st_size, "sha256": _digest(path)}
    stored = int(X.nnz if sparse else X.size)
    return {
        "name": name, "rows": X.shape[0], "stored": stored, "files": files,
        "features": int(X.shape[1]), "tasks": int(Y.shape[1]), "sparse": bool(sparse),
    }  # fmt: skip


def _require(path: Path, facts: dict[str, Any], verify: bool) -> None:
    """Raise InputError where a file is not the one that the manifest describes."""
    if not path.is_file():
        raise InputError(f"{path.name} is missing")
    if path.stat().st_size != facts["bytes"]:
        raise InputError(f"{path.name} has {path.stat().st_size} bytes, and {facts['bytes']} were written")
    if verify and _digest(path) != facts["sha256"]:
        raise InputError(f"{path.name} is not what was written: its hash differs")


def _targets(folder: Path, entries: list[dict[str, Any]], m: int) -> Iterator[Array]:
    for entry in entries:
        with parsing("targets"):
            targets = np.load(folder / f"{entry['name']}.targets.npy", allow_pickle=False)
        if targets.shape != (entry["rows"], m) or targets.dtype != np.float64:
            raise InputError(f"the targets of shard {entry['name']} are {targets.dtype} of shape {targets.shape}, not {(entry['rows'], m)}")
        yield targets


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
