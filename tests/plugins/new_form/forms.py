"""A form that bench_mtl knows nothing of, which a plug-in problem has and a plug-in solver takes."""

from dataclasses import dataclass

import numpy as np

from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array
from bench_mtl.model.protocols import ObjectiveForm, Problem


@dataclass(frozen=True)
class RidgeLogisticForm(ObjectiveForm):
    """Logistic losses plus a squared norm: min_W sum_k sum_i log(1 + exp(-labels_ki x_ki.w_k)) + ridge/2 ||W||_F^2."""

    design: Design
    labels: Array
    """-1 or +1, in the output shape of the design."""
    ridge: float

    def objective(self, point: Array) -> float:
        margins = self.labels * self.design.forward(point)
        return float(np.logaddexp(0.0, -margins).sum()) + 0.5 * self.ridge * float((point**2).sum())

    def dual(self, point: Array) -> Array:
        """Return the probabilities of the wrong labels, which are minus the derivatives in the margins."""
        margins = self.labels * self.design.forward(point)
        return np.asarray(np.exp(-np.logaddexp(0.0, margins)))

    def gradient(self, point: Array) -> Array:
        return self.ridge * point - self.design.adjoint(self.dual(point) * self.labels)

    def hessian(self, point: Array, task: int) -> Array:
        """Return the d x d second derivatives in the coefficients of one task."""
        p = self.design.task_outputs(self.dual(point), task)
        X = np.asarray(self.design.block(task))
        return np.asarray(X.T @ ((p * (1.0 - p))[:, None] * X) + self.ridge * np.eye(X.shape[1]))

    def check(self, problem: Problem, rng: np.random.Generator) -> None:
        """Compare the objectives, and the Hessians with differences of gradients."""
        super().check(problem, rng)
        point, change, step = rng.standard_normal(problem.point_shape), rng.standard_normal(problem.point_shape), 1e-5
        differences = (self.gradient(point + step * change) - self.gradient(point - step * change)) / (2.0 * step)
        products = np.column_stack([self.hessian(point, k) @ change[:, k] for k in range(self.design.n_tasks)])
        assert np.allclose(differences, products, rtol=1e-6, atol=1e-6), "the Hessians are not the derivatives of the gradient"
