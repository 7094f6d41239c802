"""
# The l1 ball against soft thresholding

Both shrink every entry of a vector by the same amount and leave zeros behind. Soft thresholding is told the amount,
the projection onto an l1 ball has to find it. How much longer does that take?
"""

# %%
# The projection is a soft threshold, at a level that it finds itself.

import timeit

import matplotlib.pyplot as plt
import numpy as np

from bench_mtl.projections import METHODS, project_l1_ball, soft_threshold
from bench_mtl.report.figures import use_style

use_style()
rng = np.random.default_rng(0)
v = rng.standard_normal(200)
w = project_l1_ball(v, radius=20.0)
level = np.abs(v).max() - np.abs(w).max()
assert np.allclose(w, soft_threshold(v, level))

order = np.argsort(v)
figure, axes = plt.subplots(figsize=(5.0, 3.2), layout="constrained")
axes.plot(v[order], color="0.6", label="the vector, sorted")
axes.plot(w[order], label=f"its projection: {np.count_nonzero(w)} entries left")
axes.axhspan(-level, level, color="0.93", label=f"the level, {level:.2f}")
axes.set(xlabel="place", ylabel="entry")
legend = axes.legend()

# %%
# Time against size, the best of three. Three methods find the same level: by Newton's steps, by pivots as in quickselect,
# and by sorting. Radii are a hundredth of the norm, so that few entries stay.


def best_seconds(function, v, number):
    return min(timeit.repeat(lambda: function(v, number), number=1, repeat=3))


sizes = np.logspace(2, 6, 9).astype(int)
vectors = [rng.standard_normal(size) for size in sizes]
figure, axes = plt.subplots(figsize=(5.0, 3.4), layout="constrained")
for method in METHODS:
    radii = [0.01 * np.abs(v).sum() for v in vectors]
    taken = [best_seconds(lambda v, r, m=method: project_l1_ball(v, r, method=m), v, r) for v, r in zip(vectors, radii, strict=True)]
    axes.loglog(sizes, taken, "o-", label=f"projection: {method}")
taken = [best_seconds(soft_threshold, v, 2.0) for v in vectors]
axes.loglog(sizes, taken, "k--", label="soft thresholding")
axes.set(xlabel="entries", ylabel="seconds")
legend = axes.legend()
