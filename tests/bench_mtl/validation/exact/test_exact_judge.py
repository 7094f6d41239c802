"""The judge convicts bounds that are false by a single unit in the last place, and only these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench_mtl.core.types import Array
from bench_mtl.model.protocols import Problem
from bench_mtl.problems import L1InfHinge, Portfolio
from bench_mtl.validation.exact.instances import Instance, Raw, linear, portfolio
from bench_mtl.validation.exact.judge import faults
from bench_mtl.validation.exact.references import l1inf

LABELLED = Raw((np.array([[1.0, 2.0], [0.5, -1.0], [4.0, 0.0]]),), (np.array([1.0, -1.0, 1.0]),), False)


class Overstated(L1InfHinge):
    """Its bounds are rounded as it comes, and a unit in the last place higher."""

    name = "overstated"

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        a = self.dual_at(point) if dual is None else np.clip(dual, 0.0, self.hinges.weights)
        return float(np.nextafter(self.hinges.bound(a, self.hinges.adjoint(a)), np.inf))


class Understated(L1InfHinge):
    """Its objectives are rounded as it comes, and a unit in the last place lower."""

    name = "understated"

    def objective(self, point: Array) -> float:
        return float(np.nextafter(self.hinges.objective(point), -np.inf))


class Unrepaired(L1InfHinge):
    """What it calls repaired is not."""

    name = "unrepaired"

    def repair(self, point: Array) -> Array:
        return point


class Restless(L1InfHinge):
    """A repaired point moves when it is repaired again."""

    name = "restless"

    def repair(self, point: Array) -> Array:
        return 0.999 * super().repair(point)


class Lost(L1InfHinge):
    """Its bounds are not numbers."""

    name = "lost"

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        return float("nan")


def kinds(cls: type[Problem]) -> set[str]:
    """The kinds of fault at a problem whose only point is 0, so that F is 3 exactly, or with room for others."""
    found: set[str] = set()
    for radius in (0.0, 1.0):
        parameters: dict[str, Any] = {"radius": radius, "reduction": "sum"}
        instance = linear(cls, LABELLED, l1inf, "sum", parameters)
        found |= {fault.kind for fault in faults(instance, np.random.default_rng(0))}
    return found


@pytest.mark.parametrize(
    ("cls", "kind"), [(Overstated, "bound"), (Understated, "objective"), (Unrepaired, "infeasible"), (Restless, "moved"), (Lost, "bound")]
)
def test_a_planted_fault_is_found(cls: type[Problem], kind: str) -> None:
    assert kind in kinds(cls)


def test_a_bound_above_a_portfolio_is_found() -> None:
    class Boastful(Portfolio):
        name = "boastful"

        def dual_bound(self, point: Array, dual: Array | None) -> float:
            return 1e-9 + super().dual_bound(point, dual)

    instance: Instance = portfolio(Boastful, np.array([[1.0, 1.0], [2.0, 0.5], [0.5, 2.0]]))
    assert "bound" in {fault.kind for fault in faults(instance, np.random.default_rng(0))}
