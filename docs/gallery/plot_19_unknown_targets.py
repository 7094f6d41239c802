"""
# Unknown targets

Not every task is measured on every example. Estimators take NaN in Y as unknown: a task does without these examples, and
the others keep them.
"""

# %%
# Eight tasks need the same five of forty features. Of ever more targets nothing is known.

import numpy as np
from matplotlib import pyplot

from bench_mtl.estimators import L12Regressor
from bench_mtl.report.figures import use_style

use_style()
rng = np.random.default_rng(0)
W = np.zeros((40, 8))
W[:5] = rng.standard_normal((5, 8))
X = rng.standard_normal((120, 40))
Y = X @ W + 0.5 * rng.standard_normal((120, 8))
order = rng.random(Y.shape)


def error(model):
    return np.linalg.norm(model.coef_.T - W) / np.linalg.norm(W)


# %%
# One fit is to all that is known; the other to the examples of which everything is, as one would have to do without.

shares, known, complete = [0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7], [], []
for share in shares:
    unknown = np.where(order < share, np.nan, Y)
    model = L12Regressor(penalty="0.1 max").fit(X, unknown)
    known.append(error(model))
    rows = ~np.isnan(unknown).any(axis=1)
    complete.append(error(L12Regressor(penalty="0.1 max").fit(X[rows], Y[rows])) if rows.sum() > 5 else np.nan)
print(f"{share:.0%} unknown: a relative gap of {model.gap_:.0e} is proven, R^2 of what is known {model.score(X, unknown):.2f}")

# %%
# Hardly an example is complete once a fifth of the targets is unknown.

_, axes = pyplot.subplots()
axes.plot(shares, known, marker="o", label="all known targets")
axes.plot(shares, complete, marker="o", label="complete examples alone")
axes.set(xlabel="share of targets that are unknown", ylabel="relative error of the coefficients", ylim=(0.0, None))
_ = axes.legend()
