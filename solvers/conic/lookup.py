"""Backends by name: those of the table, and all others that CVXPY has an interface to."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from bench_mtl.core.errors import InputError, unknown
from bench_mtl.solvers.conic.backend import FIRST_ORDER, Backend, Method
from bench_mtl.solvers.conic.table import BACKENDS


def backend_name(given: Any) -> str:
    """Return the name of a backend as CVXPY writes it; upper and lower case are one.

    Raises InputError: no such backend; the nearest name is suggested.
    """
    if not isinstance(given, str):
        raise InputError("backend", given, "the name of a solver, such as 'CLARABEL'")
    name = given.upper()
    if name not in BACKENDS and not _own_interfaces(name):
        raise unknown("backend", name, set(BACKENDS).union(*_maps()))
    return name


def find_backend(name: str, tolerance_options: tuple[str, ...]) -> Backend:
    """Return what is known of a backend, with other `tolerance_options` where they are given.

    Raises InputError: the backend is in no table, and no options are given.
    """
    if name in BACKENDS:
        return replace(BACKENDS[name], tolerance_options=tolerance_options) if tolerance_options else BACKENDS[name]
    if not tolerance_options:
        raise InputError(f"which options of backend {name} take the tolerance is not known here: name them in tolerance_options")
    return Backend(None, tolerance_options, Method(FIRST_ORDER))


def is_installed(name: str, backend: Backend) -> bool:
    """Whether the package of a backend is installed."""
    if backend.package is not None:
        return backend.package.is_installed
    return any(interface.is_installed() for interface in _own_interfaces(name))


def missing_cones(name: str, backend: Backend, needed: frozenset[str]) -> list[str]:
    """Return which of the cones that a form needs a backend lacks, in the order of the alphabet; asks CVXPY's interfaces."""
    found = [backend.cones] if backend.cones is not None else [cones_of(interface) for interface in interfaces_of(name, backend)]
    return min((sorted(needed - cones) for cones in found), key=len)


def interfaces_of(name: str, backend: Backend) -> list[Any]:
    """Return the CVXPY interfaces to a backend: one, or one for cones and one for quadratic programmes."""
    return [backend.interface()] if backend.interface is not None else _own_interfaces(name)


def cones_of(interface: Any) -> frozenset[str]:
    """Return the cones, as in `Problem.conic_forms`, that an interface takes, directly or after CVXPY's exact conversions."""
    interface.is_installed()  # which lets CVXPY find out what depends on the version
    names = {constraint.__name__ for constraint in interface.SUPPORTED_CONSTRAINTS}
    cones = {"linear"}
    if names & {"PSD", "SvecPSD"}:
        cones |= {"psd", "quadratic"}
    if "SOC" in names:
        cones.add("quadratic")
    if "ExpCone" in names:
        cones.add("exponential")
    if "PowCone3D" in names:
        cones.add("power")
    if "quadratic" in cones or interface.supports_quad_obj():
        cones.add("squares")
    return frozenset(cones)


def is_licence_error(error: BaseException | str) -> bool:
    """Whether a message is about a licence that is missing, expired, or made for smaller problems."""
    return "licen" in str(error).lower()


def _own_interfaces(name: str) -> list[Any]:
    return [interfaces[name] for interfaces in _maps() if name in interfaces]


@functools.cache
def _maps() -> tuple[dict[str, Any], ...]:
    from cvxpy.reductions.solvers.defines import SOLVER_MAP_CONIC, SOLVER_MAP_QP

    return SOLVER_MAP_CONIC, SOLVER_MAP_QP
