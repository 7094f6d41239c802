"""
# A solver of your own, against ours

A solver is an iterator: it yields points for as long as somebody asks. It has no clock and judges nothing. The driver
times it, and the problem certifies what it yields.
"""

# %%
# Polyak's heavy ball, with a projection or a proximal step. `requires` says which operators of a problem it needs.

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt

from bench_mtl import Capability, Iterate, IterativeSolver, run
from bench_mtl.data import synthetic_glm
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.report.figures import solver_look, use_style


@dataclass(frozen=True)
class HeavyBall(IterativeSolver):
    momentum: float = 0.8
    name: ClassVar[str] = "mine"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX})

    def steps(self, problem, start=None) -> Iterator[Iterate]:
        point = previous = problem.repair(problem.start_point() if start is None else start)
        step_size, step = 1.0 / problem.lipschitz(), 0
        while True:
            yield Iterate(point, None, step, float(step))
            ahead = point - step_size * problem.value_and_gradient(point)[1] + self.momentum * (point - previous)
            previous, point = point, problem.prox(ahead, step_size)
            step += 1


# %%
# Logistic regression in an l1 ball, 200 features. The same driver runs ours and yours.

use_style()
problem = L1BallGLM(synthetic_glm(features=200, examples=400, relevant=0.1, kind="labels"), loss="logistic", radius=20.0)
solvers = [HeavyBall(), "projected_gradient", "accelerated_gradient", "auto"]
records = [run(problem, solver, tolerance=1e-6, limits=1) for solver in solvers]

# %%
# A pass is a product with the data and one with their transpose; seconds would be `points["seconds"]`. A new solver has a
# colour of its own by its name, the same in every figure.

figure, axes = plt.subplots(figsize=(6.0, 3.6), layout="constrained")
for solver, record in zip(solvers, records, strict=True):
    name, points = getattr(solver, "name", solver), record.frame()
    axes.loglog(points["work"], points["relative_gap"], drawstyle="steps-post", markevery=0.15, **solver_look(name))
    print(f"{name}: {record.reason}")
axes.set(xlabel="passes over the data", ylabel="proven relative gap")
legend = axes.legend()
