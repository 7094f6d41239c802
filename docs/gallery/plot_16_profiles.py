"""
# Performance profiles of a small suite

One problem tells little. A performance profile counts, over many, the share that a solver has solved within a factor
of the fastest one's time. Failures count as problems that were not solved.
"""

# %%
# Nine problems: three random sets of tasks, each with three sizes of the constraint.

import matplotlib.pyplot as plt

from bench_mtl import compare
from bench_mtl.data import synthetic_l1inf
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.report.figures import solver_look, use_style
from bench_mtl.solvers.conic import Conic
from bench_mtl.stats.profiles import performance_profile

use_style()
data = [synthetic_l1inf(tasks=6, features=40, examples=30, seed=seed) for seed in range(3)]
problems = [L1InfHinge(tasks, radius=radius) for tasks in data for radius in (3.0, 10.0, 30.0)]

# %%
# Seconds until a gap of 1e-3 was proven; missing where a solver did not get there in 0.3 seconds.

solvers = ["pdhg", "working_set", "projected_subgradient", Conic(backend="ECOS")]
result = compare(problems, solvers, targets=1e-3, limits=0.3, isolation="inline")
times = result.frame().pivot(index="problem", columns="solver", values="seconds")
print(times.to_string(float_format="{:.4f}".format))

# %%
# At the left end: how often a solver is the fastest. At the right end: how often it gets there at all.

profile = performance_profile(times.to_numpy())
figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
for solver, shares in zip(times.columns, profile.shares, strict=True):
    axes.step([*profile.at, 2.0 * profile.at[-1]], [*shares, shares[-1]], where="post", markevery=0.2, **solver_look(solver))
axes.set(xscale="log", xlabel="factor over the fastest", ylabel="share of the problems", ylim=(-0.03, 1.03))
legend = figure.legend(loc="outside right upper")
