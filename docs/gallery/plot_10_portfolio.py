"""
# The portfolio that would have earned the most

Which fixed shares of twelve assets, restored after every period, would have grown a fund the most? It is a convex
problem on the simplex. The answer is proven, and belongs to the past: later periods were not asked.
"""

# %%
# A synthetic market. The last 250 periods are held out.

import matplotlib.pyplot as plt
import numpy as np

from bench_mtl import run
from bench_mtl.data import synthetic_market
from bench_mtl.problems.portfolio import Portfolio
from bench_mtl.report.figures import use_style

use_style()
market = synthetic_market(periods=750, assets=12, volatility=0.05, drift_spread=0.0005, held_out=250)
past, later = market.task(0)[0], market.held_out.task(0)[0]

# %%
# Once with all shares allowed, once with at most a fifth of the fund in any asset.

records = {
    "any shares": run(Portfolio(market), "simplex_newton", tolerance=1e-8, limits=5),
    "at most a fifth each": run(Portfolio(market, upper=0.2), "simplex_newton", tolerance=1e-8, limits=5),
}
shares = {"the same share of each": np.full(12, 1.0 / 12.0)}
for name, record in records.items():
    shares[name] = record.solution[:, 0] / record.solution.sum()
    print(f"{name}: {record.reason}, the optimum is in [{record.best.dual:.9f}, {record.best.primal:.9f}]")

# %%
# Left: the fund over time. Right: the shares. What was best in the past need not be so later.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained", width_ratios=(3, 2))
for place, (name, w) in enumerate(shares.items()):
    left.semilogy(np.cumprod(np.concatenate([past, later]) @ w), color=f"C{place}", label=name)
    right.bar(np.arange(12) + 0.3 * (place - 1), w, width=0.3, color=f"C{place}", label=name)
left.axvspan(len(past), len(past) + len(later), color="0.93", label="held out")
left.set(xlabel="period", ylabel="worth of the fund")
left.legend()
right.set(xlabel="asset", ylabel="share")
