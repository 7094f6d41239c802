"""
# Relationships of tasks, learned with them

Some tasks are alike, some are opposites, some have nothing to do with each other. Multi-task relationship learning
finds a covariance of the tasks together with their coefficients, and each task learns from those that it is related
to.
"""

# %%
# Twelve tasks with fifteen examples each, over 20 features: four alike, three alike and two that want the opposite of
# these, three alone.

import matplotlib.pyplot as plt
import numpy as np

from bench_mtl.estimators import MTRLRegressor
from bench_mtl.report.figures import use_style

use_style()
rng = np.random.default_rng(0)
group = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 3, 4])
sign = np.array([1, 1, 1, 1, 1, 1, 1, -1, -1, 1, 1, 1])
true = sign[:, None] * rng.standard_normal((5, 20))[group] + 0.3 * rng.standard_normal((12, 20))
Xs = [rng.standard_normal((15, 20)) for _ in true]
ys = [X @ w + 0.3 * rng.standard_normal(15) for X, w in zip(Xs, true, strict=True)]

# %%
# The model is convex once the covariance is minimised over, so its gap is proven.

model = MTRLRegressor(ridge=0.001, coupling=0.01).fit_tasks(Xs, ys)
alone = MTRLRegressor(ridge=0.05, coupling=0.0).fit_tasks(Xs, ys)
print(f"proven gap {model.gap_:.1e}")


def correlation(covariance):
    deviations = np.sqrt(np.diag(covariance))
    return covariance / np.outer(deviations, deviations)


def error(coefficients):
    return np.linalg.norm(coefficients - true) / np.linalg.norm(true)


# %%
# Correlations of the true coefficients, and those that were learned from 15 examples a task.

figure, panels = plt.subplots(1, 2, figsize=(7.5, 3.6), layout="constrained")
for panel, matrix, title in (
    (panels[0], np.corrcoef(true), f"true; each task alone errs by {error(alone.coef_):.0%}"),
    (panels[1], correlation(model.task_covariance_), f"learned; together by {error(model.coef_):.0%}"),
):
    picture = panel.imshow(matrix, cmap="RdBu_r", vmin=-1.0, vmax=1.0)
    panel.set(title=title, xlabel="task", ylabel="task")
    panel.grid(visible=False)
colours = figure.colorbar(picture, ax=panels, shrink=0.8, label="correlation")
