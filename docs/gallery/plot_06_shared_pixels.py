"""
# Which pixels do ten digits share?

An l1,inf classifier chooses its pixels for all digits together: a pixel is looked at by nearly all of them, or by none.
With an l1 ball for each digit each chooses by itself.
"""

# %%
# Images of 8 x 8 pixels, half of them for training.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from bench_mtl.estimators import L1BallClassifier, L1InfClassifier
from bench_mtl.report.figures import use_style

use_style()
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, train_size=0.5, random_state=0, stratify=y)

# %%
# One model of each kind, of sizes that do about as well on new images. A fit ends when its gap is proven to be at most
# one in a thousand.

together = L1InfClassifier(radius=6.0).fit(X_train, y_train)
alone = L1BallClassifier(radius=3.0).fit(X_train, y_train)
models = {"together": together, "each by itself": alone}

# %%
# Left: how many digits look at a pixel. Then the coefficients of three digits, red for and blue against. Grey pixels
# have none.

figure, panels = plt.subplots(2, 4, figsize=(8.5, 4.6), layout="constrained")
for (left, *others), (name, model) in zip(panels, models.items(), strict=True):
    used = np.abs(model.coef_) > 1e-3 * np.abs(model.coef_).max()
    users = left.imshow(used.sum(axis=0).reshape(8, 8), cmap="Blues", vmin=0, vmax=10)
    left.set(title=f"{used.any(axis=0).sum()} pixels, {model.score(X_test, y_test):.0%} right", ylabel=f"chosen {name}")
    for panel, digit in zip(others, (0, 3, 7), strict=True):
        w = np.where(used[digit], model.coef_[digit], np.nan).reshape(8, 8)
        panel.imshow(w, cmap="RdBu_r", vmin=-np.nanmax(np.abs(w)), vmax=np.nanmax(np.abs(w)))
        panel.set(title=f"{digit}: {used[digit].sum()} pixels", facecolor="0.8")
for panel in panels.flat:
    panel.set(xticks=[], yticks=[])
    panel.grid(visible=False)
colours = figure.colorbar(users, ax=panels[:, 0], location="left", shrink=0.6)
