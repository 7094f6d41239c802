"""Tables VII and VIII: five learners on documents in the place of images of gene expression."""

from __future__ import annotations

from papers.chen.protocol import grid
from papers.chen.scores import table_experiment
from papers.chen.sets import STAGES
from papers.experiment import Scale

_STAND_INS = {
    f"{stages}, {labels} terms": f"bibtex, {count} x {labels}" for labels, sizes in STAGES.items() for stages, count in sizes.items()
}
_LEARNERS = ("MixedNorm", "OneNorm", "TraceNorm", "IndSVM", "RidgeReg")

EXPERIMENT = table_experiment(
    "chen-table7",
    "Five learners on about 2000 features and 10 or 20 labels",
    "section 7.6 and tables VII and VIII",
    "chen2012_table7_8",
    {
        "small": Scale(grid(("bibtex, 925 x 10",), _LEARNERS, 1), "one of the ten subsets, one repetition: half a minute."),
        "full": Scale(
            grid(tuple(_STAND_INS.values()), _LEARNERS, 5, others=2),
            "all ten subsets, five repetitions of the two main protocols of fits, two of the others: twenty minutes on two cores.",
        ),
    },
    about="""\
The paper annotates images of gene expression, as bags of 2000 visual words, with 10 or 20 terms; these data could not be had. In their
place are documents of bibtex, bags of 1836 words, with its 10 or its 20 most frequent labels (also documents that have none of them): for
every subset of the paper as many, each drawn at random by itself for each repetition.""",
    stand_ins=_STAND_INS,
    subjects=_LEARNERS,
)
