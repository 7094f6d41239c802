"""States of solvers: all that one needs to go on as if nothing had come in between; and solvers that are a start and steps of one.

A state is made of numbers, arrays of them (of NumPy, or what NumPy can read), random generators, tuples, and dataclasses and other objects,
all of whose attributes are such, or those that a class names in `kept`. Attributes that are None or texts do not change in a run, and are
no part of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, ClassVar, Self
from weakref import ref

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import IterativeSolver, Problem, Solver

#: The entry of a state that says who has made it.
MAKER = "made_by"
#: Words of 64 bits that are the state of a random generator.
_WORDS = 6


class Stepper(ABC):
    """What does not change in a run, and what makes the next state of the last.

    A state that is no frozen dataclass, or no tuple, is changed by steps, arrays and all, and is copied where somebody still wants it. It
    may be the stepper itself, of which it is what `kept` names.
    """

    varying: ClassVar[tuple[str, ...]] = ()
    """How the entries of states end that are arrays of any size: all others are as large as those of the first state."""

    @abstractmethod
    def start(self, at: Iterate) -> Any:
        """Return the first state of a run from an iterate; of a run that goes on, only the shapes of its arrays matter."""

    @abstractmethod
    def step(self, now: Any) -> Any:
        """Return the state that the next iterate is of; None where there is none."""

    @abstractmethod
    def iterate(self, now: Any) -> Iterate:
        """Return the iterate of a state, with steps and work; its arrays are not changed afterwards."""

    def close(self) -> None:
        """End what the run computes with."""
        return


class SteppingSolver(IterativeSolver):
    """A solver that is a `Stepper`: its runs can be saved at any iterate, and go on from there bit for bit."""

    shows_start: ClassVar[bool] = True
    """Whether the start is an iterate, handed over before anything is made of the data, and not that of the first state."""

    @abstractmethod
    def stepper(self, problem: Problem) -> Stepper:
        """Return what takes the steps."""

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        earlier = OwnState.of(self, start)
        if earlier is None:
            start = Iterate(problem.repair(start.primal), start.dual, start.step, start.work)
        if earlier is not None or self.shows_start:
            yield start if earlier is not None else Iterate(start.primal, start.dual)
        with closing(self.stepper(problem)) as stepper:
            now = stepper.start(start)
            changes = not _is_frozen(now)
            last: list[Callable[[], _State | None]] = [lambda: None]
            if earlier is not None:
                now = _restored(now, earlier, stepper.varying)
            if now is not None and (earlier is not None or self.shows_start):
                now = stepper.step(now)
            while now is not None:
                yield self._shown(stepper, now, last)  # and keep no reference to it
                if changes and (held := last[0]()) is not None:
                    held.part()
                held = None
                now = stepper.step(now)

    def _shown(self, stepper: Stepper, now: Any, last: list[Callable[[], _State | None]]) -> Iterate:
        """Return the iterate of a state with that state, and note in `last` how to come by this while somebody holds it."""
        state = _State(self, now)
        last[0] = ref(state)
        primal, dual, step, work, note, _, claim = stepper.iterate(now)
        return Iterate(primal, dual, step, work, note, state, claim)


def state_of(solver: Solver, **entries: Any) -> dict[str, Any]:
    """Return a state of `solver`: named arrays of float64 or int64 and numbers, with the solver and its options; None is left out."""
    return {MAKER: _named(solver), **{name: value for name, value in entries.items() if value is not None}}


def entries_of(iterate: Iterate) -> Mapping[str, Any] | None:
    """Return the state of an iterate, made now where the solver has given what makes it; None where it has none.

    Raises InputError: it is no mapping.
    """
    state = iterate.state() if callable(iterate.state) else iterate.state
    if state is not None and not isinstance(state, Mapping):
        raise InputError("the state of an iterate", state, "a mapping of names to arrays and numbers")
    return state


class _State:
    """Makes the entries of a state when it is asked for them.

    Arrays that the next step changes are copied when the solver goes on while somebody holds this, so that runs without checkpoints copy
    nothing.
    """

    def __init__(self, solver: Solver, now: Any) -> None:
        self._solver, self._now = solver, now
        self._entries: dict[str, Any] | None = None

    def __call__(self) -> Mapping[str, Any]:
        return state_of(self._solver, **dict(_entries(self._now))) if self._entries is None else self._entries

    def part(self) -> None:
        """Copy the arrays, once."""
        if self._entries is None:
            copied = {name: value.copy(order="K") if isinstance(value, np.ndarray) else value for name, value in _entries(self._now)}
            self._entries, self._now = state_of(self._solver, **copied), None


@dataclass(frozen=True)
class OwnState:
    """A state, read by the solver that has made it."""

    entries: Mapping[str, Any]

    @classmethod
    def of(cls, solver: Solver, start: Iterate) -> Self | None:
        """Return the state of `start`; None where it has none, so that a solver goes on from the points alone.

        Raises InputError: another solver has made it, or the same one with other options.
        """
        entries = entries_of(start)
        if entries is None:
            return None
        maker = entries.get(MAKER)
        if maker != _named(solver):
            raise InputError(f"the state to go on from was made by {maker or 'nobody who says so'}, not by {_named(solver)}")
        return cls(entries)

    def number(self, name: str) -> float:
        """Return a number; raises InputError where the state has none of this name."""
        value = np.asarray(self._entry(name))
        if value.ndim or value.dtype.kind not in "bif":
            raise InputError(f"'{name}' of the state to go on from must be a number, not {value.dtype.name} of shape {value.shape}")
        return value.item()

    def array(self, name: str, like: Any, *, varies: bool = False) -> Any:
        """Return an array of its own, in the order in which it was, of the kind and the shape, or the number of dimensions, of another one.

        Raises InputError: the state has none of this name, or one of another shape.
        """
        array, wanted = np.asarray(self._entry(name)), _plain(like)
        fits = array.ndim == wanted.ndim if varies else array.shape == wanted.shape
        if not fits or array.dtype.kind not in "if":
            given = f"{array.dtype.name} of shape {array.shape}"
            raise InputError(f"'{name}' of the state to go on from must be numbers of shape {wanted.shape}, not {given}")
        if like.dtype.kind in "bifu" and like.dtype != np.uint64:
            return np.array(array, dtype=like.dtype)
        return np.array(array, dtype=np.int64).view(like.dtype)

    def _entry(self, name: str) -> Any:
        if name not in self.entries:
            raise InputError(f"the state to go on from lacks '{name}'")
        return self.entries[name]


def _entries(part: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers and arrays of float64 and int64 that a part of a state consists of, by what they are in it."""
    if isinstance(part, np.random.Generator):
        part = _words(part)
    if isinstance(part, np.ndarray):
        yield name, _plain(part)
    elif isinstance(part, (bool, int, float, np.generic)):
        yield name, part.item() if isinstance(part, np.generic) else part
    elif hasattr(part, "__array__"):  # of another library, as on a device
        yield name, _plain(np.asarray(part))
    elif not isinstance(part, (str, type(None))):
        for key, inner in _parts(part).items():
            yield from _entries(inner, _inner_name(name, key))


def _restored(like: Any, earlier: OwnState, varying: tuple[str, ...], name: str = "") -> Any:
    """Return a part of a state as `_entries` has taken it apart, of the kind of another one, which changes where that can be."""
    if isinstance(like, np.random.Generator):
        words = earlier.array(name, np.zeros(_WORDS, dtype=np.uint64)).tolist()
        number = {"state": words[0] << 64 | words[1], "inc": words[2] << 64 | words[3]}
        like.bit_generator.state = {**like.bit_generator.state, "state": number, "has_uint32": words[4], "uinteger": words[5]}
        return like
    if isinstance(like, np.ndarray):
        return earlier.array(name, like, varies=name.endswith(varying))
    if isinstance(like, (bool, int, float, np.generic)):
        return type(like)(earlier.number(name))
    if isinstance(like, (str, type(None))):
        return like
    if hasattr(like, "__array__"):  # which its solver takes to where it belongs
        return earlier.array(name, np.asarray(like), varies=name.endswith(varying))
    parts = {key: _restored(inner, earlier, varying, _inner_name(name, key)) for key, inner in _parts(like).items()}
    if isinstance(like, tuple):
        return like._replace(**parts) if hasattr(like, "_replace") else tuple(parts.values())
    if _is_frozen(like):
        return replace(like, **parts)
    vars(like).update(parts)
    return like


def _parts(part: Any) -> dict[str, Any]:
    if isinstance(part, tuple):
        return part._asdict() if hasattr(part, "_asdict") else {str(place): inner for place, inner in enumerate(part)}
    return {name: value for name, value in vars(part).items() if name in getattr(part, "kept", (name,))}


def _inner_name(name: str, key: str) -> str:
    return f"{name}_{key.lstrip('_')}".lstrip("_")


def _is_frozen(state: Any) -> bool:
    return isinstance(state, tuple) or (is_dataclass(state) and bool(state.__dataclass_params__.frozen))  # type: ignore[union-attr]


def _plain(array: Array) -> Any:
    """Return an array as one of float64 or int64: the same numbers, or the same bits."""
    if array.dtype.kind in "bi" or array.dtype in (np.uint8, np.uint16, np.uint32):
        return array if array.dtype == np.int64 else array.astype(np.int64)
    return array if array.dtype == np.float64 else array.view(np.int64)


def _words(generator: np.random.Generator) -> Any:
    """Return the state of a PCG64 generator, the one of `default_rng`, in words of 64 bits."""
    state = generator.bit_generator.state
    parts = (number >> shift & 2**64 - 1 for number in (state["state"]["state"], state["state"]["inc"]) for shift in (64, 0))
    return np.array([*parts, state["has_uint32"], state["uinteger"]], dtype=np.uint64)


def _named(solver: Solver) -> str:
    """Return what a solver is called in its states: its name and options."""
    return f"{solver.name}({', '.join(f'{name}={value!r}' for name, value in solver.settings().items())})"
