"""The judge convicts bounds that are false by a single unit in the last place, and only these."""

from collections.abc import Callable
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


def overstated(self: Any, point: Array, dual: Array | None) -> float:
    a = self.dual_at(point) if dual is None else np.clip(dual, 0.0, self.hinges.weights)
    return float(np.nextafter(self.hinges.bound(a, self.hinges.adjoint(a)), np.inf))


#: Methods that are wrong, and the kind of fault that they are: bounds, or objectives, that are rounded as it comes and a unit in the last
#: place beyond, a repaired point that is none, one that moves when it is repaired again, and bounds that are not numbers.
WRONG: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "overstated": ("bound", "dual_bound", overstated),
    "understated": ("objective", "objective", lambda self, point: float(np.nextafter(self.hinges.objective(point), -np.inf))),
    "unrepaired": ("infeasible", "repair", lambda self, point: point),
    "restless": ("moved", "repair", lambda self, point: 0.999 * L1InfHinge.repair(self, point)),
    "lost": ("bound", "dual_bound", lambda self, point, dual: float("nan")),
}


def kinds(cls: type[Problem]) -> set[str]:
    """The kinds of fault at a problem whose only point is 0, so that F is 3 exactly, or with room for others."""
    found: set[str] = set()
    for radius in (0.0, 1.0):
        parameters: dict[str, Any] = {"radius": radius, "reduction": "sum"}
        instance = linear(cls, LABELLED, l1inf, "sum", parameters)
        found |= {fault.kind for fault in faults(instance, np.random.default_rng(0))}
    return found


@pytest.mark.parametrize("name", WRONG)
def test_a_planted_fault_is_found(name: str) -> None:
    kind, method, wrong = WRONG[name]
    assert kind in kinds(type(name, (L1InfHinge,), {"name": name, method: wrong}))


def test_a_bound_above_a_portfolio_is_found() -> None:
    class Boastful(Portfolio):
        name = "boastful"

        def dual_bound(self, point: Array, dual: Array | None) -> float:
            return 1e-9 + super().dual_bound(point, dual)

    instance: Instance = portfolio(Boastful, np.array([[1.0, 1.0], [2.0, 0.5], [0.5, 2.0]]))
    assert "bound" in {fault.kind for fault in faults(instance, np.random.default_rng(0))}
