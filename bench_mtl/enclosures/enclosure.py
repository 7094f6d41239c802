"""What is proven of an optimal value, and in which words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bench_mtl.core.types import Array

if TYPE_CHECKING:
    import cvxpy


@dataclass(frozen=True)
class Enclosure:
    """What is proven of the optimal value of a problem, or of the programme that CVXPY makes of a model, with the floats that it stores."""

    lower: float
    """At most the optimal value; -inf where nothing is proven."""
    upper: float
    """At least the optimal value; inf where nothing is proven."""
    value: float | None
    """What the solver says; None where it says nothing."""
    status: str
    """The solver's."""
    why: tuple[str, ...] = ()
    """What was done for each bound, what could not be and what may help, and what was taken on trust."""
    repaired_values: Mapping[cvxpy.Variable, Array] = field(default_factory=dict, repr=False)
    """A point near which a feasible one is proven, whose value is at most one bound; empty where there is none."""

    @property
    def relative_gap(self) -> float:
        """The width over the larger modulus of both bounds: inf where one is missing, 0 where both are 0."""
        width = self.upper - self.lower
        return width / max(abs(self.upper), abs(self.lower)) if np.isfinite(width) and width else 0.0 if width == 0.0 else np.inf

    def __str__(self) -> str:
        lines = [f"{self.lower!r} <= optimum <= {self.upper!r}, relative gap {self.relative_gap:.1e}"]
        if self.value is not None and not self.lower <= self.value <= self.upper:
            lines.append(f"the solver's value, {self.value!r}, is outside")
        return "\n".join([*lines, *self.why])
