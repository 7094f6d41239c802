"""Tells when Numba compiles, or loads what it has compiled before, in this process, and when another compiler says that it does so: seconds
that belong on no solver's clock.

Numba is not imported for it: where nobody has imported it, it compiles nothing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

#: Numba's event whose duration is that of compiling, or of loading from its cache.
_EVENT = "numba:compiler_lock"

Listener = Callable[[bool], None]


class _Watch:
    """Counts the seconds in which any thread compiles; threads that do so at once count once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside, self._since, self._seconds = 0, 0.0, 0.0
        self._is_attached = False
        self.listeners: list[Listener] = []

    def attach(self) -> None:
        """Listen to Numba from now on, if it has been imported."""
        if self._is_attached or (event := sys.modules.get("numba.core.event")) is None:
            return
        methods = {"on_start": lambda _, event: self.change(1), "on_end": lambda _, event: self.change(-1)}
        event.register(_EVENT, type("Events", (event.Listener,), methods)())
        self._is_attached = True

    def change(self, by: int) -> None:
        """Note that one thread more compiles, or one less."""
        with self._lock:
            if by < 0 and not self._inside:  # it began before anybody listened
                return
            self._inside += by
            if self._inside != int(by > 0):  # others did so before, or still do
                return
            self._seconds += 0.0 if by > 0 else perf_counter() - self._since
            self._since = perf_counter()
        for listener in tuple(self.listeners):
            listener(by > 0)

    @property
    def seconds(self) -> float:
        with self._lock:
            return self._seconds + (perf_counter() - self._since if self._inside > 0 else 0.0)


_watch = _Watch()


def compiling_seconds() -> float:
    """Return for how many seconds of this process functions have been compiled or loaded, by Numba as far as anybody has asked before."""
    _watch.attach()
    return _watch.seconds


@contextmanager
def compiling() -> Iterator[None]:
    """Count the body as compiling: for a compiler that is not Numba, and for loading what it needs."""
    _watch.change(1)
    try:
        yield
    finally:
        _watch.change(-1)


@contextmanager
def told_of_compiling(listener: Listener) -> Iterator[None]:
    """Call `listener` with True whenever compiling begins while the body runs, and with False when it is over."""
    _watch.attach()
    _watch.listeners.append(listener)
    try:
        yield
    finally:
        _watch.listeners.remove(listener)


def compiled_functions() -> int:
    """Return how many functions of this package Numba has compiled in this process, once for each combination of types; not the loaded."""
    dispatcher = getattr(sys.modules.get("numba.core.dispatcher"), "Dispatcher", None)
    if dispatcher is None:
        return 0
    modules = [module for name, module in sys.modules.items() if name.startswith("bench_mtl.")]
    values = (value for module in modules for value in tuple(vars(module).values()))
    functions = {id(value): value for value in values if isinstance(value, dispatcher)}
    return sum(sum(function.stats.cache_misses.values()) for function in functions.values())
