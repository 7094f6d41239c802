"""
# Boosting with stumps that classes share

A decision stump looks at one pixel. Boosting adds up many of them, with weights for each class. A penalty on the norm
of a stump's row of weights makes classes use the same stumps; an l1 penalty does not care.
"""

# %%
# Six digits, 200 images.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from bench_mtl.estimators import GroupSparseBoostingClassifier
from bench_mtl.report.figures import use_style

use_style()
X, y = load_digits(n_class=6, return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=200, random_state=0, stratify=y)

# %%
# The same loss, the same share of the largest penalty. The proven gap holds over every stump there is, at any
# threshold of any pixel.

models = {norm: GroupSparseBoostingClassifier(penalty="0.1 max", norm=norm).fit(X_train, y_train) for norm in ("l12", "l1")}
for norm, model in models.items():
    print(f"{norm}: gap {model.gap_:.1e} over {model.gap_covers_}, {model.score(X_test, y_test):.1%} right")

# %%
# A row is a stump, a column a class. With shared stumps there are fewer of them, and most have several classes.

figure, panels = plt.subplots(1, 2, figsize=(7.5, 5.0), layout="constrained", sharey=True)
for panel, (norm, model) in zip(panels, models.items(), strict=True):
    used = model.coef_ > 1e-6 * model.coef_.max()
    weights = model.coef_[np.lexsort((used.argmax(axis=1), -used.sum(axis=1)))]
    picture = panel.imshow(np.sqrt(weights / weights.max()), cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    panel.set(title=f"{norm}: {len(used)} stumps, each for {used.sum(axis=1).mean():.1f} classes", xlabel="class", xticks=range(6))
    panel.grid(visible=False)
panels[0].set(ylabel="stump", ylim=(max(len(model.coef_) for model in models.values()) - 0.5, -0.5))
colours = figure.colorbar(picture, ax=panels, shrink=0.6, label="square root of the weight, largest 1")
