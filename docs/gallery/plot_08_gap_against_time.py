"""
# Gap against time, with the proven bound

What a solver has reached is between two numbers: the objective of its best feasible point, and a lower bound that its
dual point, or its residuals, prove. The optimum lies between them, whatever the solver says.
"""

# %%
# A hinge loss under an l1,inf constraint: ten tasks that share features. Four solvers have a second each.

import matplotlib.pyplot as plt

from bench_mtl import compare
from bench_mtl.data import synthetic_l1inf
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.report.figures import solver_look, use_style
from bench_mtl.solvers.conic import Conic

use_style()
problem = L1InfHinge(synthetic_l1inf(tasks=10, features=50, examples=40), radius=20.0)
solvers = ["pdhg", "working_set", "projected_subgradient", Conic(backend="ECOS")]
samples = compare(problem, solvers, targets=1e-6, limits=1, isolation="inline").samples()

# %%
# The gap of each solver, in the colours of all reports. The subgradient method, the one of the papers, comes
# near and then stalls. ECOS answers once for each tolerance, so its markers are joined by a line and not by steps.

figure, axes = plt.subplots(figsize=(6.0, 3.6), layout="constrained")
for solver, points in samples.groupby("solver", sort=False):
    steps = "default" if solver == "ecos" else "steps-post"
    axes.loglog(points["seconds"], points["relative_gap"], drawstyle=steps, markevery=0.15, **solver_look(solver))
axes.axhline(1e-6, color="0.4", linestyle="--")
axes.set(xlabel="seconds", ylabel="proven relative gap", ylim=(1e-8, 3.0))
legend = axes.legend()

# %%
# The same as an enclosure: the optimum is inside the band of every solver, so it is where all bands overlap.

figure, axes = plt.subplots(figsize=(6.0, 3.6), layout="constrained")
for solver in ("projected_subgradient", "pdhg"):
    points, look = samples[samples["solver"] == solver], solver_look(solver)
    lower, upper = points["dual"].cummax(), points["primal"].cummin()
    axes.fill_between(points["seconds"], lower, upper, step="post", color=look["color"], alpha=0.35, label=solver)
optimum = samples["primal"].min()
axes.axhline(optimum, color="black", linewidth=0.8, label="the optimum")
axes.set(xscale="log", xlabel="seconds", ylabel="objective and proven bound", ylim=(0.5 * optimum, 1.5 * optimum))
legend = axes.legend()
