"""The hinge problem written the tempting way, which CVXPY 1.9.0 to 1.9.3 gets wrong with HiGHS."""

from typing import Any

import numpy as np

from bench_mtl.model.protocols import ConicModel
from bench_mtl.problems.l1inf_hinge import L1InfHinge


class TrappedHinge(L1InfHinge):
    """`L1InfHinge` with ``pos(1 - multiply(y, X @ w))`` in place of explicit slacks."""

    name = "trapped_hinge"

    def to_cvxpy(self, form: str = "lp") -> ConicModel:
        import cvxpy as cp

        d, m = self.point_shape
        W = cp.Variable((d, m))
        losses = []
        for k in range(m):
            y, s = self.design.task_outputs(self.fit.targets, k), self.design.task_outputs(self.fit.weights, k)
            losses.append(s @ cp.pos(1 - cp.multiply(y, self.design.block(k) @ W[:, k])))
        constraints = [cp.sum(cp.max(cp.abs(W), axis=1)) <= self.radius]

        def recover() -> tuple[Any, None]:
            return np.asarray(W.value), None

        return ConicModel(cp.Problem(cp.Minimize(sum(losses)), constraints), recover)
