"""Checkpoints: a file from which a run that was cut off goes on where it was, bit for bit where its solver makes states.

What a file says of bounds is for readers: the run that goes on from it certifies its points anew (`bench_mtl.engine.driver`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from bench_mtl.core.checks import require_finite
from bench_mtl.core.errors import InputError
from bench_mtl.core.files import is_file
from bench_mtl.core.types import Array, Certificate, Iterate, Proof
from bench_mtl.engine.driver import describe
from bench_mtl.model.protocols import Problem
from bench_mtl.model.solver_state import MAKER, entries_of

#: What a file says that it is, and in which version of its form.
_KIND, _VERSION = "bench_mtl checkpoint", 2

#: Entries and bytes of a state, and characters of who has made it.
_MOST_ENTRIES, _MOST_BYTES, _LONGEST_MAKER = 10_000, 2**32, 10_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")

#: How the entries of a state begin in a file.
_OF_STATE = "state."


@dataclass(frozen=True)
class Origin:
    """What a run is of. Only the same run goes on from its checkpoint."""

    problem: str
    parameters: Mapping[str, Any]
    data: str
    """The fingerprint of the data (`bench_mtl.data.fingerprint`)."""
    solver: str
    options: Mapping[str, Any]
    """`Solver.settings`."""
    versions: Mapping[str, str]
    """Of code and libraries, and the number of threads: with others the run goes on, with other bits perhaps."""

    def difference(self, now: Origin) -> str | None:
        """Return how the run of a checkpoint differs from one that is to go on from it, as the end of a sentence; None where not at all."""
        old, new = (json.loads(_json(vars(origin))) for origin in (self, now))  # as files keep them
        for what in ("problem", "solver"):
            if old[what] != new[what]:
                return f"{what} {old[what]}, not {new[what]}"
        for what in ("parameter", "option"):
            then, here = old[f"{what}s"], new[f"{what}s"]
            for name in dict.fromkeys((*then, *here)):
                if name not in then:
                    return f"no {what} {name}, which is {_json(here[name])} here"
                if name not in here or then[name] != here[name]:
                    return (
                        f"{what} {name} = {_json(then[name])}, {f'not {_json(here[name])}' if name in here else 'which is not given here'}"
                    )
        return None if self.data == now.data else f"other data, or other code that makes them (fingerprint {self.data}, not {now.data})"

    def changed_versions(self, now: Origin) -> list[str]:
        """Return what of the versions is another one, such as ``numpy 2.3.1, now 2.4.0``."""
        names = dict.fromkeys((*self.versions, *now.versions))
        pairs = [(name, self.versions.get(name, "unknown"), now.versions.get(name, "unknown")) for name in names]
        return [f"{name} {then}, now {here}" for name, then, here in pairs if then != here]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A run as far as it has come."""

    origin: Origin
    iterate: Iterate
    """The last one. Its state, where it has one, is a mapping."""
    proof: Proof | None = None
    """What proves the best enclosure."""
    certificate: Certificate | None = None
    """That enclosure, which nobody has to believe."""

    def require_fitting(self, problem: Problem) -> None:
        """Raise InputError where its points are not those of a problem."""
        problem.require_fitting(self.iterate)
        if self.proof is not None:
            problem.require_fitting(Iterate(self.proof.point, self.proof.dual))
            if self.proof.bound_point is not None:
                problem.require_fitting(Iterate(self.proof.bound_point))


def with_plain_state(iterate: Iterate) -> Iterate:
    """Return an iterate whose state, made now, is a mapping of names to arrays of float64 or int64 and the text that names its maker.

    Raises InputError where the state cannot be made, has something else in it, or is too large.
    """
    try:
        entries = entries_of(iterate)
        if entries is None:
            return iterate._replace(state=None)
        if len(entries) > _MOST_ENTRIES:
            raise InputError(f"it has {len(entries)} entries, and {_MOST_ENTRIES} are allowed")
        plain = {str(name): _plain_value(name, value) for name, value in entries.items()}
        size = sum(value.nbytes for value in plain.values() if isinstance(value, np.ndarray))
        if size > _MOST_BYTES:
            raise InputError(f"it has {size} bytes, and {_MOST_BYTES} are allowed")
    except Exception as error:  # a plug-in's own code makes it
        said = str(error) if isinstance(error, InputError) else describe(error)
        raise InputError(f"the state of the solver cannot be stored: {said}") from error
    return iterate._replace(state=plain)


def write_checkpoint(file: IO[bytes], checkpoint: Checkpoint) -> None:
    """Write a checkpoint as the `.npz` file that `read_checkpoint` reads, down to the disk.

    Raises InputError where the point or its dual has NaN or inf, or the state is not plain (`with_plain_state`).
    """
    iterate, proof = with_plain_state(checkpoint.iterate), checkpoint.proof
    arrays: dict[str, Any] = {"primal": iterate.primal, "dual": iterate.dual}
    for name, array in arrays.items():
        if array is not None:
            require_finite(f"{name} point", array)
    if proof is not None:
        arrays |= {"proof_point": proof.point, "proof_dual": proof.dual, "proof_bound_point": proof.bound_point}
    if (certificate := checkpoint.certificate) is not None:
        best = certificate.primal, certificate.dual, certificate.relative_gap, certificate.infeasibility
        arrays |= dict(zip(("objective", "dual_bound", "relative_gap", "infeasibility"), best, strict=True))
        arrays["rounding"] = certificate.rounding
    state = {} if iterate.state is None else dict(entries_of(iterate) or {})
    about = {"kind": _KIND, "version": _VERSION, "made_by": state.pop(MAKER, None), "has_state": iterate.state is not None}
    arrays |= {f"{_OF_STATE}{name}": value for name, value in state.items()} | {"step": iterate.step, "work": iterate.work}
    kept = {name: value for name, value in arrays.items() if value is not None}
    np.savez(file, about=np.array(_json({**about, **vars(checkpoint.origin), "entries": sorted(kept)})), **kept)
    file.flush()
    os.fsync(file.fileno())


def read_checkpoint(name: str, path: Path) -> Checkpoint:
    """Return the checkpoint in a file, whose path was given as `name`, such as ``--resume``.

    Raises InputError where there is no file, it cannot be read, is none of ours or damaged, or of another version.
    """
    if not is_file(name, path):
        raise InputError(f"{name}: there is no file {path}")
    try:
        with path.open("rb") as content:
            if content.read(2) != b"PK":  # of which NumPy would speak of pickles
                raise ValueError("it is no zip file")
            content.seek(0)
            with np.load(content, allow_pickle=False) as file:
                entries = {str(key): file[key] for key in file.files}
        return _of_entries(entries)
    except InputError as error:
        raise InputError(f"{name}: {path}: {error}") from None
    except OSError as error:
        raise InputError(f"{name}: {path} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # whatever zipfile and NumPy make of bytes that are none of theirs
        raise InputError(f"{name}: {path} is no checkpoint of bench-mtl solve, or it is damaged ({describe(error)})") from None


def _of_entries(entries: Mapping[str, Any]) -> Checkpoint:
    about = json.loads(str(entries["about"]))
    if about["kind"] != _KIND:
        raise ValueError(f"it says that it is {about['kind']}")
    if about["version"] != _VERSION:
        raise InputError(f"a checkpoint of version {about['version']}, and this bench-mtl reads version {_VERSION}")
    if sorted(entries) != sorted([*about["entries"], "about"]):  # a damaged directory of a zip file may hide some
        raise ValueError("entries are missing")
    texts, tables = ("problem", "data", "solver"), ("parameters", "options", "versions")
    if not all(isinstance(about[name], kind) for names, kind in ((texts, str), (tables, dict)) for name in names):
        raise ValueError("it does not say which run it is of")
    origin = Origin(**{name: about[name] for name in (*texts, *tables)})
    dual = _floats(entries, "dual") if "dual" in entries else None
    state: dict[str, Any] | None = None
    if about["has_state"]:
        state = {MAKER: about["made_by"]} if about["made_by"] is not None else {}
        state |= {name.removeprefix(_OF_STATE): value for name, value in entries.items() if name.startswith(_OF_STATE)}
    step, work = int(entries["step"]), float(entries["work"])
    if step < 0 or not 0.0 <= work < np.inf:
        raise ValueError(f"steps and work are {step} and {work:g}")
    iterate = with_plain_state(Iterate(_floats(entries, "primal"), dual, step, work, state=state))
    proof = certificate = None
    if "proof_point" in entries:
        rest = (_floats(entries, name) if name in entries else None for name in ("proof_dual", "proof_bound_point"))
        proof = Proof(_floats(entries, "proof_point"), *rest)
    if "objective" in entries:
        certificate = Certificate(*(float(entries[name]) for name in ("objective", "dual_bound", "infeasibility", "rounding")))
    return Checkpoint(origin, iterate, proof, certificate)


def _floats(entries: Mapping[str, Any], name: str) -> Array:
    array = entries[name]
    if array.dtype != np.float64:
        raise ValueError(f"{name} is of {array.dtype.name}")
    return np.ascontiguousarray(array)


def _plain_value(name: Any, value: Any) -> Any:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise InputError("a name in it", str(name)[:100], "a word of at most 100 letters, digits and _")
    if name == MAKER:
        if not isinstance(value, str) or len(value) > _LONGEST_MAKER:
            raise InputError(f"'{MAKER}' must be a text of at most {_LONGEST_MAKER} characters")
        return str(value)
    array = np.asarray(value) if isinstance(value, (bool, int, float, np.ndarray, np.generic)) else None
    if array is not None and array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array is None or array.dtype not in (np.float64, np.int64):
        given = type(value).__name__ if array is None else f"numbers of {array.dtype.name}"
        raise InputError(f"'{name}' must be a number or an array of float64 or int64, not {given}")
    return array


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
