"""
# A regularisation path, proven point by point

How do coefficients change as the l1 ball grows? Each radius is a problem of its own. It starts from its neighbour's
solution, and ends when its own gap is proven, so no point of the path has to be believed.
"""

# %%
# Ten measurements of 442 patients, and how their diabetes went on.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

from bench_mtl import TaskData, Tolerance, regularisation_path
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.report.figures import use_style
from bench_mtl.solvers.auto import Auto

use_style()
features, outcome = load_diabetes(return_X_y=True, as_frame=True)
data = TaskData.shared(scale(features), scale(outcome), name="diabetes")

# %%
# Forty radii, each to a relative gap of 1e-6.

target, radii = 1e-6, np.linspace(0.05, 2.0, 40)
path = regularisation_path(lambda radius: L1BallGLM(data, radius=radius), radii, Auto(), tolerance=Tolerance(target))
coefficients = np.array([point.record.solution[:, 0] for point in path])
gaps = [point.record.best.relative_gap for point in path]
assert max(gaps) <= target
print(f"{len(path)} points, the largest proven gap is {max(gaps):.1e}")

# %%
# Left: features come in one by one. Right: what is proven of every point. At most of them rounding alone is left.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained", width_ratios=(3, 2))
left.plot(radii, coefficients)
left.set(title="coefficients", xlabel="radius of the l1 ball")
right.semilogy(radii, gaps, "o", markersize=4)
right.axhline(target, color="0.4", linestyle="--")
right.annotate("the target", (radii[0], target), (0, -12), textcoords="offset points")
right.set(title="proven relative gap", xlabel="radius of the l1 ball")
legend = figure.legend(left.lines, features.columns, loc="outside lower center", ncols=10, columnspacing=1.2, handlelength=1.2)
