"""What all problems of weighted hinges share: operators of a loss that has only subgradients."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.forms import Hinges
from bench_mtl.model.linear_loss import example_weights
from bench_mtl.model.losses import Hinge
from bench_mtl.model.protocols import Capability, Form, Problem
from bench_mtl.model.regularisers import Regulariser
from bench_mtl.model.task_data import TaskData


class HingeProblem(FitProblem):
    """A problem with hinges, W its points and a its dual points: everything but the constraint or penalty.

    Of examples in shards a dual point may also be stored as coefficients and a smoothing, see `bench_mtl.model.sharded_fit`.
    """

    forms = (Hinges,)
    takes_weights = True
    offers: ClassVar[frozenset[Capability]] = frozenset(set(Capability) - {Capability.SMOOTH})

    def __init__(self, data: TaskData, *, reduction: str, intercept: bool = False) -> None:
        """Read the labels. (The regulariser is up to the class.)

        Raises InputError: labels other than -1/+1 or 0/1, `intercept` that is not true or false.
        """
        super().__init__(data, Hinge(), example_weights(data.design, reduction, data.weights), intercept=intercept)

    def regularise(self, regulariser: Regulariser) -> None:
        """Add a regulariser. (The conic forms are those of the class.)"""
        self.regulariser = regulariser

    @property
    def hinges(self) -> Hinges:
        return Hinges(self.fit, self.regulariser)

    def make_forms(self) -> tuple[Form, ...]:
        return (self.hinges,)

    def _own_dual(self, dual: Any) -> Array:
        return np.asarray(self.fit.targets * dual)

    def _enclose_bound(self, dual: Array) -> Interval:
        return self.hinges.enclose_bound(dual)

    value_and_gradient, smooth_value, lipschitz = Problem.value_and_gradient, Problem.smooth_value, Problem.lipschitz
