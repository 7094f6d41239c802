"""Problems in memory as instances of a suite: kept as they are for this process, in a file for others."""

from __future__ import annotations

import hashlib
import io
import math
import pickle
import uuid
from dataclasses import dataclass, field, fields
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from bench_mtl.core.errors import BenchError, InputError
from bench_mtl.engine.registry import Registry, problem_parameters
from bench_mtl.engine.suite import IN_MEMORY, Instance
from bench_mtl.model.protocols import Problem

#: Digits of its digest that a reader of rows is shown of a problem.
_SHOWN = 16


@dataclass(frozen=True)
class HeldInstance(Instance):
    """A problem of this process, for runs in this process."""

    held: Problem | None = field(default=None, compare=False)

    def fingerprint_here(self, data_dir: Path | None) -> str:
        return self.fingerprint

    def build(self, registry: Registry, data_dir: Path | None) -> Problem:
        assert self.held is not None
        return self.held


@dataclass(frozen=True)
class FiledInstance(Instance):
    """A problem in a file, from which other processes take it."""

    path: str = ""

    def fingerprint_here(self, data_dir: Path | None) -> str:
        return self.fingerprint  # `build` looks at the very bytes that it reads

    def build(self, registry: Registry, data_dir: Path | None) -> Problem:
        """Return the problem.

        Raises
        ------
        BenchError : the file is not the one that was written, or cannot be read.
        """
        try:
            content = Path(self.path).read_bytes()
        except OSError as error:
            raise BenchError(f"the problem cannot be read: {error.strerror}") from None
        if _digest(content) != self.fingerprint:
            raise BenchError("the file of the problem has been changed")
        problem = pickle.loads(content)
        assert isinstance(problem, Problem)
        return problem


class _Pickler(pickle.Pickler):
    """Leaves out what objects have computed of themselves and kept: it changes with what was done to them before, and not what they are."""

    def reducer_override(self, thing: Any) -> Any:
        held = getattr(thing, "__dict__", None)
        if isinstance(thing, type) or not isinstance(held, dict):
            return NotImplemented
        kept = {name for name in held if isinstance(getattr(type(thing), name, None), cached_property)}
        if not kept:
            return NotImplemented
        made = thing.__reduce_ex__(5)
        if not (isinstance(made, tuple) and len(made) > 2 and isinstance(made[2], dict)):
            return NotImplemented  # one that says itself what it is
        return *made[:2], {name: value for name, value in made[2].items() if name not in kept}, *made[3:]


def _dumped(problem: Problem) -> bytes:
    sink = io.BytesIO()
    _Pickler(sink, protocol=5).dump(problem)
    return sink.getvalue()


def pickled(label: str, problem: Problem) -> bytes:
    """Return a problem as bytes, for another process.

    Raises
    ------
    InputError : it cannot be taken there.
    """
    try:
        return _dumped(problem)
    except Exception as error:
        what = f"problem '{label}' cannot be taken to a process of its own: {type(error).__name__}: {error}"
        raise InputError(f"{what}; isolation='inline' runs in this one") from None


def filed(content: bytes, path: Path, described: Instance) -> FiledInstance:
    """Write a pickled problem to `path`, and return the instance that reads it from there."""
    path.write_bytes(content)
    return FiledInstance(**_facts(described, _digest(content)), path=str(path))


def held(problem: Problem, described: Instance) -> HeldInstance:
    """Return the instance of a problem that stays in this process. What cannot be pickled equals no other one."""
    try:
        found = _digest(_dumped(problem))
    except Exception:
        found = uuid.uuid4().hex
    return HeldInstance(**_facts(described, found), held=problem)


def _facts(described: Instance, found: str) -> dict[str, Any]:
    """Return the fields of an instance that holds the problem with the digest `found`."""
    of = {item.name: getattr(described, item.name) for item in fields(Instance)}
    return of | {"data": {"name": IN_MEMORY, "digest": found[:_SHOWN]}, "fingerprint": found}


def told_parameters(problem: Problem) -> dict[str, Any]:
    """Return the parameters of a problem as far as its attributes tell them in words and numbers, for a reader of its rows."""
    found = {name: getattr(problem, name, None) for name in problem_parameters(type(problem))}
    return {name: _plain(value) for name, value in found.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | bool | Integral) or (isinstance(value, Real) and math.isfinite(value))


def _plain(value: Any) -> bool | int | float | str:
    if isinstance(value, str | bool):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
