"""
# Which pixels do ten digits share?

An l1,inf classifier chooses its pixels for all digits together; a classifier with an l1 ball for each digit chooses
for each by itself. Both see the same images. How many pixels must be looked at, and how well do they do?
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
# Three sizes of each. A fit ends when its gap is proven to be at most 1 %.

together = [L1InfClassifier(radius=radius, tol=1e-2).fit(X_train, y_train) for radius in (2.0, 6.0, 20.0)]
alone = [L1BallClassifier(radius=radius, tol=1e-2).fit(X_train, y_train) for radius in (1.0, 3.0, 10.0)]
assert all(model.gap_ <= 1e-2 for model in together + alone)

# %%
# The darker a pixel, the more digits look at it; a blank one is never needed.

figure, panels = plt.subplots(2, 3, figsize=(7.0, 5.4), layout="constrained")
for row, models, name in zip(panels, (together, alone), ("together", "each by itself"), strict=True):
    for panel, model in zip(row, models, strict=True):
        size = np.abs(model.coef_)
        users = (size > 1e-3 * size.max()).sum(axis=0)
        picture = panel.imshow(users.reshape(8, 8), cmap="Blues", vmin=0, vmax=10)
        accuracy = model.score(X_test, y_test)
        panel.set(title=f"{np.count_nonzero(users)} pixels, {accuracy:.0%} right", xticks=[], yticks=[])
        panel.grid(visible=False)
    row[0].set_ylabel(f"chosen {name}")
colours = figure.colorbar(picture, ax=panels, shrink=0.6, label="digits that look at the pixel")
