"""Visual categories of Quattoni et al.'s technical report of 2008 (section 5.2): equal error rates by training size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from papers.experiment import CellSettings, Experiment, Scale
from papers.figures import Dots, Lines, Matrices
from papers.published import published
from papers.quattoni.annotation_models import MODELS, PROOF_STEPS, SEARCH_STEPS, STEP_SIZES, TARGET
from papers.quattoni.joint_models import PAIRS, by_radius, errors_by_word, pictures, shares_of_words
from papers.quattoni.report2008_cell import CERTIFIED, FINER, GRIDS, METHODS, PAPER, PUBLISHED, compute
from papers.quattoni.report2008_data import IMAGES, SETS, SVD, TOPICS, WORDS, sizes, spec
from papers.tables import Table
from papers.values import SEED, melted, per_model, tidy

#: Positive examples a topic, and those of the report's pictures of topics and of coefficients.
SIZES, SHOWN = (15, 30, 60, 120, 240), 30
#: Sizes and features of the models with more values of C.
_VARIED = ((SHOWN, SVD), (SHOWN, WORDS), (120, SVD))
_VARIED_SIZES = [str(size) for size in dict.fromkeys(size for size, _ in _VARIED)]
NAMES = {"l1inf": "l1,inf", PAPER: "200 steps, as in the report", CERTIFIED: "certified optimum"}
_CELL = ("method", "examples", "features", "grid")
_SETTINGS = (*_CELL, "model", "topic", "radius", "eta0")


def values(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what is measured of every model and topic; of all runs together for how many topics l1,inf has the lower EER."""
    models = per_model(rows, _CELL, MODELS, {"mean EER": "eer", "features in use": "share", "fill": "fill", "proven gap": "gap"})
    topics = errors_by_word(rows, _CELL, "topic")
    images = melted(
        rows.iloc[:1].drop(columns=[SEED, *_CELL]), (), {"features": "feature_count", "training images of the rarest topic": "rarest"}
    )
    samples = melted(rows, _CELL, {"samples": "samples", "topics with fewer": "short"})
    main = rows[(rows["features"] == SVD) & (rows["grid"] == PUBLISHED)]
    chosen = by_radius(main, _CELL, GRIDS[PUBLISHED], "EER, C =", "eer_by_radius")
    gaps = rows.groupby(list(_CELL), sort=False)[[f"{model}_gap" for model in MODELS]].max().reset_index()
    largest = per_model(gaps, _CELL, MODELS, {"largest gap": "gap"})
    return tidy([models, topics, shares_of_words(topics, _CELL, "topic"), images, samples, chosen, largest, *_steps(main)], _SETTINGS)


def _steps(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield whether the training objective chose a step size, of all."""
    rows = rows[rows["method"] == PAPER]
    for step in STEP_SIZES if len(rows) else ():
        is_chosen = {f"{model}_chosen": rows[f"{model}_eta0"] == step for model in MODELS}
        yield per_model(rows.assign(eta0=step, **is_chosen), (*_CELL, "eta0"), MODELS, {"eta0 chosen": "chosen"})


def _grid(examples: Sequence[int], seeds: int) -> tuple[CellSettings, ...]:
    """Return the cells of all sizes and both methods, and those of the variants, run by run."""
    compared = [(method, n, SVD, PUBLISHED) for n in examples for method in METHODS]
    varied = [(CERTIFIED, n, features, FINER) for n, features in _VARIED if n in examples]
    return tuple(
        {"method": method, "examples": n, "features": features, "grid": grid, "seed": seed}
        for seed in range(seeds)
        for method, n, features, grid in (*compared, *varied)
    )


_SIZES = ", ".join(f"{size:,}" for size in sizes(IMAGES).values())
_SENSITIVITY = f"""\
Two choices varied, each model at its proven optimum: {len(GRIDS[FINER])} values of C from {GRIDS[FINER][0]:g} to {GRIDS[FINER][-1]:g} in
the place of the report's three, and then also the visual words themselves in the place of their coordinates in the basis. More values of C
cover the scale of the features too, which the report does not give: features s times as large in a ball of radius C are the same as these
in one of radius s C. With C of {GRIDS[FINER][0]:g} and less no score of an image reaches 1, so that another C changes nothing but the scale
of the scores. For l2, whose norm no rotation changes, the visual words give the same model: what its EER differs by is what two fits of one
model differ by. Models whose balls are too large to bind are one and the same, and differ by 0."""
_CHOICES = """\
The share of the runs in which the EER of the validation topics chose each C; the mean EER of the judged topics on the test images that
every C gives (which nobody chose by); and the largest relative gap that is proven of a chosen model. A gap of 1 says that the optimum is
close to 0: all training images can be classified rightly, many models do so, and the EER is that of the one that was reached."""
_INTERVALS = "Means over the runs ± half of the 95 % interval."

EXPERIMENT = Experiment(
    name="quattoni-report",
    title="Visual categories: equal error rates by training size",
    source="Quattoni, Carreras, Collins, Darrell, technical report of 2008, section 5.2, figures 3 and 4",
    about=f"""\
The report's images (25,589 of a news site, with stories as topics) could not be had; in place: the {IMAGES:,} images of Corel16k, described
by which of 500 visual words they show, with the {TOPICS} labels most frequent in the training set as topics. So numbers cannot be
reproduced, only statements. (In such a training set of Corel5k fewer than 20 labels have the 80 images that the report asks of a topic.)

As in the report:

- The images are partitioned into four sets: {SETS["basis"]:,} without labels, for the basis of the features, {SETS["validation"]:,} for
  validation, {SETS["training"]:,} for training, {SETS["test"]:,} for the test; here in the same shares, {_SIZES}.
- Features are the coordinates X V of the visual words in the right singular vectors V of the images without labels, as many as their rank.
- For each topic n positive and 2n negative training images, n of {", ".join(map(str, SIZES))}, drawn at random, ten times.
- Hinge loss, the mean over the examples of a topic, summed over the topics; joint l1,inf, independent l1 and independent l2 balls of
  radius C; linear classifiers without an intercept.
- C of {", ".join(f"{radius:g}" for radius in GRIDS[PUBLISHED])}, one for all topics, by the mean equal error rate (EER) of ten validation
  topics on the validation images. The other 30 are judged, by their mean EER on the test images.
- 200 projected subgradient steps of eta0 / sqrt(t), eta0 by the training objective.

Chosen where the report does not say:

- EER is the point of the ROC curve, with straight lines between its points, where the false positive rate is the false negative rate.
- The partition is drawn once. The validation topics are every fourth by frequency; all 40 are learned jointly. C is chosen anew in every
  run, and for every model.
- A topic with fewer than n positive training images gives all of them, and twice as many negatives (the report has topics of 80). A larger
  training set has the smaller one in it.
- The features are not scaled: the report names no scaling. Other scales of C are in the section on sensitivity.
- eta0 of {", ".join(f"{step:g}" for step in STEP_SIZES)}; of the 200 points the one with the best training objective is used.
- Beside the report's procedure are the same models at a proven relative gap of {TARGET:g} (`certified`), by pdhg: {SEARCH_STEPS:,} steps
  for every C, up to {PROOF_STEPS:,} for the chosen one; such a cell counts as verified where the chosen models are proven. A cell of the
  report's procedure ends after its steps, and counts as inaccurate.""",
    scales={
        "small": Scale(_grid((15, 30), 2), "two of the five sizes, 2 of the ten runs: a minute."),
        "full": Scale(
            _grid(SIZES, 10), "all five sizes, ten runs, more values of C at two sizes and no SVD at one: 20 to 45 minutes on two cores."
        ),
    },
    compute=compute,
    values=values,
    claims=published("quattoni2008_report"),
    sections=(
        Table("Mean equal error rate", ("mean EER",), ("method", "examples"), ("model",), name="eer",
              words=f"The mean over the judged topics of the EER on the test images; guessing has 0.5. {_INTERVALS}"),
        Lines("Mean equal error rate by training size", ("mean EER",), "examples", "model", "method", name="curves"),
        Table("Paired differences", ("mean EER",), ("method", "examples"), pairs=PAIRS, name="differences",
              words=f"Run by run on the same training sets; below 0 the first model is the better one. {_INTERVALS}"),
        Dots("Equal error rate of each judged topic", "EER of a topic", "topic", "model", "method", name="topics",
             at={"examples": str(SHOWN)},
             words=f"{SHOWN} positive examples a topic. The report's figure 3, right, shows its stories like this."),
        Table("How features are shared", ("features in use", "fill", "proven gap"), ("method", "examples", "model"), name="sharing",
              words=f"The share of the features that any topic uses; the mean share of the topics that use such a feature. {_INTERVALS}",
              digits=3),
        Table("C and proofs", ("chosen", "EER, C =", "largest gap"), ("method", "examples", "model"), ("radius",), name="choices",
              words=_CHOICES, spread="none"),
        Table("Step sizes", ("eta0 chosen",), ("examples", "model"), ("eta0",), name="step_sizes", at={"method": PAPER}, digits=1,
              spread="none", words="The share of the runs in which the training objective chose each eta0."),
        Table("What 200 steps cost", ("mean EER",), ("examples", "model"), pairs=((f"method={PAPER}", f"method={CERTIFIED}"),),
              name="steps", words=f"Mean EER after the report's steps minus that at the optimum of the same model. {_INTERVALS}"),
        Table("Sensitivity to C and to the basis", ("mean EER",), ("examples", "features", "grid"), ("model",), name="sensitivity",
              at={"method": CERTIFIED, "examples": _VARIED_SIZES}, words=_SENSITIVITY),
        Table("Sensitivity: paired differences", ("mean EER",), ("examples", "features", "grid"), pairs=PAIRS, name="sensitivity_pairs",
              at={"method": CERTIFIED, "examples": _VARIED_SIZES}),
        Matrices(f"Coefficients, {SHOWN} positive examples", pictures, name="pictures", axes=("features", "topics"),
                 words="Sizes of the coefficients after 200 steps, first run, with the C chosen: the leading directions above, the most "
                 "frequent topics on the left, the darker the larger (by the root of the size). As in the report's figure 4."),
        Table("Training sets", ("samples", "topics with fewer"), ("examples",), name="samples", at={"method": CERTIFIED}, digits=0,
              spread="none", words="Samples of all topics together, and topics that have fewer positive training images than asked for."),
    ),
    subjects=MODELS,
    each=("method",),
    main={"features": SVD, "grid": PUBLISHED},
    other_data="13,766 images of Corel16k with its labels as topics",
    labels=NAMES,
    titles={"examples": "Positive examples", "grid": "Values of C", "radius": "C"},
    uses=("l1inf_hinge", "ball_hinge", "projected_subgradient", "pdhg"),
    data=lambda settings: (spec(),),
)  # fmt: skip
