"""
# Sparse plus low rank

Coefficients of many tasks are often a low-rank matrix, what the tasks have in common, plus a sparse one, what a few
of them have to themselves. An l1 penalty on one part and a trace-norm ball for the other take them apart again.
"""

# %%
# Twenty regression tasks over 40 features. The generator knows both parts: two directions in common, and a block of
# own coefficients.

import matplotlib.pyplot as plt
import numpy as np

from bench_mtl import run
from bench_mtl.data import synthetic_sparse_low_rank
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.report.figures import use_style

use_style()
data = synthetic_sparse_low_rank(
    tasks=20, features=40, examples=100, rank=2, zero_features=34, zero_tasks=12, sparse_std=2.0, noise_std=0.3
)

# %%
# The radius is the trace norm of the true low-rank part. Let the answer be within 1e-6 of the optimum.

problem = SparseLowRank(data, penalty=12.0, radius="truth")
record = run(problem, "auto", tolerance=1e-6, limits=10)
P, Q = record.solution
print(record)

# %%
# Above the truth, below what was found. Of the singular values of the low-rank part two stand out.

figure, panels = plt.subplots(2, 3, figsize=(8.5, 5.0), layout="constrained")
rows = (("true", data.truth["P"], data.truth["Q"]), ("found", P, Q))
for (title, sparse, low), (left, middle, right) in zip(rows, panels, strict=True):
    for panel, part, name in ((left, sparse, "sparse part"), (middle, low, "low-rank part")):
        picture = panel.imshow(part.T, cmap="RdBu_r", vmin=-3.0, vmax=3.0, aspect="auto", interpolation="nearest")
        panel.set(title=f"{title} {name}", xticks=[], yticks=[], xlabel="feature")
        panel.grid(visible=False)
    left.set_ylabel("task")
    right.bar(np.arange(1, 21), np.linalg.svd(low, compute_uv=False))
    right.set(title="singular values of the low-rank part", ylim=(0.0, 12.0))
colours = figure.colorbar(picture, ax=panels[:, :2], shrink=0.7)
