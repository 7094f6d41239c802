"""Whether one of two models ranks better than the other: the sign test on pairs of examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_mtl.core.checks import whole_number
from bench_mtl.core.types import Array
from bench_mtl.metrics.tasks import Skipped, Task, checked_tasks, one_sided
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

    Parameters
    ----------
    labels, first, second : labels and both models' scores of the same tasks and examples, see `bench_mtl.metrics`
    seed : of the draw of the pairs; the order of the models does not change them
    alternative : ``"greater"`` (AUC(f) > AUC(g), the paper's hypothesis), ``"less"`` or ``"two-sided"``
    names : of the tasks, their numbers by default

    Raises
    ------
    InputError : NaN or inf, labels other than -1/+1 or 0/1, sizes or names that do not match, a negative seed, an unknown alternative.

    Source: Quattoni et al., ICML 2009, section 6.1.
    """
    generator = np.random.default_rng(whole_number("seed", seed))
    tasks, others = checked_tasks(labels, first, names), checked_tasks(labels, second, names)
    reasons = [(task, one_sided(task)) for task in tasks]
    drawn = [
        _counts(*_drawn(task, other.scores, generator), alternative)
        for (task, reason), other in zip(reasons, others, strict=True)
        if reason is None
    ]
    pairs, wins, losses = (sum(getattr(counts, name) for counts in drawn) for name in ("pairs", "wins", "losses"))
    return PairTest(
        _counts(pairs, wins, losses, alternative),
        tuple(drawn),
        tuple(task.name for task, reason in reasons if reason is None),
        tuple(Skipped(task.name, reason) for task, reason in reasons if reason is not None),
    )


def _drawn(task: Task, other: Array, generator: np.random.Generator) -> tuple[int, int, int]:
    """Return how many pairs are drawn of a task, and the wins and losses of its scores against others on them."""
    positive, negative = (generator.permutation(np.flatnonzero(chosen)) for chosen in (task.positive, ~task.positive))
    pairs = min(len(positive), len(negative))
    f, g = (np.sign(scores[positive[:pairs]] - scores[negative[:pairs]]) for scores in (task.scores, other))
    return pairs, int(((f > 0) & (g < 0)).sum()), int(((f < 0) & (g > 0)).sum())


def _counts(pairs: int, wins: int, losses: int, alternative: Alternative) -> PairCounts:
    p_value = sign_test(wins, losses, alternative=alternative)
    return PairCounts(pairs, wins, losses, 1.0 if p_value is None else p_value)
