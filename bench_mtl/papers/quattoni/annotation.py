"""Image annotation of Quattoni et al. (ICML 2009, section 6, and the report of 2008): joint and independent models of 40 words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bench_mtl.papers.experiment import CellSettings, Experiment, Findings, Scale
from bench_mtl.papers.quattoni.annotation_data import WORDS, spec
from bench_mtl.papers.quattoni.annotation_models import MODELS, PROOF_STEPS, RADII, SEARCH_STEPS, STEPS, TARGET, compute
from bench_mtl.papers.quattoni.annotation_sections import sections
from bench_mtl.papers.quattoni.annotation_verdicts import ALIKE, COMPARED, CONVERGENCE, DATA, PATH, comparisons

if TYPE_CHECKING:
    import pandas as pd

#: Positive examples a word: the paper's, and before them that of the pictures in the report of 2008.
SIZES = (30, 40, 80, 160, 320, 640)
#: Positive examples a word of the models over a finer grid of C, and how fine it is; the paper says neither.
PATH_SIZE, PATH_POINTS = 80, 13


def read(rows: pd.DataFrame) -> Findings:
    """Return what the papers say against these rows, tables by training size, figures."""
    return Findings(tuple(replace(each, on_other_data=True) for each in comparisons(rows)), tuple(sections(rows)))


def _data(settings: CellSettings) -> Sequence[Mapping[str, Any]]:
    return (spec(settings["data"]),)


def _grid(names: Sequence[str], sizes: Sequence[int], seeds: int, path_seeds: int, radii: Sequence[float]) -> tuple[CellSettings, ...]:
    """Return the convergence for these C, the finer grids of C, and the comparing cells, repetition by repetition."""
    compared = [{"part": COMPARED, "data": name, "examples": n, "seed": seed} for seed in range(seeds) for n in sizes for name in names]
    paths = [
        {"part": PATH, "data": name, "examples": PATH_SIZE, "model": model, "points": PATH_POINTS, "seed": seed}
        for seed in range(path_seeds)
        for name in names
        for model in MODELS
    ]
    curves = [{"part": CONVERGENCE, "data": name, "examples": SIZES[-1], "radius": C, "seed": 0} for name in names for C in radii]
    return (*curves, *paths, *compared)


EXPERIMENT = Experiment(
    name="quattoni-annotation",
    title="Image annotation: joint against independent regularisation",
    source="Quattoni, Carreras, Collins, Darrell, ICML 2009, section 6; the same group's technical report of 2008, section 5.2",
    about=f"""\
The papers' images (Reuters) could not be had; in place: Corel5k and Corel16k, of 499 and 500 visual words, with the {WORDS} words
most frequent in the training part as tasks (Corel5k without its last feature, an artefact). So numbers cannot be reproduced, only
statements; the rule of each reading is in its row.

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
- The models over a finer grid of C (figure 4) have n = {PATH_SIZE}; two AUC within {ALIKE:g} count as the same. The finer grid also
  shows what the four values of C cost each model, l2 among them.
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
    read=read,
    uses=("l1inf_hinge", "ball_hinge", "projected_subgradient", "pdhg"),
    data=_data,
)
