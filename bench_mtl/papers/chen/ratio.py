"""Figure 4: scores against the share of the examples that is for training, on Scene."""

from __future__ import annotations

from functools import partial

from bench_mtl.papers.chen.about import about_protocol
from bench_mtl.papers.chen.curves import Condition, read_curves
from bench_mtl.papers.chen.learners import MODELS
from bench_mtl.papers.chen.protocol import LEARNER_CODE, TUNING_LIMITS, compute, files, grid
from bench_mtl.papers.experiment import Experiment, Scale

_ALL = tuple(MODELS)
_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)

EXPERIMENT = Experiment(
    name="chen-ratio",
    title="Scores against the training ratio",
    source="Chen, Liu, Ye, ACM TKDD 5(4), 2012, section 7.3 and figure 4",
    about=f"""\
The figure and the set of ratios are not in our copy of the paper; what the text says of the curves can be compared. The ratios here are
{", ".join(f"{share:g}" for share in _SHARES)}.

{about_protocol("the ratios below")}""",
    scales={
        "small": Scale(
            grid(("scene",), ("TraceNorm", "OneNorm", "IndSVM", "RidgeReg"), 1, (0.1, 0.5)),
            "four learners at two ratios, one repetition: half a minute.",
        ),
        "full": Scale(
            grid(("scene",), _ALL, 3, _SHARES),
            "all learners at five ratios, three repetitions of the two main protocols of fits: ten minutes on two cores.",
        ),
    },
    compute=compute,
    read=partial(read_curves, "ratio", Condition("Scores on Scene", "training ratio", lambda rows: rows["share"], 0.5, 0.7)),
    uses=LEARNER_CODE,
    data=files,
    limits=TUNING_LIMITS,
)
