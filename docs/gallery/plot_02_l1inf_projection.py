"""
# The l1,inf projection: rows vanish

The l1,inf norm of a matrix adds up the largest magnitude of each row. The nearest matrix of a smaller norm has fewer
rows. With a row for each feature and a column for each task, that selects features for all tasks together.
"""

# %%
# A random matrix, 40 features and 12 tasks. Some rows are larger than others.

import matplotlib.pyplot as plt
import numpy as np

from bench_mtl.projections import norm_l1inf, project_l1inf_ball
from bench_mtl.report.figures import use_style

use_style()
rng = np.random.default_rng(0)
A = rng.standard_normal((40, 12)) * np.linspace(0.3, 2.0, 40)[:, None]
total = norm_l1inf(A)

# %%
# Project it onto smaller and smaller balls. Grey rows are exactly zero. Red is positive and blue negative, in each
# picture as deep as its largest entry.

shares = (1.0, 0.5, 0.2, 0.05)
figure, panels = plt.subplots(1, len(shares), figsize=(8.0, 4.4), layout="constrained")
for panel, share in zip(panels, shares, strict=True):
    B = project_l1inf_ball(A, share * total)
    shown, largest = np.where(B.any(axis=1, keepdims=True), B, np.nan), np.abs(B).max()
    panel.imshow(shown, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
    title = f"{share:.0%} of the norm:\n{B.any(axis=1).sum()} of 40 rows"
    panel.set(title=title, xlabel="task", xticks=[], yticks=[], facecolor="0.75")
    panel.grid(visible=False)
labels = panels[0].set_ylabel("feature")

# %%
# Within a row the projection clips: entries above a level come down to it, those below stay. The levels differ, but
# what is cut off a row is the same for all that stay, and a row with less than that in all vanishes.

B = project_l1inf_ball(A, 0.2 * total)
cut = np.abs(A - B).sum(axis=1)
stays = B.any(axis=1)
figure, panels = plt.subplots(1, 2, figsize=(8.0, 3.0), layout="constrained")
panels[0].plot(np.abs(A[39]), "o", color="0.6", label="before")
panels[0].plot(np.abs(B[39]), "o", label="after")
panels[0].set(title="The last row is clipped", xlabel="task", ylabel="magnitude of the entry")
panels[0].legend()
panels[1].bar(np.flatnonzero(~stays), cut[~stays], color="0.75", label="rows that vanish")
panels[1].bar(np.flatnonzero(stays), cut[stays], label="rows that stay")
panels[1].set(title="What each row loses", xlabel="row", ylabel="sum of what is cut off", ylim=(0.0, 1.3 * cut.max()))
panels[1].legend()
assert np.ptp(cut[stays]) < 1e-9
