"""Whether one of two models ranks better than the other: the sign test on pairs of examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_mtl.core.checks import whole_number
from bench_mtl.metrics.tasks import Skipped, checked_tasks, split
from bench_mtl.stats.paired import Alternative, sign_test


@dataclass(frozen=True)
class PairCounts:
    """How two models f and g rank the same pairs of a positive and a negative example."""

    pairs: int
    wins: int
    """s+: pairs that f ranks rightly and g wrongly, both strictly."""
    losses: int
    """s-: pairs that f ranks wrongly and g rightly."""
    p_value: float
    """p-value of the sign test on the wins and losses; 1 where there is neither, so that nothing speaks against the null hypothesis."""


@dataclass(frozen=True)
class PairTest:
    """The sign test of two models, task by task and over all tasks."""

    pooled: PairCounts
    """Counts summed over the tasks."""
    per_task: tuple[PairCounts, ...]
    """Results of the tasks counted, in their order."""
    counted: tuple[str, ...]
    skipped: tuple[Skipped, ...]


def pair_sign_test(
    labels: Any, first: Any, second: Any, *, seed: int = 0, alternative: Alternative = "greater", names: Sequence[str] | None = None
) -> PairTest:
    """Test whether the first model, f, has a higher AUC than the second, g, on the same test examples.

    In each task min(n+, n-) pairs of a positive and a negative example are drawn at random, no example twice (the paper: n+ pairs, n+ being
    smaller in all its tasks, with "arbitrary" negatives). On these

        s+ = #{f(x+) > f(x-) and g(x+) < g(x-)},      s- = #{f(x+) < f(x-) and g(x+) > g(x-)}

    and the p-value is that of s+ successes in s+ + s- trials of probability 1/2. Pairs that either model leaves tied count in neither.
    Pooled, the counts are summed over the tasks: the paper says that a variant for many tasks is straightforward, and omits it. Where
    tasks share their examples the pooled pairs are not independent, and the pooled p-value is too small.

    The labels and both models' scores are of the same tasks and examples; `seed` is that of the draw, which does not depend on the order of
    the models; the alternatives are ``"greater"`` (AUC(f) > AUC(g), the paper's hypothesis), ``"less"`` and ``"two-sided"``. Errors are
    those of the metrics.

    Source: Quattoni et al., ICML 2009, section 6.1.
    """

    def counts(pairs: int, wins: int, losses: int) -> PairCounts:
        p_value = sign_test(wins, losses, alternative=alternative)
        return PairCounts(pairs, wins, losses, 1.0 if p_value is None else p_value)

    generator = np.random.default_rng(whole_number("seed", seed))
    tasks, skipped = split(checked_tasks(labels, first, names))
    others, drawn = {task.name: task.scores for task in checked_tasks(labels, second, names)}, list[PairCounts]()
    for task in tasks:
        positive, negative = (generator.permutation(np.flatnonzero(chosen)) for chosen in (task.positive, ~task.positive))
        pairs = min(len(positive), len(negative))
        f, g = (np.sign(scores[positive[:pairs]] - scores[negative[:pairs]]) for scores in (task.scores, others[task.name]))
        drawn.append(counts(pairs, int(((f > 0) & (g < 0)).sum()), int(((f < 0) & (g > 0)).sum())))
    pooled = counts(*(sum(getattr(each, name) for each in drawn) for name in ("pairs", "wins", "losses")))
    return PairTest(pooled, tuple(drawn), tuple(task.name for task in tasks), skipped)
