"""What a run has to show for itself: arrays from which its enclosures can be computed again, by anybody who has the problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bench_mtl.core.checks import require_shape
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import compensated
from bench_mtl.core.text import outward
from bench_mtl.core.types import Array, Certificate, Iterate, Proof, Tolerance
from bench_mtl.model.protocols import Problem

#: Relative gaps for each of which the iterate that first proves it is kept, beside the targets of the run.
RUNGS = tuple(10.0**-exponent for exponent in range(1, 10))

#: Rounding above this share of the gap that is asked for is worth a slower certificate.
_SPOILING_SHARE = 0.1


def certify_proof(problem: Problem, proof: Proof) -> Certificate:
    """Compute the enclosure that a proof gives, from the problem's own data.

    Raises InputError where an array has NaN, inf or the wrong shape.
    """
    certificate = certified(problem, Iterate(proof.point, proof.dual))[0]
    if proof.bound_point is not None:
        other = certified(problem, Iterate(proof.bound_point))[0]
        rounding = certificate.rounding if certificate.dual >= other.dual else max(certificate.rounding, other.rounding)
        certificate = certificate._replace(dual=max(certificate.dual, other.dual), rounding=rounding)
    return certificate


def certified(problem: Problem, iterate: Iterate) -> tuple[Certificate, Array]:
    """Return the problem's verdict on an iterate, as numbers, and the repaired point that it is of.

    Raises InputError where the point or the dual has NaN, inf or the wrong shape, or a bound is NaN; an infinite one is no fault.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        verdict, repaired = problem.certify_repaired(iterate)
    certificate = Certificate(*map(float, verdict))
    if any(map(math.isnan, certificate)):
        raise InputError(f"the certificate is not a number: {certificate}")
    if certificate.primal == -math.inf or certificate.dual == math.inf:
        raise InputError(f"problem '{problem.name}' is at fault: no certificate of a convex problem is {certificate}")
    return certificate, repaired


def sharpened(problem: Problem, proof: Proof, tolerance: Tolerance, scale: float) -> tuple[Certificate, bool]:
    """Certify a proof, with compensated products where rounding alone keeps it from the target, and tell whether it still does."""
    certificate = certify_proof(problem, proof)
    if tolerance.met_by(certificate, scale) or not is_spoilt(certificate, tolerance, scale):
        return certificate, False
    with compensated():
        again = certify_proof(problem, proof)
    certificate = again if math.isfinite(again.gap) else certificate  # splits of the largest numbers overflow
    return certificate, not tolerance.met_by(certificate, scale) and _would_do(certificate, tolerance, scale)


def is_spoilt(certificate: Certificate, tolerance: Tolerance, scale: float) -> bool:
    """Whether the gap would do without what the bounds allow for rounding, which is more than a tenth of what is asked for."""
    allowed = tolerance.allowed_gap(certificate.primal, scale)
    return certificate.rounding > _SPOILING_SHARE * allowed and _would_do(certificate, tolerance, scale)


def _would_do(certificate: Certificate, tolerance: Tolerance, scale: float) -> bool:
    return certificate.rounding > 0.0 and certificate.gap - certificate.rounding <= tolerance.allowed_gap(certificate.primal, scale)


def contradiction(problem: Problem, certificate: Certificate, scale: float) -> str | None:
    """Say that a problem's lower bound is above an objective of its own, if it is."""
    if not certificate.contradicts_itself(scale):
        return None
    values = f"a lower bound of {certificate.dual:.17g} on the optimum, and {certificate.primal:.17g} at a feasible point"
    return f"problem '{problem.name}' contradicts itself: {values}"


def format_gap(gap: float) -> str:
    """Return a relative gap, or an infeasibility, with two digits, rounded up, so that what is shown holds: ``1.3e-07``; zero is ``0``."""
    return "0" if gap == 0.0 else f"{outward(gap, 2, is_upper=True):.1e}"


def proven_gap(gap: float, target: float, *, is_met: bool = False) -> str:
    """Say which relative gap is proven, and how a larger one than the target can meet it: where the optimum is almost 0 (`Tolerance`)."""
    sentence = f"relative gap {format_gap(gap)} proven (target {target:g})"
    return f"{sentence}, which is met relative to the problem's scale: the optimum is almost 0" if is_met and gap > target else sentence


def passed(certificate: Certificate, rungs: tuple[float, ...]) -> int:
    """Return how many of the gaps, loose to tight, a certificate has proven."""
    return sum(certificate.relative_gap <= rung for rung in rungs)


def real_array(name: str, value: Any, *shapes: tuple[int, ...]) -> Array:
    """Return what a solver hands over as a C-ordered array of float64 that nobody can compute later.

    Raises InputError for what is not real numbers, or of none of these shapes.
    """
    if type(value) is np.ndarray and value.dtype == np.float64 and value.shape in shapes and value.flags.c_contiguous:
        return value
    array = np.asarray(value)
    require_shape(name, array, *shapes)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be real numbers, not {array.dtype.name}")
    return np.array(array, dtype=np.float64, order="C", subok=False)


def explicit(problem: Problem, proof: Proof, accepts: Callable[[Proof], bool]) -> Proof:
    """Return the proof with one dual point and no other point, if such a one is accepted; otherwise as it is."""
    if accepts(plain := Proof(proof.point, proof.dual)):
        return plain
    dual = problem.dual_at(proof.point if proof.bound_point is None else proof.bound_point)
    if dual is not None and accepts(plain := Proof(proof.point, np.array(dual, dtype=np.float64))):
        return plain
    return proof
