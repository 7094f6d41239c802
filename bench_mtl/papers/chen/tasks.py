"""Figure 5: scores against the number of labels, on data in the place of MediaMill."""

from __future__ import annotations

from functools import partial

from bench_mtl.papers.chen.about import about_protocol
from bench_mtl.papers.chen.curves import Condition, read_curves
from bench_mtl.papers.chen.learners import MODELS
from bench_mtl.papers.chen.protocol import CELLS_OF, LEARNER_CODE, TUNING_LIMITS, compute, files, grid
from bench_mtl.papers.chen.sets import SETS
from bench_mtl.papers.experiment import Experiment, Scale

_NUMBERS = (20, 40, 60, 80, 100)
_SETS = tuple(f"sun09, {labels} labels" for labels in _NUMBERS)

EXPERIMENT = Experiment(
    name="chen-tasks",
    title="Scores against the number of labels",
    source="Chen, Liu, Ye, ACM TKDD 5(4), 2012, section 7.3 and figure 5",
    about=f"""\
The figure is not in our copy of the paper, and MediaMill could not be had; 8000 examples of SUN 09 (111 features, scores of object
detectors in an image) are in its place, with its {", ".join(map(str, _NUMBERS[:-1]))} and {_NUMBERS[-1]} most frequent labels. What
the text says of the curves can be compared, on other data.

{about_protocol()}""",
    scales={
        "small": Scale(
            grid(_SETS[:1], ("TraceNorm", "OneNorm", "IndSVM", "RidgeReg"), 1),
            "four learners with 20 labels, one repetition: half a minute.",
        ),
        "full": Scale(
            grid(_SETS, tuple(MODELS), 2),
            "all learners at five numbers of labels, two repetitions (the paper has five) of the two main protocols of fits: "
            "twenty minutes on two cores, half of it for 80 and 100 labels, which table III has too.",
        ),
    },
    compute=compute,
    read=partial(
        read_curves,
        "tasks",
        Condition("Scores on SUN 09", "labels", lambda rows: rows["data"].map(lambda name: SETS[name].labels), on_other_data=True),
    ),
    uses=LEARNER_CODE,
    data=files,
    limits=TUNING_LIMITS,
    cells_of=CELLS_OF,
)
