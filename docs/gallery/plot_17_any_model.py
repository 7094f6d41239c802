"""
# Enclose the value of any CVXPY model

A solver says that its answer is optimal. `certify` proves between which numbers the optimal value lies, for any convex
model and any solver; a bad answer makes the enclosure wide, and never false.
"""

# %%
# A portfolio of twelve assets: the mean return less half the variance.

import cvxpy
import numpy as np
from matplotlib import pyplot

from bench_mtl import certify
from bench_mtl.report.figures import use_style

use_style()
rng = np.random.default_rng(0)
returns, covariance = 0.1 * rng.standard_normal(12), np.cov(rng.standard_normal((12, 60)))
weights = cvxpy.Variable(12, name="weights")
value = returns @ weights - 0.5 * cvxpy.quad_form(weights, cvxpy.psd_wrap(covariance))
model = cvxpy.Problem(cvxpy.Maximize(value), [cvxpy.sum(weights) == 1, weights >= 0])

# %%
# Four solvers, each with its default tolerance, judged by their answers alone.

solvers = ["HIGHS", "CLARABEL", "ECOS", "SCS"]
found = {solver: certify(model, solver=solver, judge="answer") for solver in solvers}
for solver, enclosure in found.items():
    print(f"{solver}: {enclosure.lower:.9f} <= optimum <= {enclosure.upper:.9f}, relative gap {enclosure.relative_gap:.0e}")

# %%
# Weights from anywhere are judged too: the gap of equal ones is what better weights gain.

print(certify(model, {weights: np.full(12, 1 / 12)}))

# %%
# Shorter is better: the proven relative gap of each answer.

_, axes = pyplot.subplots()
axes.barh(solvers, [enclosure.relative_gap for enclosure in found.values()])
axes.set(xscale="log", xlabel="proven relative gap", title="One portfolio, four answers")
