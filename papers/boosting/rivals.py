"""Group-sparse boosting beside SAMME, ECOC, AdaBoost.MH and L1-AdaBoost: errors, and the stumps and features in use."""

from __future__ import annotations

import pandas as pd

from papers.boosting.learners import CODE_SIZE, LEARNERS, MOST_STUMPS, SHARES, TOLERANCE
from papers.boosting.rivals_cell import SETS, compute, files
from papers.experiment import Experiment, Scale, grid
from papers.figures import Dots
from papers.published import published
from papers.tables import Table
from papers.values import melted, tidy

_SETTINGS = ("data", "model")
_SIZES = {"stumps": "stumps", "features": "features", "classes a stump": "classes_a_stump"}
_INTERVALS = "means over the repetitions ± half of the 95 % interval"


def values(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the test errors in per cent, and what the learners use."""
    return tidy([melted(rows, _SETTINGS, {"test error": "test_error"}, scale=100.0), melted(rows, _SETTINGS, _SIZES)], _SETTINGS)


EXPERIMENT = Experiment(
    name="boosting-rivals",
    title="Group-sparse boosting beside SAMME, ECOC, AdaBoost.MH and L1-AdaBoost",
    source="Paisitkriangkrai, Shen, van den Hengel, CVPR 2012, appendix",
    about=f"""\
Of the paper the appendix alone is at hand: it has derivations, and neither an experiment nor the name of a data set. Half a sentence of it
says something of a rival, and what that means in numbers is our reading. Which data, rivals and numbers the paper has is not known here;
all data are of ours, those of the suite `boosting-table` without MNIST: `synthetic_multiclass`, digits, Scene (images with one label),
Yeast (the ten most frequent sets of labels), ORL faces (40 people). 600 training examples (faces 280), drawn anew in every repetition; all
learners have the same split. The weak learner is a decision stump everywhere, and no learner has more than {MOST_STUMPS} of them. One
parameter of each is chosen on a third of the training examples, and the learner is then fitted to all of them: of ours the penalty, of
{", ".join(f"{share:g}" for share in SHARES)} times the smallest that gives no stumps; of the rivals the number of rounds. Group-sparse
boosting and L1-AdaBoost (`GroupSparseBoostingClassifier` with the norms l12, l1inf and l1, logistic loss) find stumps by column generation
and are totally corrective; their gap over all stumps is proven, to {TOLERANCE:g} unless {MOST_STUMPS} stumps are too few. SAMME is
scikit-learn's `AdaBoostClassifier`, ECOC its `OutputCodeClassifier` over it ({CODE_SIZE} random words a class; up to {MOST_STUMPS} stumps
in all words together); AdaBoost.MH (Schapire, Singer 1999) takes a stump and a vote of -1 or +1 for each class in every round.""",
    scales={
        "small": Scale(
            grid(2, data=("synthetic", "digits"), model=tuple(LEARNERS)), "two of the five data sets and 2 repetitions: half a minute."
        ),
        "full": Scale(grid(5, data=tuple(SETS), model=tuple(LEARNERS)), "all five data sets, 5 repetitions: 5 minutes on two idle cores."),
    },
    compute=compute,
    values=values,
    claims=published("paisitkriangkrai2012_appendix"),
    sections=(
        Table("Test error", ("test error",), ("data",), ("model",), name="errors", digits=1, words=f"Per cent, {_INTERVALS}."),
        Dots("Test error by data set", "test error", "model", panel="data", name="errors-drawn"),
        Table("Paired differences of the test error", ("test error",), ("data",), name="differences", digits=1,
              pairs=[("l12", model) for model in LEARNERS if model != "l12"],
              words=f"Percentage points on the same splits, {_INTERVALS}; below 0 group-sparse boosting makes fewer errors."),
        Table("What the statements compare", ("test error", "features", "classes a stump"), ("data",), name="compared", digits=1,
              pairs=[("l12", "l1"), ("l1inf", "l1")], words=f"Differences on the same splits, {_INTERVALS}."),
        Dots("Stumps in use", "stumps", "model", panel="data", name="stumps-drawn"),
        Table("Stumps and features in use", tuple(_SIZES), ("data", "model"), name="sizes", digits=1,
              words="A stump is a feature with a threshold, counted once however often it was taken. Classes a stump: in how many classes' "
              "scores it has a weight, of the learners that may leave a class out."),
    ),
    subjects=tuple(LEARNERS),
    protocols={"data": tuple(SETS)},
    other_data="five data sets of our choice, as the appendix names none",
    labels={name: learner.title for name, learner in LEARNERS.items()} | {"test error": "test error, %"},
    titles={"data": "Data set", "model": "Learner"},
    uses=("group_boosting", "multiboost_group", "multiboost_l1", "smoothed_gradient", "accelerated_gradient"),
    data=files,
)  # fmt: skip
