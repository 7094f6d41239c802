"""
# Compare solvers on your own table

A row is an example, and a column a feature or something to be learned. All solvers get the same problem and the same
time. Each point that they show is certified, so the gap in the picture is proven, whoever found it.
"""

# %%
# The table holds 13 measurements of 178 wines, and the cultivar of each. Every cultivar is a task, against the
# others. A CSV file goes the same way: `pd.read_csv("wines.csv")`.

from sklearn.datasets import load_wine

from bench_mtl import TaskData, compare
from bench_mtl.data import preprocess
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.report.figures import use_style
from bench_mtl.solvers.conic import Conic

use_style()
table = load_wine(as_frame=True).frame
print(table.iloc[:3, [0, 1, 2, -1]])
data = preprocess(TaskData.from_frame(table, class_column="target", name="wines"), ["standardise"])
problem = L1InfHinge(data, radius=1.0)

# %%
# Two specialised solvers and two generic ones, which see the same problem as a linear programme. `isolation="inline"`
# runs all of them in this process. Without it each run has a process of its own, with hard limits.

solvers = ["auto", "pdhg", Conic(backend="CLARABEL"), Conic(backend="SCS")]
result = compare({"wines": problem}, solvers, targets=1e-4, limits=5, isolation="inline")
print(result.frame()[["solver", "kind", "seconds", "status", "relative_gap", "dual", "primal"]].to_string())

# %%
# Lower is better, and further left is sooner. A generic solver answers once for each tolerance that it is asked for:
# a marker is an answer.

axes = result.plot()
