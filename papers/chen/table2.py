"""Table II: eight learners on Scene, Yeast and References."""

from __future__ import annotations

from papers.chen.learners import MODELS
from papers.chen.protocol import grid
from papers.chen.scores import table_experiment
from papers.experiment import Scale

_ALL = tuple(MODELS)

EXPERIMENT = table_experiment(
    "chen-table2",
    "Eight learners on Scene, Yeast and References",
    "section 7.2 and table II",
    "chen2012_table2",
    {
        "small": Scale(
            grid(("yeast",), _ALL, 1) + grid(("scene",), ("MixedNorm", "TraceNorm", "OneNorm", "RidgeReg"), 1),
            "all learners on Yeast and four of them on Scene, one repetition of the two main protocols of fits: two minutes.",
        ),
        "full": Scale(
            grid(("scene", "yeast"), _ALL, 5, others=3) + grid(("references",), _ALL, 2),
            "all learners; Scene and Yeast five times with the two main protocols of fits and three times with the others, References "
            "twice with the main ones (the paper has five): under half an hour on two cores.",
        ),
    },
)
