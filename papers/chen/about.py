"""The protocol of the learning experiments in words, for their reports."""

from __future__ import annotations

from papers.chen.learners import MODELS, TOLERANCE, TUNING_STEPS, UNITS, Model
from papers.chen.protocol import FOLDS, TUNING_TOLERANCE


def about_protocol(ratio: str) -> str:
    """Return what is done, and what was chosen where the paper does not say."""
    grids = "; ".join(f"{name} {_grid_words(model)}" for name, model in MODELS.items())
    return f"""\
Random training and test parts in {ratio}; the squared loss on labels -1 and +1, but for IndSVM, which has the squared hinge of
scikit-learn's LinearSVC. The paper leaves open what moves its numbers most, so each choice is varied, and the comparison says what
depends on it. Features: normalised (dense data have mean 0 and deviation 1 over the training examples, counts of words are TF-IDF, and
then all rows have length 1) or raw (dense data as they come, counts with rows of length 1). Intercept: without, as in the paper's
f(x) = w.x, or free (IndSVM's is penalised, as in scikit-learn). Decisions: at 0; as many positives as the label's share of the training
part; one label an example; a threshold from the training folds. AUC: the mean over labels, or pooled over labels and examples. F1: the
paper describes Macro F1 as calculated over all tasks together and Micro F1 as the average over tasks, the two names exchanged against its
own source, which its numbers rule out (10 and 61 per cent for MixedNorm on MediaMill with 80 labels): Macro F1 here is the average over
labels, and Micro F1 that of all decisions together.
Features that no training example has are left out, and all features are divided by one number, for common units of the grids.

Parameters are tuned by {FOLDS}-fold cross-validation within the training part, by the average AUC, the same folds for all learners; our
copy of the paper has its grids only as some multiples, so these are ours: {grids}. MixedNorm's grid holds those of its special cases:
OneNorm's at tau 0, and TraceNorm's at gamma 1, where next to nothing is left of the sparse part. MTL(Omega,Sigma) is not given all features
of wide data: its graphical lasso takes time like their cube, and its penalty is not the same in a rotated basis, so that no reduction
is exact; this may cost it points. Convex fits of the tuning are to be proven to a relative gap of {TUNING_TOLERANCE:g}, those of MixedNorm,
TraceNorm and OneNorm within {TUNING_STEPS} steps from the neighbouring setting's fit, and the final one, on the whole training part, to
{TOLERANCE:g} (the paper stops where the objective changes by less than 1e-5, which proves no accuracy); where examples can be fitted
exactly, so that the optimum is 0, to these shares of a millionth of the objective at 0. A label without a positive or negative example in
the training part is not learnt, and named in cells.csv."""


def _grid_words(model: Model) -> str:
    parts = []
    for name, values in model.grid.items():
        unit = model.units.get(name)
        parts.append(f"{name} of {', '.join(f'{value:g}' for value in values)}" + ("" if unit is None else f" times {UNITS[unit]}"))
    most = model.most_features
    basis = "" if most is None else f" (on {most} singular directions of the training examples where there are more features)"
    return ", ".join(parts) + basis
