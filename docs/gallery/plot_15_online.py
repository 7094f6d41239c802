"""
# Online learning in two million dimensions

Examples come one at a time, with a few dozen words of a vocabulary of two million. `SparseBall` keeps the
coefficients inside an l1 ball, exactly, after every example, and stores no more than the non-zeros.
"""

# %%
# Words are as frequent as words are: the k-th with a frequency of about 1/k. Forty of the commoner ones decide the
# label.

import matplotlib.pyplot as plt
import numpy as np

from bench_mtl.projections import SparseBall
from bench_mtl.report.figures import use_style

use_style()
rng = np.random.default_rng(0)
vocabulary, words, examples = 2_000_000, 40, 6000
true = dict(zip(rng.choice(300, 40, replace=False).tolist(), rng.choice([-2.0, 2.0], 40).tolist(), strict=True))
ranks = np.exp(rng.random((examples, words)) * np.log(vocabulary)).astype(np.int64) - 1

# %%
# Logistic regression by one gradient step for each example, in two balls: one of radius 200, and one so large that it
# never matters.


def learn(radius):
    ball, wrong, stored = SparseBall(radius), [], []
    for t, row in enumerate(ranks):
        places = np.unique(row)
        label = 1.0 if sum(true.get(place, 0.0) for place in places.tolist()) >= 0.0 else -1.0
        score = ball.get(places).sum()
        wrong.append(score * label <= 0.0)
        weight = label / (1.0 + np.exp(label * score))
        ball.add(places, np.full(len(places), weight / np.sqrt(1.0 + 0.01 * t)))
        stored.append(ball.nnz)
    return np.array(wrong), stored, ball


small, large = learn(200.0), learn(1e9)
print(f"bytes: {small[2].nbytes} in the small ball, {large[2].nbytes} in the large one, {8 * vocabulary} for a dense vector")

# %%
# The small ball forgets words that do not help: it makes as few mistakes with a twentieth of the coefficients.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.2), layout="constrained")
for (wrong, stored, _), name in ((small, "radius 200"), (large, "no bound that matters")):
    left.plot(np.convolve(wrong, np.full(500, 1 / 500), "valid"), label=name)
    right.semilogy(stored, label=name)
left.set(title="mistakes, of the last 500", xlabel="example", ylim=(0.0, 0.5))
left.legend()
limits = right.set(title="non-zeros", xlabel="example")
