"""Classes that share their features: every class is a code of signs over the same few features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import real_number, whole_number
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.data.synthetic.common import drawn
from bench_mtl.model.task_data import TaskData

_LONGEST = 62


class _Recipe(NamedTuple):
    means: Array
    """K x d."""
    noise: float

    def draw(self, generator: np.random.Generator, n: int) -> tuple[Array, Array]:
        """n examples and their targets."""
        K, d = self.means.shape
        classes = generator.permutation(np.arange(n) % K)
        X = generator.standard_normal((n, d))
        X *= self.noise
        X += self.means[classes]
        return X, np.where(classes[:, None] == np.arange(K), 1.0, -1.0)


def synthetic_multiclass(
    *, examples: int = 1000, held_out: int = 0, classes: int = 10, features: int = 50, relevant: int = 10, strength: float = 1.0,
    noise: float = 1.0, seed: int = 0,
) -> TaskData:  # fmt: skip
    """Classes that share the features that tell them apart, for learners that share features.

    A set S of `relevant` of the d features, drawn at random, is relevant to all classes alike. Class r has a random code
    c_r in {-1, +1}^S, different from those of the other classes. An example of class y is

        x_j = strength c_yj + noise N(0, 1)   for j in S,        x_j = noise N(0, 1)   elsewhere.

    Classes are as frequent as each other, up to one example, so that each occurs where there are as many examples as classes.

    Parameters
    ----------
    examples : n, over all classes; at least `classes`.
    held_out : the number of further examples of the same classes as `TaskData.held_out`, from an independent stream.
    classes, features, relevant : K >= 2, d and the size of S, at most d and at least log2 K.
    strength, noise : at least 0.
    seed : of the generator; the same seed gives the same examples.

    Returns
    -------
    TaskData : a shared dense design, one-against-all targets -1/+1 (n x K), ``truth={"W": W}`` with W_jr = c_rj on S and 0
        elsewhere: the class of largest x . w_r is the most likely one.

    Raises
    ------
    InputError : a size out of its range, fewer examples than classes, more classes than codes.
    """
    n, n_held_out = whole_number("examples", examples, minimum=1), whole_number("held_out", held_out)
    K, d = whole_number("classes", classes, minimum=2), whole_number("features", features, minimum=1)
    size, seed = whole_number("relevant", relevant, minimum=1), whole_number("seed", seed)
    if n < K:
        raise InputError(f"examples must be at least {K}, so that every class has one, not {n}")
    if size > d:
        raise InputError(f"relevant must be at most {d}, the number of features, not {size}")
    if size < _LONGEST and 2**size < K:
        raise InputError(f"classes must be at most {2**size}, the number of different codes over {size} relevant features, not {K}")
    scale, spread = real_number("strength", strength), real_number("noise", noise)
    generator = np.random.default_rng(seed)
    chosen = np.sort(generator.choice(d, size=size, replace=False))
    W = np.zeros((d, K))
    W[chosen] = _codes(generator, K, size).T
    recipe = _Recipe(scale * W.T, spread)
    return drawn(recipe.draw, generator, n, n_held_out, seed, "synthetic_multiclass", {"W": frozen(W)})


def _codes(generator: np.random.Generator, K: int, size: int) -> NDArray[np.float64]:
    """K different rows of `size` signs (of very long ones the beginnings differ)."""
    short = min(size, _LONGEST)
    numbers = generator.choice(2**short, size=K, replace=False)
    bits = (numbers[:, None] >> np.arange(short)) & 1
    return np.hstack([2.0 * bits - 1.0, 2.0 * generator.integers(0, 2, size=(K, size - short)) - 1.0])
