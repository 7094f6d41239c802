"""
# Certify a solution of another library

How good are coefficients that scikit-learn has found? `certify` takes a problem and coefficients from anywhere, or the
estimator that has them, and proves how far their objective is from the optimum.
"""

# %%
# Three models of scikit-learn, each with the same problem here. Lasso has the mean of half the squares, where ours has
# their sum; of n examples `penalty` is 1 / (C n), and `ridge` is half of that.

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

from bench_mtl import TaskData, certify
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.problems.ridge_hinge import RidgeHinge
from bench_mtl.report.figures import use_style

use_style()
X, y = load_diabetes(return_X_y=True)
Z, sick = load_breast_cancer(return_X_y=True)
Z, sick = scale(Z), 2.0 * sick - 1.0
labelled, n = TaskData.shared(Z, sick), len(sick)
options = {"C": 0.1, "fit_intercept": False, "max_iter": 10**6, "random_state": 0}
models = {
    "Lasso": (Lasso(0.1, max_iter=10**6), (X, y), L1BallGLM(TaskData.shared(X, y), penalty=0.1 * len(y), intercept=True)),
    "LogisticRegression, saga": (
        LogisticRegression(l1_ratio=1.0, solver="saga", **options), (Z, sick), L1BallGLM(labelled, loss="logistic", penalty=10.0 / n),
    ),
    "LinearSVC": (LinearSVC(loss="hinge", **options), (Z, sick), RidgeHinge(labelled, ridge=5.0 / n)),
}  # fmt: skip

# %%
# Each is fitted with ever smaller values of its own `tol`, and judged. The sentence says what to do about a gap.

tolerances = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5]
gaps = {
    name: [certify(problem, model.set_params(tol=tol).fit(*data)).relative_gap for tol in tolerances]
    for name, (model, data, problem) in models.items()
}
model, data, problem = models["Lasso"]
print(certify(problem, model.set_params(tol=1e-2).fit(*data)))

# %%
# What a tolerance of the library means for the objective, no more and no less.

_, axes = pyplot.subplots()
for name, values in gaps.items():
    axes.plot(tolerances, np.maximum(values, 1e-12), marker="o", label=name)
axes.plot(tolerances, tolerances, color="grey", linestyle=":", label="a gap of tol")
axes.set(xscale="log", yscale="log", xlabel="tol of scikit-learn", ylabel="proven relative gap")
_ = axes.legend()
