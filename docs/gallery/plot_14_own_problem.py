"""
# A problem of your own

A problem is a loss and a regulariser. Bring one of them, and objective, gradient and proven bound come from the
package. Every solver that needs no more than gradients and a projection can then be run on it.
"""

# %%
# A spectrum `y` is a mixture `X w`, with shares `w` between 0 and 1: minimise `1/2 ||y - X w||^2` over this box. Of the
# box the proof needs one number, the most that `<G, w>` can be in it: the sum of the positive entries of `G`.

import matplotlib.pyplot as plt
import numpy as np

from bench_mtl import Capability, TaskData, run
from bench_mtl.core.rounding import Interval
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.linear_loss import example_weights
from bench_mtl.model.losses import Squared
from bench_mtl.model.regularisers import Constraint, Regulariser
from bench_mtl.report.figures import use_style


class Box(Regulariser):
    value, enclose = Constraint.value, Constraint.enclose  # both are 0 inside

    def prox(self, point, step_size=1.0):
        return np.clip(point, 0.0, 1.0)

    repair = prox

    def excess(self, point):
        return float(np.abs(point - self.repair(point)).max())

    def enclose_support(self, G):
        return G.positive_part().sum(), Interval.exact(np.inf)


class Unmixing(FitProblem):
    name = "unmixing"
    offers = frozenset({Capability.SMOOTH, Capability.PROX})

    def __init__(self, data):
        super().__init__(data, Squared(), example_weights(data.design, "sum"))
        self.regularise(Box())

    @classmethod
    def examples(cls, rng):
        yield cls(TaskData.shared(rng.random((9, 4)), rng.random(9)))


# %%
# Eight substances with overlapping lines, three of which are in the sample.

use_style()
rng, wave = np.random.default_rng(0), np.linspace(0.0, 1.0, 200)
X = np.exp(-(((wave[:, None] - np.linspace(0.1, 0.9, 8)) / 0.06) ** 2))
y = X @ [0.0, 0.9, 0.4, 0.0, 0.0, 0.0, 0.6, 0.0] + 0.05 * rng.standard_normal(200)
record = run(Unmixing(TaskData.shared(X, y)), "accelerated_gradient", tolerance=1e-6, limits=5)
print(record)

figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.2), layout="constrained")
left.plot(wave, y, ".", color="0.7", label="measured")
left.plot(wave, X @ record.solution, label="unmixed")
left.legend(title="spectrum")
right.bar(range(8), record.solution[:, 0])
labels = right.set(xlabel="substance", ylabel="share", ylim=(0.0, 1.0))
