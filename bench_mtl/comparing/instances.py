"""Problems in memory as instances of a suite: stored as they are for this process, in a file for others."""

from __future__ import annotations

import hashlib
import io
import pickle
import uuid
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl.core.errors import BenchError, InputError
from bench_mtl.engine.registry import Registry, problem_parameters
from bench_mtl.engine.source_digest import source_digest
from bench_mtl.engine.suite import IN_MEMORY, Instance
from bench_mtl.model.protocols import Problem

#: What has an order that changes from process to process.
_SETS: dict[str, type[set[Any]] | type[frozenset[Any]]] = {"set": set, "frozenset": frozenset}


@dataclass(frozen=True)
class InMemory(Instance):
    """A problem of this process, or one in a file, from which other processes take it."""

    held: Problem | None = field(default=None, compare=False)
    path: str = ""

    def fingerprint_here(self, data_dir: Path | None) -> str:
        return self.fingerprint  # `build` looks at the very bytes that it reads

    def build(self, registry: Registry, data_dir: Path | None) -> Problem:
        """Return the problem; raises BenchError where the file is not the one that was written, or cannot be read."""
        if self.held is not None:
            return self.held
        try:
            content = Path(self.path).read_bytes()
        except OSError as error:
            raise BenchError(f"the problem cannot be read: {error.strerror}") from None
        if hashlib.sha256(content).hexdigest() != self.fingerprint:
            raise BenchError("the file of the problem has been changed")
        problem = _Unpickler(io.BytesIO(content)).load()
        assert isinstance(problem, Problem)
        if self.code != source_digest(type(problem)):
            raise BenchError("the code of the problem has been changed")
        return problem


class _Pickler(pickle.Pickler):
    """Writes the same bytes in every process: sets in the order of their elements, and nothing that objects have computed of themselves
    and kept, which changes with what was done to them before, and not what they are."""

    def persistent_id(self, thing: Any) -> tuple[str, list[Any]] | None:
        return (type(thing).__name__, sorted(thing, key=repr)) if type(thing) in _SETS.values() else None

    def reducer_override(self, thing: Any) -> Any:
        held = getattr(thing, "__dict__", None)
        if isinstance(thing, type) or not isinstance(held, dict):
            return NotImplemented
        computed = {name for name in held if isinstance(getattr(type(thing), name, None), cached_property)}
        parts = thing.__reduce_ex__(5) if computed else None
        if not (isinstance(parts, tuple) and len(parts) > 2 and isinstance(parts[2], dict)):
            return NotImplemented  # one that has computed nothing, or that says itself what it is
        return *parts[:2], {name: value for name, value in parts[2].items() if name not in computed}, *parts[3:]


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` has written."""

    def persistent_load(self, written: tuple[str, list[Any]]) -> Any:
        name, elements = written
        return _SETS[name](elements)


def _dumped(problem: Problem) -> bytes:
    sink = io.BytesIO()
    _Pickler(sink, protocol=5).dump(problem)
    return sink.getvalue()


def pickled(label: str, problem: Problem) -> bytes:
    """Return a problem as bytes, for another process; raises InputError where it cannot be taken there."""
    try:
        return _dumped(problem)
    except Exception as error:
        what = f"problem '{label}' cannot be taken to a process of its own: {type(error).__name__}: {error}"
        raise InputError(f"{what}; isolation='inline' runs in this one") from None


def filed(content: bytes, path: Path, described: InMemory) -> InMemory:
    """Write a pickled problem to `path`, and return the instance that reads it from there."""
    path.write_bytes(content)
    return replace(_with_digest(described, hashlib.sha256(content).hexdigest()), path=str(path))


def held(problem: Problem, described: InMemory) -> InMemory:
    """Return the instance of a problem that stays in this process. What cannot be pickled equals no other one."""
    try:
        digest = hashlib.sha256(_dumped(problem)).hexdigest()
    except Exception:
        digest = uuid.uuid4().hex
    return replace(_with_digest(described, digest), held=problem)


def _with_digest(described: InMemory, digest: str) -> InMemory:
    """Return the instance with the digest of its problem, whose first digits a reader of rows is shown."""
    return replace(described, data={"name": IN_MEMORY, "digest": digest[:16]}, fingerprint=digest)


def plain_parameters(problem: Problem) -> dict[str, Any]:
    """Return the parameters of a problem as far as they are attributes that are words or numbers, for a reader of its rows."""
    values = {name: getattr(problem, name, None) for name in problem_parameters(type(problem))}
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
    return {name: value for name, value in plain.items() if isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))}
