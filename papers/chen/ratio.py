"""Figure 4: scores against the share of the examples that is for training, on Scene."""

from __future__ import annotations

from papers.chen.curves import curves
from papers.chen.learners import MODELS
from papers.chen.protocol import grid
from papers.chen.scores import table_experiment
from papers.experiment import Scale

SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)

EXPERIMENT = curves(
    table_experiment(
        "chen-ratio",
        "Scores against the training ratio",
        "section 7.3 and figure 4",
        "chen2012_figure4",
        {
            "small": Scale(
                grid(("scene",), ("TraceNorm", "OneNorm", "IndSVM", "RidgeReg"), 1, (0.1, 0.5)),
                "four learners at two ratios, one repetition: half a minute.",
            ),
            "full": Scale(
                grid(("scene",), tuple(MODELS), 3, SHARES),
                "all learners at five ratios, three repetitions of the two main protocols of fits: ten minutes on two cores.",
            ),
        },
        about=f"""\
The figure and the set of ratios are not in our copy of the paper; what the text says of the curves can be compared. The shares of the
examples that are for training are {", ".join(f"{share:g}" for share in SHARES)} here.""",
        ratio="these ratios",
    ),
    "training share",
    lambda row: row["share"],
)
