"""
# A dirty model: shared and own features

Tasks seldom agree on all features. The dirty model has a part whose rows all tasks share, and a part of single
entries; penalties on both decide which feature belongs where.
"""

# %%
# Eight tasks. Five features matter to all of them, and each task has two of its own.

import matplotlib.pyplot as plt
import numpy as np

from bench_mtl.estimators import DirtyRegressor
from bench_mtl.report.figures import use_style

use_style()
rng = np.random.default_rng(1)
tasks, features = 8, 30
true = np.zeros((tasks, features))
true[:, :5] = rng.choice([-1.0, 1.0], (tasks, 5)) * rng.uniform(1.0, 1.5, (tasks, 5))
own = 5 + rng.permutation(features - 5)[: 2 * tasks]
true[np.arange(2 * tasks) % tasks, own] = 2.5
X = rng.standard_normal((80, features))
Y = X @ true.T + 0.5 * rng.standard_normal((80, tasks))

# %%
# Weights are shares of those that make everything zero, so they mean much the same on other data.

model = DirtyRegressor(row_penalty="0.1 max", entry_penalty="0.1 max", tol=1e-4).fit(X, Y)
print(f"proven gap {model.gap_:.1e}, R2 {model.score(X, Y):.3f}")

# %%
# The first five columns go into the shared part, single entries into the other one.

shared, own = model.shared_coef_, model.own_coef_
pictures = {
    "the true coefficients": true,
    f"shared: {shared.any(axis=0).sum()} features": shared,
    f"own: {np.count_nonzero(own)} entries": own,
}
figure, panels = plt.subplots(3, 1, figsize=(7.0, 5.4), layout="constrained", sharex=True)
for panel, (title, part) in zip(panels, pictures.items(), strict=True):
    picture = panel.imshow(part, cmap="RdBu_r", vmin=-2.5, vmax=2.5, aspect="auto", interpolation="nearest")
    panel.set(title=title, ylabel="task", yticks=[])
    panel.grid(visible=False)
panels[-1].set_xlabel("feature")
colours = figure.colorbar(picture, ax=panels, shrink=0.6)
