"""What is known of a backend: its package, the names of its options, its methods."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

#: Ladders of tolerances. An interior-point method overshoots its tolerance by about two decades, and a rung costs it a few iterations; a
#: first-order method ends near its tolerance, where a factor of three is a third of its time.
INTERIOR = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
FIRST_ORDER = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
SIMPLEX = (1e-4, 1e-7, 1e-10)


@dataclass(frozen=True)
class Package:
    """A package as the registry of packages calls it, and the module that it installs."""

    name: str
    module: str = ""
    also: tuple[str, ...] = ()
    """Other packages that install the same module."""

    @property
    def is_installed(self) -> bool:
        return importlib.util.find_spec(self.module or self.name) is not None

    @property
    def version(self) -> str:
        """The version of the package, or of the first of the others that is installed."""
        for name in self.also:
            with contextlib.suppress(metadata.PackageNotFoundError):
                return metadata.version(name)
        return metadata.version(self.name)


@dataclass(frozen=True)
class Method:
    """A method of a backend: its ladder, and options that override those that follow from the tolerance."""

    tolerances: tuple[float, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    needs: Package | None = None
    """A package that the method needs besides that of its backend."""
    device: Callable[[], str | None] | None = None
    """Says why the device that the method needs cannot be used, as the end of a sentence; None where it can. Asked once all packages are
    there."""
    cones: frozenset[str] | None = None
    """Where it takes fewer than its backend."""


@dataclass(frozen=True)
class Backend:
    """One solver that CVXPY knows. An option "table/name" represents the option `name` in a table of options."""

    package: Package | None
    """None where only CVXPY knows what has to be installed."""
    tolerance_options: tuple[str, ...]
    """All options that take the tolerance."""
    default: Method
    methods: Mapping[str, Method] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Options that are always set."""
    time_option: str | None = None
    """The option that takes seconds; None for a backend without a limit of time: the runner's worker is killed at the limit."""
    thread_option: str | None = None
    range: tuple[float, float] = (0.0, float("inf"))
    """The least and the largest tolerance that the options take."""
    met_time_limit: Callable[[Any], bool] | None = None
    """raw answer -> whether the time limit ended it, which CVXPY's status does not tell; None: an answer that came at the limit."""
    details: Callable[[Any], Mapping[str, Any]] = lambda raw: {}
    """raw answer -> what the row should say of it."""
    reading: Mapping[str, Any] = field(default_factory=dict)
    """Options that CVXPY needs when it reads answers."""
    cones: frozenset[str] | None = None
    """Where it is less than what CVXPY's interface takes."""
    interface: Callable[[], Any] | None = None
    """Makes a CVXPY interface to use instead of CVXPY's own."""
    refusal: str | None = None
    """Why it is not used though it may be installed."""
    is_commercial: bool = False
    """Whether it needs a licence."""

    def options(self, tolerance: float, seconds: float | None, threads: int) -> dict[str, Any]:
        """Return the backend's own options for a tolerance, a limit of seconds (None for no limit) and a number of threads."""
        least, largest = self.range
        given: dict[str, Any] = dict.fromkeys(self.tolerance_options, min(max(tolerance, least), largest))
        if self.time_option is not None and seconds is not None:
            given[self.time_option] = seconds
        if self.thread_option is not None:
            given[self.thread_option] = threads
        nested: dict[str, Any] = {}
        for name, value in given.items():
            *tables, last = name.split("/")
            for table in reversed(tables):
                last, value = table, {last: value}
            nested = merged(nested, {last: value})
        return merged(self.fixed, nested)


def merged(options: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return `options` overridden by those `above`; tables that both have are merged."""
    tables = {name for name, value in options.items() if isinstance(value, Mapping)}
    both = {name: merged(options[name], value) for name, value in above.items() if name in tables and isinstance(value, Mapping)}
    return {**options, **above, **both}
