"""
# A certificate by hand

How can one know how far an answer is from the optimum without knowing the optimum? Every dual point gives a lower
bound. Here is the whole proof, in NumPy, for least squares in an l1 ball.
"""

# %%
# The problem is to minimise `1/2 ||y - X w||^2` with `||w||_1 <= C`. For every vector `r` whatever and every feasible `w`
#
#     1/2 ||y - X w||^2  >=  <r, y - X w> - 1/2 ||r||^2
#                        >=  <r, y> - 1/2 ||r||^2 - C max |X^T r|
#
# The right side does not know `w`, so it is below the optimum. The residual `y - X w` of any point is a good `r`.

import matplotlib.pyplot as plt
import numpy as np

from bench_mtl import Iterate, TaskData
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.projections import project_l1_ball
from bench_mtl.report.figures import use_style

use_style()
rng = np.random.default_rng(0)
X = rng.standard_normal((80, 120))
y = X[:, :8] @ rng.standard_normal(8) + 0.5 * rng.standard_normal(80)
C = 4.0


def bounds(w):
    r = y - X @ w
    return 0.5 * r @ r, r @ y - 0.5 * r @ r - C * np.abs(X.T @ r).max()


# %%
# Projected gradient steps, each with its two numbers.

w, step = np.zeros(120), 1.0 / np.linalg.norm(X, 2) ** 2
history = []
for _ in range(150):
    history.append(bounds(w))
    w = project_l1_ball(w + step * X.T @ (y - X @ w), C)
primal, dual = np.array(history).T
upper, lower = np.minimum.accumulate(primal), np.maximum.accumulate(dual)

# %%
# The package's own certificate of the last point is no worse: it also takes the best multiple of r, and allows for
# rounding.

certificate = L1BallGLM(TaskData.shared(X, y), radius=C).certify(Iterate(w[:, None]))
print("by hand:   [{1:.6f}, {0:.6f}]".format(*bounds(w)))
print("bench_mtl: [{1:.6f}, {0:.6f}]".format(*certificate))

figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.2), layout="constrained")
left.fill_between(range(150), lower, upper, alpha=0.3, label="the optimum is in here")
left.plot(primal, label="objective")
left.plot(dual, label="lower bound of each step")
left.set(xlabel="step", ylim=(0.0, 2.0 * upper[-1]))
left.legend()
right.semilogy((upper - lower) / upper)
limits = right.set(xlabel="step", ylabel="proven relative gap")
