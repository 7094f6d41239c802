"""The protocol of the learning experiments in words, for their reports."""

from __future__ import annotations

from bench_mtl.papers.chen.learners import MODELS, TOLERANCE, UNITS, Model
from bench_mtl.papers.chen.protocol import FOLDS, TUNING_TOLERANCE


def about_protocol(ratio: str = "a ratio of 1 to 9") -> str:
    """Return what is done, and what was chosen where the paper does not say."""
    grids = "; ".join(f"{name} {_grid_words(model)}" for name, model in MODELS.items())
    return f"""\
Random training and test parts in {ratio}; the squared loss on labels -1 and +1 without intercept (the paper's f(x) = w.x), but for
IndSVM, which has the squared hinge of scikit-learn's LinearSVC. Chosen here, where the paper does not say: features of dense data have mean
0 and deviation 1 over the training examples, counts of words are TF-IDF, and then all rows have length 1. Parameters are tuned by
{FOLDS}-fold cross-validation within the training part, by the average AUC, the same folds for all learners, over grids that are lost in the
paper's text but for some multiples: {grids}. MixedNorm's grid holds those of its special cases: OneNorm's at tau 0, and TraceNorm's at
gamma 1, where next to nothing is left of the sparse part. Convex fits of the tuning are proven to a relative gap of {TUNING_TOLERANCE:g}
and the final one, on the whole training part, to {TOLERANCE:g} (the paper stops where the objective changes by less than 1e-5, which proves
no accuracy); where examples can be fitted exactly, so that the optimum is 0, to these shares of a millionth of the objective at 0. A label
without a positive or negative example in the training part is not learnt, and named in cells.csv."""


def _grid_words(model: Model) -> str:
    parts = []
    for name, values in model.grid.items():
        unit = model.units.get(name)
        parts.append(f"{name} of {', '.join(f'{value:g}' for value in values)}" + ("" if unit is None else f" times {UNITS[unit]}"))
    most = model.most_features
    basis = "" if most is None else f" (on {most} singular directions of the training examples where there are more features)"
    return ", ".join(parts) + basis
