"""The slides' online comparison: projected gradient steps in an l1 ball against exponentiated gradient, and the regret of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from papers.experiment import CellSettings, Experiment, Scale
from papers.figures import Lines
from papers.published import published
from papers.singer.curves import AT_END, EARLY, ETA0, HINDSIGHT, MEAN_LOSS, NOT_ZERO, REGRET, SHARE, SLOPE, USED, so_far
from papers.singer.curves import values as of_passes
from papers.singer.online_cell import EG, ETAS, FIXED, LANDMINE, PROJECTED, STREAMS, TASK_STREAMS, compute
from papers.tables import Table
from papers.values import NONE, SEED, melted, tidy

RADII, ROUNDS, RULES, JOINT = (30.0, 300.0), 6000, (HINDSIGHT, EARLY), "joint"
#: Of the ball of each set of tasks.
TASK_RADII: Mapping[str, float] = {"tasks": 20.0, "landmine": 3.0}
RCV1 = "RCV1"
NAMES = {"rcv1sub1": RCV1, "rcv1sub2": "RCV1, second sample", "ng20": "newsgroups", "ohsumed": "Ohsumed", "stream": "synthetic documents"}
TASK_NAMES = {name: f"{words}, radius {TASK_RADII[name]:g}" for name, words in (("tasks", "synthetic tasks"), ("landmine", "landmines"))}
DENSITY = "non-zeros of an example, per cent"
_SETTINGS, _BOTH = ("data", "radius", "method", "rule", "T"), {"method": (PROJECTED, EG)}


def values(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what passes give by stream, radius, method and rule; joint learning is a method of its own, its radius part of the stream."""
    is_joint = rows["stream"].isin(TASK_STREAMS)
    density = rows[rows["method"] == PROJECTED].assign(data=rows["stream"].map(NAMES)).drop_duplicates(["data", SEED])
    named = rows.assign(
        data=rows["stream"].map(NAMES | TASK_NAMES),
        radius=rows["radius"].astype(object).mask(is_joint, NONE),
        method=rows["method"].mask(is_joint & (rows["method"] == PROJECTED), JOINT),
    )
    parts = [of_passes(named, _SETTINGS[:2], RULES), melted(density.dropna(subset="data"), ("data",), {DENSITY: "density"}, 100.0)]
    return tidy(parts, _SETTINGS)


def _grid(streams: Sequence[str], radii: Sequence[float], tasks: Sequence[str], seeds: int) -> tuple[CellSettings, ...]:
    one = [(stream, radius, method) for stream in streams for radius in radii for method in (PROJECTED, EG, FIXED)]
    many = [(stream, TASK_RADII[stream], method) for stream in tasks for method in (PROJECTED, FIXED)]
    return tuple(
        {"stream": stream, "radius": radius, "method": method, "seed": seed, "rounds": ROUNDS}
        for seed in range(seeds)
        for stream, radius, method in (*one, *many)
    )


def _data(settings: CellSettings) -> Sequence[Mapping[str, Any]]:
    stream = settings["stream"]
    spec = LANDMINE if stream == "landmine" else STREAMS.get(stream, {"name": "synthetic"})
    return () if str(spec["name"]).startswith("synthetic") else (spec,)


_CURVES = "Means over the repetitions in bands of their intervals; eta0 by hindsight."
_curves = partial(Lines, x="T", hue="method", panel="data", dash="radius", at=_BOTH, ticks=False, words=_CURVES)

EXPERIMENT = Experiment(
    name="singer-online",
    title="Online learning in an l1 ball: projection against exponentiated gradient",
    source='Singer\'s slides, MMDS 2008, "L1 Proj. vs. EG on RCV1"; the technical report on l1,inf projections of 2008, last section',
    about=f"""\
One pass over a stream of examples, each predicted before its step; logistic loss of one label, the most frequent one, rows of length 1.
Projection: w <- P(w - eta_t g_t) onto ||w||_1 <= z (`sparse_online`). EG: EG+- of Kivinen and Warmuth, weights times exp(-+ eta_t z g_t)
on the simplex of mass z (`exponentiated_gradient`), so the same ball. Both have eta_t = eta0 / sqrt(t), eta0 from one grid, {ETAS[0]:g}
to {ETAS[-1]:g} by factors of 2, by one rule: the smallest loss on the whole stream (hindsight) or on its first eighth (early). Streams:
two samples of 6000 documents of RCV1 (words, 47236 features) in the place of the slides' 804,414 with bigrams, newsgroups, Ohsumed, and
synthetic documents of 100,000 features; {ROUNDS} rounds each, in a random order (another one each repetition). Radii are choices of ours:
the slides name none. Joint learning: one example at a time, of each task in turn, hinge loss, projection onto an l1,inf ball
(`stochastic_subgradient`): 60 synthetic tasks as in Quattoni et al., and 29 fields of landmines.""",
    scales={
        "small": Scale(_grid(("stream",), (300.0,), ("tasks",), 1), "synthetic data, one radius, one repetition: a minute."),
        "full": Scale(_grid(tuple(NAMES), RADII, TASK_STREAMS, 5), "all streams, two radii, 5 repetitions: ten minutes on two cores."),
    },
    compute=compute,
    values=values,
    claims=published("singer2008_online"),
    sections=(
        Table("Mean loss of a round", (MEAN_LOSS,), ("data", "radius", "rule"), ("method",), name="losses", at=_BOTH),
        Table("Mean loss, paired differences", (MEAN_LOSS,), ("data", "radius", "rule"), pairs=((EG, PROJECTED),), name="differences",
              words="On the same order of examples; below 0 EG has the smaller loss. Means ± half of the 95 % interval."),
        Table("Features in use", (NOT_ZERO, USED), ("data", "radius"), ("method",), name="features", at=_BOTH, digits=0, spread="none",
              words="At the end of the stream, means over the repetitions, eta0 by hindsight: weights that are not 0, and those above a "
              "millionth of the largest. EG moves the weight of every feature that it has seen, so that none of these is 0 again; most of "
              "them are negligible where its steps are large."),
        Table("Regret", (REGRET, SLOPE, SHARE), ("data", "radius", "method"), name="regret", digits=2, words="""\
The sum of the losses of the whole stream minus that of the best fixed point in the ball, which is solved to a proven gap; the slope of log
regret against log T over the last three doublings of T, for each repetition; eta0 by hindsight. A bound that grows as sqrt(T) allows a
slope of 0.5 in the end, and more for a while, where regret is far below it: the share is the largest that a regret is, at any checkpoint
of any repetition, of Zinkevich's bound D^2 sqrt(T) / (2 eta0) + G^2 sum_t eta_t / 2 for the same eta0, with the ball's diameter D and the
longest example G."""),
        Table("Steps", (ETA0, AT_END), ("data", "radius", "rule"), ("method",), name="steps", digits=1, spread="none",
              words="Means over the repetitions; beyond an end of the grid a better eta0 may lie."),
        _curves("Mean loss of the rounds so far", (so_far(MEAN_LOSS),), name="loss-curves"),
        _curves("Features with a weight that is not 0", (so_far(NOT_ZERO),), name="feature-curves", log="xy"),
        _curves("Regret in the l1 ball", (so_far(REGRET),), name="regret-curves", log="xy"),
        _curves("Regret of joint learning in an l1,inf ball", (so_far(REGRET),), name="regret-curves-joint", log="xy", dash="",
                at={"method": JOINT}),
    ),
    subject="method",
    subjects=(PROJECTED, EG, JOINT),
    protocols={"rule": RULES, "radius": [f"{radius:g}" for radius in RADII]},
    stand_ins={RCV1: "two samples of 6000 documents, in single words"},
    labels={PROJECTED: "projection", EG: "EG", JOINT: "joint projection", **{f"{radius:g}": f"radius {radius:g}" for radius in RADII}},
    titles={"T": "Rounds", "data": "Stream", "rule": "Rule for eta0"},
    uses=("l1_ball_glm", "l1inf_hinge", "sparse_online", "exponentiated_gradient", "stochastic_subgradient", "l1_working_set", "pdhg"),
    data=_data,
)  # fmt: skip
