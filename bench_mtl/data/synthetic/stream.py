"""Sparse examples in very many dimensions, whose features are as frequent as words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.types import Array
from bench_mtl.data.synthetic.common import SPLITS, TEST, drawn, signs_of, some_rows, stream_of
from bench_mtl.model.task_data import TaskData

_OFFSET = 2.7  # as in Mandelbrot's fits to English
_LARGEST_DENSITY = 0.5
_LARGEST_RELEVANT = 0.1

Ranks = NDArray[np.int64]


class _Law(NamedTuple):
    """Zipf's law with Mandelbrot's offset q: features r = 0, ..., d-1 with p_r = log(1 + 1/(r + q)) / log(1 + d/q), about 1/(r + q)."""

    d: int

    def draw(self, generator: np.random.Generator, size: int, first: int = 0) -> Ranks:
        """Return features of `first` or later, by inversion of the distribution function log(1 + r/q) / log(1 + d/q)."""
        low, high = np.log(first + _OFFSET), np.log(self.d + _OFFSET)
        ranks = np.exp(low + (high - low) * generator.random(size)) - _OFFSET
        return np.clip(ranks.astype(np.int64), first, self.d - 1)

    def information(self, ranks: Ranks) -> Array:
        """-log p_r."""
        return np.log(np.log1p(self.d / _OFFSET)) - np.log(np.log1p(1.0 / (ranks + _OFFSET)))

    def rare(self, count: int) -> int:
        """Return the first feature that is expected at most half a time in `count` draws (but no later one than the middle one)."""
        return min(self.d // 2, max(0, int(np.ceil(2.0 * count / np.log1p(self.d / _OFFSET) - _OFFSET))))


def synthetic_stream(
    *, features: int = 2_000_000, examples: int = 1000, density: float = 0.0026, relevant: float = 0.0005, values: str = "tfidf",
    label_noise: float = 0.1, seed: int = 0, split: str = "train", held_out: int = 0,
) -> TaskData:  # fmt: skip
    """Labelled documents: one task over a CSR design whose features are as frequent as words.

    Tokens are drawn from Zipf's law with Mandelbrot's offset, p_r = log(1 + 1/(r + 2.7)) / log(1 + d/2.7), about proportional to
    1/(r + 2.7), for the features r = 0, ..., d-1 in order of frequency. A document ends with the token that makes it have
    round(density d) different features (at least one), so that every row has that number of non-zeros. They are

        tfidf:   (1 + log c) log(1 / p_r) for a feature that occurs c times, then unit rows
        binary:  1, then unit rows

    w has round(relevant d) entries N(0, 1) (at least one), on features drawn from the same law, so that as many have a rank in each
    decade, without those that about half of all examples have. Labels are sign(x . w), where 0 counts as +1, and
    round(label_noise n) of them are flipped.

    Parameters
    ----------
    features, examples : d, at least 2, and n, at least 1. Time and memory are in proportion to the non-zeros, but for the 8 d bytes of w.
    density : the share of non-zeros of a row, in (0, 0.5].
    relevant : the share of non-zero coefficients, in (0, 0.1].
    values : ``"tfidf"`` or ``"binary"``.
    label_noise : the share of flipped labels, from 0 to 1.
    seed, split, held_out : as for `synthetic_glm`.

    Returns
    -------
    TaskData : a shared CSR design, labels -1/+1 and ``truth={"W": w}``.

    Raises
    ------
    InputError : a size below its minimum, a share out of its range, unknown values or an unknown split.

    Notes
    -----
    Singer's slides (MMDS 2008) have 1,946,684 word bigrams, of which an article has about 0.26 %.
    B. Mandelbrot, "An informational theory of the statistical structure of language", 1953.
    """
    d, n = whole_number("features", features, minimum=2), whole_number("examples", examples, minimum=1)
    n_held_out, seed = whole_number("held_out", held_out), whole_number("seed", seed)
    one_of("split", split, SPLITS)
    nonzeros = max(1, round(real_number("density", density, strict=True, maximum=_LARGEST_DENSITY) * d))
    n_relevant = max(1, round(real_number("relevant", relevant, strict=True, maximum=_LARGEST_RELEVANT) * d))
    wrong = real_number("label_noise", label_noise, maximum=1.0)
    one_of("values", values, ("tfidf", "binary"))
    generator = np.random.default_rng(seed)
    law = _Law(d)
    w = np.zeros(d)
    w[_distinct(generator, law, n_relevant, law.rare(nonzeros))] = generator.standard_normal(n_relevant)

    def draw(stream: np.random.Generator, size: int) -> tuple[sp.csr_array, Array]:
        indices, data = np.empty((size, nonzeros), dtype=np.int64), np.empty((size, nonzeros))
        for row in range(size):
            indices[row], counts = _document(stream, law, nonzeros)
            entries = np.ones(nonzeros) if values == "binary" else (1.0 + np.log(counts)) * law.information(indices[row])
            data[row] = entries / np.linalg.norm(entries)
        X = sp.csr_array((data.ravel(), indices.ravel(), np.arange(size + 1) * nonzeros), shape=(size, d))
        labels = signs_of(np.asarray(X @ w))
        labels[some_rows(stream, size, wrong)] *= -1.0
        return X, labels

    return drawn(draw, generator if split == "train" else stream_of(seed, TEST), (n, n_held_out, seed), "synthetic_stream", w[:, None])


def _document(generator: np.random.Generator, law: _Law, count: int) -> tuple[Ranks, NDArray[np.int64]]:
    """Return the `count` different features of a document, ascending, and how often each occurs."""
    tokens = law.draw(generator, 2 * count)
    features, first = np.unique(tokens, return_index=True)
    while len(features) < count:
        tokens = np.concatenate([tokens, law.draw(generator, len(tokens))])
        features, first = np.unique(tokens, return_index=True)
    end = np.partition(first, count - 1)[count - 1]
    features, counts = np.unique(tokens[: end + 1], return_counts=True)
    return features, counts


def _distinct(generator: np.random.Generator, law: _Law, count: int, first: int) -> Ranks:
    """Return `count` different features of `first` or later, in the order drawn."""
    drawn = law.draw(generator, 2 * count, first)
    while len(np.unique(drawn)) < count:
        drawn = np.concatenate([drawn, law.draw(generator, len(drawn), first)])
    _, places = np.unique(drawn, return_index=True)
    return drawn[np.sort(places)[:count]]
