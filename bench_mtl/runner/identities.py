"""The functions and classes that the measurement of a run and its proofs depend on, and which of them somebody has replaced."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

#: Modules of which every function, class and constant is held, as of all of this package.
_MODULES = frozenset({
    "builtins", "math", "time", "os", "gc", "signal", "struct", "json", "threading", "numpy", "numpy._core.multiarray",
    "numpy._core._multiarray_umath", "numpy._core.numeric", "numpy._core.fromnumeric", "numpy._core._methods", "numpy._core.shape_base",
    "numpy._core.einsumfunc", "numpy.linalg", "numpy.linalg._linalg", "numpy.linalg._umath_linalg", "scipy.linalg", "scipy.linalg.blas",
    "scipy.sparse", "scipy.sparse._sparsetools", "scipy.special",
})  # fmt: skip
#: Of its modules the classes are held too, with all that they have.
_PACKAGE = "bench_mtl."

#: What a name in capitals may hold, so that it is a constant.
_CONSTANTS = (bool, int, float, str, tuple, frozenset)

_is, _loaded = operator.is_, sys.modules


class _Held(NamedTuple):
    """What the names of one module or class were."""

    owner: str
    live: Mapping[str, Any]
    names: tuple[str, ...]
    values: tuple[Any, ...]
    kind: type | None
    everything: tuple[Any, ...]
    """All values, in order: that they are the same objects is found out soon."""

    @classmethod
    def of(cls, owner: str, thing: ModuleType | type) -> _Held:
        live: Mapping[str, Any] = vars(thing)
        kind = thing if isinstance(thing, type) else None
        kept = {name: value for name, value in tuple(live.items()) if (_is_member(value) if kind else _is_fixed(name, value))}
        return cls(owner, live, tuple(kept), tuple(kept.values()), kind, tuple(live.values()))

    def changes(self) -> Iterator[str]:
        is_as_long = len(self.live) == len(self.everything)
        if is_as_long and all(map(_is, self.live.values(), self.everything)):
            return
        if not all(map(_is, map(self.live.get, self.names), self.values)):
            for name, value in zip(self.names, self.values, strict=True):
                if self.live.get(name) is not value:
                    yield f"{self.owner}.{name}"
        if self.kind is not None and not is_as_long:
            inherited = {name for base in self.kind.__mro__[1:-1] for name in vars(base)}
            for name in inherited & self.live.keys() - set(self.names):
                if _is_member(self.live[name]):  # it hides a method
                    yield f"{self.owner}.{name}"


class Identities:
    """The functions, classes and constants that there are, to find out which of them are replaced later. New ones are no replacement."""

    def __init__(self) -> None:
        self._held: list[_Held] = []
        self._known: set[str] = set()
        self._classes: set[type] = set()
        self._loaded = -1

    def hold(self) -> None:
        """Hold what has been imported since the last time."""
        if len(_loaded) == self._loaded:
            return
        for name, module in tuple(_loaded.items()):
            if name in self._known or not isinstance(module, ModuleType) or not _is_watched(name):
                continue
            self._known.add(name)
            self._held.append(_Held.of(name, module))
            if name.startswith(_PACKAGE):
                for value in tuple(vars(module).values()):
                    if isinstance(value, type) and value.__module__.startswith(_PACKAGE) and value not in self._classes:
                        self._classes.add(value)
                        self._held.append(_Held.of(f"{value.__module__}.{value.__qualname__}", value))
        self._loaded = len(_loaded)

    def changes(self) -> tuple[str, ...]:
        """Return the names of what has been replaced or taken away since it was held."""
        return tuple(name for held in self._held for name in held.changes())


def _is_watched(name: str) -> bool:
    return name in _MODULES or name.startswith(_PACKAGE)


def _is_fixed(name: str, value: Any) -> bool:
    """Whether a name of a module has no business to change; caches and counters have."""
    return callable(value) or isinstance(value, ModuleType) or (name.isupper() and isinstance(value, _CONSTANTS))


def _is_member(value: Any) -> bool:
    return isinstance(value, (FunctionType, property, classmethod, staticmethod, type)) or hasattr(type(value), "__set_name__")
