"""Few cases in which every two properties occur together that do so in any case: a covering array, made step by step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from bench_mtl.model.protocols import Problem
from bench_mtl.validation.tiny_instances import all_instances, in_memory

#: The properties of a case whose values are to occur together.
PAIRED = (
    ("problem", "variant"), ("problem", "storage"), ("problem", "restriction"), ("problem", "loss"),
    ("solver", "storage"), ("solver", "restriction"), ("solver", "loss"),
)  # fmt: skip

Pair = tuple[str, str, str, str]


@dataclass(frozen=True)
class Traits:
    """What may matter to a solver of an instance of a problem."""

    storage: str
    restriction: str
    loss: str

    @classmethod
    def of(cls, problem: Problem) -> Traits:
        """Return those of one of `all_instances`."""
        plain = in_memory(problem)
        design = plain.design  # type: ignore[attr-defined] # which the problems of this package have
        storage = ("sparse" if sp.issparse(design.block(0)) else "dense", "shared" if design.is_shared else "per task")
        restriction = "constrained" if _is_bounded(plain) else "penalised"
        parts = (plain, *(form.fit for form in plain.make_forms() if hasattr(form, "fit")))
        loss = next((part.loss for part in parts if hasattr(part, "loss")), parts[-1])
        return cls(
            ", ".join((*storage, "in shards" if problem.is_in_shards else "in memory")),
            restriction + (" with intercepts" if _has_intercepts(plain) else ""),
            type(loss).__name__,
        )


def _is_bounded(problem: Problem) -> bool:
    """Whether no point far out is feasible, whatever its signs."""
    far = 1e9 * np.random.default_rng(0).standard_normal((20, *problem.point_shape))
    return not any(problem.infeasibility(point) == 0.0 for point in (*far, *np.abs(far), *-np.abs(far)))


def _has_intercepts(problem: Problem) -> bool:
    point = problem.repair(np.random.default_rng(0).standard_normal(problem.point_shape))
    return hasattr(problem, "intercepts") and bool(problem.intercepts(point).any())


@lru_cache(maxsize=64)
def traits_of_instances(problem: type[Problem], seed: int) -> tuple[Traits, ...]:
    return tuple(map(Traits.of, all_instances(problem, seed)))


@dataclass(frozen=True)
class Case:
    """A solver with some options on one of the instances of a problem."""

    problem: str
    solver: str
    variant: str
    """The solver with its options."""
    place: int
    """Among the instances of the problem."""
    storage: str
    restriction: str
    loss: str

    @property
    def pairs(self) -> frozenset[Pair]:
        return frozenset((one, getattr(self, one), other, getattr(self, other)) for one, other in PAIRED)


def covering(cases: Iterable[Case]) -> list[Case]:
    """Return few of the cases that have together all pairs that any of them has: each time the first with most of what is missing."""
    pairs = {case: case.pairs for case in cases}
    having = defaultdict(list)
    for case, own in pairs.items():
        for pair in own:
            having[pair].append(case)
    gains = {case: len(own) for case, own in pairs.items()}
    missing, chosen = set(having), []
    while missing:
        best = max(gains, key=gains.__getitem__)
        chosen.append(best)
        for pair in pairs[best] & missing:
            missing.remove(pair)
            for case in having[pair]:
                gains[case] -= 1
    return chosen
