"""States of solvers: all that one needs besides its point to go on as if nothing had come in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self
from weakref import ref

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import Solver

#: The entry of a state that says who has made it.
MAKER = "made_by"


def state_of(solver: Solver, **entries: Any) -> dict[str, Any]:
    """Return a state of `solver`: named arrays of float64 or int64 and numbers, with the solver and its options; None is left out."""
    return {MAKER: _named(solver), **{name: value for name, value in entries.items() if value is not None}}


def entries_of(iterate: Iterate) -> Mapping[str, Any] | None:
    """Return the state of an iterate, made now where the solver has given what makes it; None where it has none.

    Raises
    ------
    InputError : it is no mapping.
    """
    state = iterate.state() if callable(iterate.state) else iterate.state
    if state is not None and not isinstance(state, Mapping):
        raise InputError(f"the state of an iterate must be a mapping of names to arrays and numbers, not {type(state).__name__}")
    return state


class LiveStates:
    """States of a solver whose arrays its steps change in place.

    An iterate's state is copied when the solver goes on while somebody holds it, so that runs without checkpoints copy nothing.
    """

    def __init__(self, solver: Solver) -> None:
        self._solver = solver
        self._last: Callable[[], _LiveState | None] = lambda: None

    def now(self, **entries: Any) -> Callable[[], Mapping[str, Any]]:
        """Return what makes the state of the iterate that is yielded now."""
        made = _LiveState(self._solver, entries)
        self._last = ref(made)
        return made

    def go_on(self) -> None:
        """Copy the last state if somebody holds it: the arrays are about to change."""
        last = self._last()
        if last is not None:
            last.part()


class _LiveState:
    def __init__(self, solver: Solver, entries: dict[str, Any]) -> None:
        self._solver, self._entries, self._is_apart = solver, entries, False

    def __call__(self) -> Mapping[str, Any]:
        self.part()
        return state_of(self._solver, **self._entries)

    def part(self) -> None:
        """Copy the arrays, once."""
        if not self._is_apart:
            self._entries = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in self._entries.items()}
            self._is_apart = True


@dataclass(frozen=True)
class OwnState:
    """A state, read by the solver that has made it."""

    entries: Mapping[str, Any]

    @classmethod
    def of(cls, solver: Solver, start: Iterate) -> Self | None:
        """Return the state of `start`; None where it has none, so that a solver goes on from the points alone.

        Raises
        ------
        InputError : another solver has made it, or the same one with other options.
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
        return float(value)

    def optional_number(self, name: str) -> float | None:
        """Return a number, or None where the state has nothing of this name."""
        return self.number(name) if name in self.entries else None

    def array(self, name: str, shape: tuple[int | None, ...]) -> Array:
        """Return an array of float64, of this shape; None stands for any size.

        Raises
        ------
        InputError : the state has none of this name, or one of another shape.
        """
        array = np.asarray(self._entry(name))
        fits = array.ndim == len(shape) and all(wanted in (None, size) for wanted, size in zip(shape, array.shape, strict=True))
        if not fits or array.dtype.kind not in "if":
            wanted = f"({', '.join('any' if size is None else str(size) for size in shape)})"
            given = f"{array.dtype.name} of shape {array.shape}"
            raise InputError(f"'{name}' of the state to go on from must be numbers of shape {wanted}, not {given}")
        return np.ascontiguousarray(array, dtype=np.float64)

    def _entry(self, name: str) -> Any:
        if name not in self.entries:
            raise InputError(f"the state to go on from lacks '{name}'")
        return self.entries[name]


def _named(solver: Solver) -> str:
    """Return what a solver is called in its states: its name and options."""
    return f"{solver.name}({', '.join(f'{name}={value!r}' for name, value in solver.settings().items())})"
