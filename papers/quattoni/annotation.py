"""Image annotation of Quattoni et al. (ICML 2009, section 6, and the report of 2008): joint and independent models of 40 words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from papers.experiment import CellSettings, Experiment, Scale, grid
from papers.figures import Dots, Lines, Matrices
from papers.published import published
from papers.quattoni.annotation_data import WORDS, spec
from papers.quattoni.annotation_models import MODELS, PROOF_STEPS, RADII, RIVALS, SEARCH_STEPS, STEPS, TARGET, compute
from papers.quattoni.joint_models import PAIRS, by_radius, errors_by_word, pictures, shares_of_words
from papers.tables import Table
from papers.values import SEED, melted, per_model, tidy

#: Positive examples a word: the paper's, and before them that of the pictures in the report of 2008.
SIZES = (30, 40, 80, 160, 320, 640)
#: Positive examples a word of the models over a finer grid of C, and how fine it is; the paper says neither.
PATH_SIZE, PATH_POINTS = 80, 13
#: Two AUC no further apart are taken for the same performance, in figure 4. Shares of the features at which it is looked at.
ALIKE, SHARES = 0.005, (0.1, 0.3, 0.5, 0.7, 0.95)

DATA = {"corel5k": "Corel5k", "corel16k001": "Corel16k"}
COMPARED, PATH, CONVERGENCE = "models", "path", "convergence"
SPARSE = ("l1inf", "l1")
_CELL = ("data", "examples")
_SETTINGS = (*_CELL, "model", "rival", "word", "radius", "share", "step", "curve")


def values(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what is measured of the models that are compared, along the paths of C, and along the steps."""
    readers = {COMPARED: _compared, PATH: _paths, CONVERGENCE: _convergence}
    parts = {name: part.dropna(axis=1, how="all") for name, part in rows.groupby("part")}
    return tidy((each for name, part in parts.items() for each in readers[str(name)](part)), _SETTINGS)


def _compared(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    measures = {"AUC": "auc", "mean EER": "eer", "features in use": "share", "fill": "fill", "proven gap": "gap"}
    yield per_model(rows, _CELL, MODELS, {**measures, "gap of another C": "rejected_gap"})
    yield melted(rows, _CELL, {"samples": "samples", "words with fewer": "short"})
    several = rows[rows.groupby(list(_CELL))[SEED].transform("nunique") > 1]  # one repetition decides nothing
    most = several.groupby(list(_CELL), sort=False)["l1inf_share"].max().reset_index()
    yield melted(most, _CELL, {"most features in use": "l1inf_share"}).assign(model="l1inf")
    errors = errors_by_word(rows.rename(columns={"l1inf_words": "words"}), _CELL, "word")  # the same of all models
    yield from (errors, shares_of_words(errors, _CELL, "word"))
    for rival in RIVALS:
        tests = rows.groupby(list(_CELL), sort=False)[f"{rival}_p"].agg(["median", "min", "max"]).reset_index()
        of_all = melted(tests, _CELL, {"median p-value": "median", "smallest p-value": "min", "largest p-value": "max"})
        each = melted(rows, _CELL, {what: f"{rival}_{what}" for what in ("wins", "losses")})
        yield from (part.assign(model="l1inf", rival=rival) for part in (of_all, each))
    yield by_radius(rows, _CELL, RADII, "AUC of a C", "aucs")


def _paths(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    best = [int(np.argmax(aucs)) for aucs in rows["validation_aucs"]]
    chosen = {name: [each[at] for each, at in zip(rows[column], best, strict=True)] for name, column in (("auc", "aucs"), ("C", "radii"))}
    measures = {"best AUC": "best", "AUC, C by validation": "auc", "C by validation": "C", "features for the same AUC": "needed"}
    yield melted(rows.assign(**chosen, best=rows["aucs"].map(max), needed=needed_shares(rows)), ("data", "model"), measures)
    for share in SHARES:
        at = [auc_at(share, *path) for path in zip(rows["shares"], rows["aucs"], strict=True)]
        yield melted(rows.assign(share=share, auc=at), ("data", "model", "share"), {"AUC by features in use": "auc"})


def needed_shares(rows: pd.DataFrame) -> list[float]:
    """Return the smallest share of features with which a sparse model is within `ALIKE` of the lower of both such models' best AUC."""
    sparse = rows[rows["model"].isin(SPARSE)]
    lowest = sparse["aucs"].map(max).groupby([sparse["data"], sparse[SEED]]).transform("min").reindex(rows.index) - ALIKE
    return [
        min((share for share, auc in zip(shares, aucs, strict=True) if auc >= level), default=math.nan)
        for shares, aucs, level in zip(rows["shares"], rows["aucs"], lowest, strict=True)
    ]


def auc_at(share: float, shares: Sequence[float], aucs: Sequence[float]) -> float:
    """Return the AUC at a share of the features, on the straight line between neighbouring shares; NaN outside of them."""
    order = np.argsort(shares, kind="stable")
    return float(np.interp(share, np.asarray(shares)[order], np.asarray(aucs)[order], left=math.nan, right=math.nan))


def _convergence(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    rows = rows.assign(last=[each[-1] for each in rows["objectives"]])
    measures = {"after 200 steps": "last", "optimum": "optimum", "proven bound": "bound", "above the optimum": "above", "best eta0": "eta0"}
    yield melted(rows.assign(above=rows["last"] - rows["optimum"]), ("data", "radius"), measures)
    each = rows.explode(["steps", "objectives"], ignore_index=True).rename(columns={"steps": "step"})
    for curve, column in (("best point so far", "objectives"), ("optimum", "optimum")):
        yield melted(each.assign(curve=curve), ("data", "radius", "step", "curve"), {"objective": column})


def _grid(names: Sequence[str], sizes: Sequence[int], seeds: int, path_seeds: int, radii: Sequence[float]) -> tuple[CellSettings, ...]:
    """Return the convergence for these C, the finer grids of C, and the cells that compare."""
    curves = grid(1, part=(CONVERGENCE,), data=names, examples=SIZES[-1:], radius=radii)
    paths = grid(path_seeds, part=(PATH,), data=names, examples=(PATH_SIZE,), model=MODELS, points=(PATH_POINTS,))
    return (*curves, *paths, *grid(seeds, part=(COMPARED,), data=names, examples=sizes))


_TESTS = """\
Pairs of a positive and a negative test image of a judged word that one model ranks rightly and the other wrongly, pooled over the words;
one-sided, as the paper's hypothesis is: a small p-value says that l1,inf has the higher AUC. Words share their test images, so that pairs
are not independent and p-values too small: the paper's too. Median, smallest and largest of the repetitions."""
_C = """\
The share of the repetitions in which the validation words chose each C, and the AUC of the judged words that it gives, by which nobody
chose. Where all training images can be classified rightly the optimum is 0 and not one point alone: the AUC is that of the one reached."""
_PATHS = f"""\
{PATH_POINTS} values of C from {RADII[0]:g} to {RADII[-1]:g}, {PATH_SIZE} positive examples; a feature is in use where any word uses it.
Between the neighbouring C of a repetition the AUC is taken on a straight line."""
_PICTURES = """\
Sizes of the coefficients, first repetition, with the C chosen: the leading directions above, the most frequent words on the left, the
darker the larger (by the root of the size)."""
_FINER = ("features for the same AUC", "AUC, C by validation", "C by validation", "best AUC")

EXPERIMENT = Experiment(
    name="quattoni-annotation",
    title="Image annotation: joint against independent regularisation",
    source="Quattoni, Carreras, Collins, Darrell, ICML 2009, section 6; the same group's technical report of 2008, section 5.2",
    about=f"""\
The papers' images (Reuters) could not be had; in place: Corel5k and Corel16k, of 499 and 500 visual words, with the {WORDS} words
most frequent in the training part as tasks (Corel5k without its last feature, an artefact). So no number can be reproduced.

As in the paper: for each word n positive and 2n negative training images, drawn at random; hinge loss; joint l1,inf, independent l1 and
independent l2 models, no intercept; C of 0.1, 1, 10, 100, one for all words, chosen by the AUC of ten validation words; the other 30 are
judged, by the multi-task AUC, the equal error rate and the sign test.

Chosen where the papers do not say:

- A word with fewer than n positive training images gives all of them, and twice as many negatives (the paper's 63,408 samples instead of
  76,800 are a multiple of 3 too). A larger set has the smaller one in it; a rarer word's positives are all used from some size on, and
  then are the same in all repetitions.
- Validation images are a tenth of the training part, drawn once; the validation words are every fourth by frequency.
- Features are the scores U S in the basis of all right singular vectors of the training images (uncentred): the report of 2008 projects,
  and so does not whiten. Every image is scaled to length 1 before, and all features together to a mean square of 1 over the training
  images, which no test image has a say in: a coefficient of 1 moves a margin by about 1. (With images of length 1 the hinges are linear for
  C of 1 and less, and nothing but the largest mean differences are seen.)
- A word's loss is the mean over its examples, as in section 5. Section 6 says sum; with equally many examples both are one model.
- The l2 models are balls ||w_k|| <= C, not SVM-Light's penalties, so that one grid of C serves all three.
- All are solved to a proven relative gap of {TARGET:g} by pdhg, not by {STEPS} subgradient steps; what these reach is in the section on
  convergence. Every C has {SEARCH_STEPS} steps, the chosen one up to {PROOF_STEPS}, and a cell counts as verified where the chosen models
  are proven.
- The models over a finer grid of C (figure 4) have n = {PATH_SIZE}; it also shows what the four values of C cost each model.
- n = 30 is the report's. Its own protocol, with its sizes and its C of 1, 10 and 100 chosen by EER, is `quattoni-report`.""",
    scales={
        "small": Scale(
            _grid(("corel5k",), (30, 80), 2, 1, (1.0, 10.0)), "Corel5k alone, two sizes, 2 repetitions; convergence for two C: two minutes."
        ),
        "full": Scale(
            _grid(tuple(DATA), SIZES, 3, 2, RADII),
            "both collections, all sizes, 3 repetitions (2 on the finer grid of C): about a quarter of an hour on two cores.",
        ),
    },
    compute=compute,
    values=values,
    claims=published("quattoni2009_annotation"),
    sections=(
        Lines("AUC by training size", ("AUC",), "examples", "model", "data", name="auc", words="The multi-task AUC of the judged words."),
        Lines("Equal error rate by training size", ("mean EER",), "examples", "model", "data", name="eer"),
        Table("AUC and equal error rate", ("AUC", "mean EER"), _CELL, ("model",), name="scores"),
        Table("Paired differences", ("AUC", "mean EER"), _CELL, pairs=PAIRS, name="differences"),
        Table("Training sets", ("samples", "words with fewer"), _CELL, name="samples", digits=0, spread="none",
              words="Samples of all words together, and words with fewer positive training images than asked for, of which all are taken."),
        Table("Sign tests of l1,inf", ("median p-value", "smallest p-value", "largest p-value"), (*_CELL, "rival"), name="sign_tests",
              digits=5, words=_TESTS),
        Table("Pairs that decide the sign tests", ("wins", "losses"), (*_CELL, "rival"), name="pairs", digits=0, spread="none"),
        *(
            Dots(f"Equal error rate of each word, {title}, 30 positive examples", "EER of a word", "word", "model", name=f"words-{name}",
                 at={"data": name, "examples": "30"})
            for name, title in DATA.items()
        ),
        Table("C", ("chosen", "AUC of a C"), (*_CELL, "model"), ("radius",), name="choices", digits=3, spread="none", words=_C),
        Table("How features are shared", ("features in use", "fill", "proven gap", "gap of another C"), (*_CELL, "model"), name="sharing",
              words="The share of the features that any word uses; the mean share of the words that use such a feature."),
        Lines("Convergence of the subgradient method, l1,inf", ("objective",), "step", "radius", "data", "curve", name="convergence",
              ticks=False, words=f"A line for each C, {SIZES[-1]} positive examples, the best eta0; dashed: the proven optimum."),
        Table("Convergence in digits", ("best eta0", "after 200 steps", "optimum", "proven bound", "above the optimum"), ("data", "radius"),
              name="steps"),
        Lines("AUC and features in use", ("AUC by features in use",), "share", "model", "data", name="features", words=_PATHS,
              at={"model": SPARSE}, log=""),
        Table("AUC and features in use, in digits", ("AUC by features in use",), ("data", "share"), ("model",), name="paths"),
        Table("The finer grid of C", _FINER, ("data", "model"), name="finer",
              words="Where the AUC is higher than that of the paper's four values of C, these are too few."),
        Matrices("Coefficients, 30 positive examples", pictures, name="pictures", axes=("features", "words"), words=_PICTURES),
    ),
    subjects=MODELS,
    each=("data",),
    other_data="Corel5k and Corel16k",
    labels={"l1inf": "l1,inf", **DATA},
    titles={"data": "Images", "examples": "Positive examples", "radius": "C", "share": "Features in use"},
    uses=("l1inf_hinge", "ball_hinge", "projected_subgradient", "pdhg"),
    data=lambda settings: (spec(settings["data"]),),
)  # fmt: skip
