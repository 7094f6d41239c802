"""The slides' online comparison: projected gradient steps in an l1 ball against exponentiated gradient, and the regret of both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bench_mtl.papers.experiment import CellSettings, Experiment, Findings, PublishedNumber, Scale, Section, Verdict
from bench_mtl.papers.published import published
from bench_mtl.papers.singer.curves import (
    EARLY,
    HINDSIGHT,
    judged_ratios,
    judged_slopes,
    judged_under,
    judged_within,
    long,
    ratio_text,
    relative,
)
from bench_mtl.papers.singer.online_cell import EG, ETAS, FIXED, LANDMINE, PROJECTED, STREAMS, TASK_STREAMS, compute
from bench_mtl.papers.summaries import CONFIDENCE, Mean, mean

if TYPE_CHECKING:
    import pandas as pd

RADII = (30.0, 300.0)
ROUNDS = 6000
RULES = (HINDSIGHT, EARLY)
NAMES = {"rcv1sub1": "RCV1, 1", "rcv1sub2": "RCV1, 2", "ng20": "newsgroups", "ohsumed": "Ohsumed", "stream": "synthetic documents"}
TASK_NAMES = {"tasks": "synthetic tasks", "landmine": "landmines"}
METHODS = {PROJECTED: "projection", EG: "EG"}
#: Of the ball of each set of tasks.
TASK_RADII: Mapping[str, float] = {"tasks": 20.0, "landmine": 3.0}


def _grid(streams: Sequence[str], radii: Sequence[float], tasks: Sequence[str], seeds: int, rounds: int) -> tuple[CellSettings, ...]:
    one = [(stream, radius, method) for stream in streams for radius in radii for method in (PROJECTED, EG, FIXED)]
    many = [(stream, TASK_RADII[stream], method) for stream in tasks for method in (PROJECTED, FIXED)]
    return tuple(
        {"stream": stream, "radius": radius, "method": method, "seed": seed, "rounds": rounds}
        for seed in range(seeds)
        for stream, radius, method in (*one, *many)
    )


def read(rows: pd.DataFrame) -> Findings:
    """Return what the slides say against these rows, tables of losses, features and regrets, and their curves."""
    found = long(rows, ["stream", "radius"], RULES)
    single, joint = (found[found["stream"].isin(list(names))] for names in (NAMES, TASK_NAMES))
    densities: dict[Any, Any] = rows[rows["density"].notna()].groupby("stream")["density"].mean().to_dict() if "density" in rows else {}
    comparisons = [_compared(row, single, joint, densities) for row in published("singer2008_online")]
    return Findings(tuple(comparisons), tuple(_sections(single, joint)))


# What the slides say.

_ABSENT = "the slide is a figure, and it is not in our copy of the document"
_OTHER = "our samples of RCV1 have single words, not bigrams"


def _compared(row: Mapping[str, str], single: pd.DataFrame, joint: pd.DataFrame, densities: Mapping[Any, float]) -> PublishedNumber:
    what = f"{row['statement']} ({row['where']})"
    kind, quantity = row["relation"], row["quantity"]
    if kind == "absent":
        ours = judged_ratios(_ratios(single, "loss", HINDSIGHT)).ours if quantity == "loss" else "see the features below"
        ours = f"EG's over projection's loss: {ours}" if quantity == "loss" else ours
        return PublishedNumber(what, "in the figure alone", ours, Verdict.UNKNOWN, _ABSENT, on_other_data=True)
    if kind == "number":
        value = densities.get("rcv1sub1")
        ours = "-" if value is None else f"{value:.2%}"
        verdict = Verdict.NOT_RUN if value is None else Verdict.UNKNOWN
        return PublishedNumber(what, "0.26%", ours, verdict, _OTHER, 0.0026, value, on_other_data=True)
    if kind == "not run":
        why = "times are those of the suite singer-rcv1 and of the benchmarks of the projections"
        return PublishedNumber(what, "linear, sub-linear", "-", Verdict.NOT_RUN, why)
    if kind == "fewer":
        judged = judged_under({rule: judged_ratios(_ratios(single, quantity, rule, inverse=True), "fewer") for rule in RULES})
        return PublishedNumber(what, "fewer than EG", *judged, on_other_data=True)
    frame = joint if kind.startswith("joint") else single
    own = frame[(frame["method"] == PROJECTED) & (frame["rule"] == HINDSIGHT)]
    if quantity == "slope":
        slopes = {place: mean(part["slope"].dropna().tolist()) for place, part in own.groupby(["stream", "radius"])}
        return PublishedNumber(what, "slope at most 0.5", *judged_slopes(slopes))
    return PublishedNumber(what, "within the bound", *judged_within(frame[frame["method"] == PROJECTED]))


def _ratios(single: pd.DataFrame, measure: str, rule: str, *, inverse: bool = False) -> dict[Any, Mean]:
    """Return EG over projection (or the inverse), as means of logarithms, by stream and radius."""
    own = single[single["rule"] == rule]
    pair = (PROJECTED, EG) if inverse else (EG, PROJECTED)
    return {place: relative(part, measure, *pair) for place, part in own.groupby(["stream", "radius"])}


# Tables and figures.


def _sections(single: pd.DataFrame, joint: pd.DataFrame) -> list[Section]:
    sections = []
    if len(single):
        sections += [_losses(single), _features(single), _regrets(single, NAMES, "Regret in the l1 ball", "regret")]
        for radius in sorted(single["radius"].unique()):
            own = single[(single["radius"] == radius) & (single["rule"] == HINDSIGHT)]
            sections += _figures(own, f"radius {radius:g}", f"{radius:g}")
    if len(joint):
        sections.append(_regrets(joint, TASK_NAMES, "Regret of joint learning in an l1,inf ball", "regret-joint"))
        own = joint[joint["rule"] == HINDSIGHT]
        sections.append(_figure(own, "regrets", "Regret of joint learning", "regret-curves-joint", TASK_NAMES))
    return sections


_ABOUT_LOSSES = f"""\
The mean loss of a round, means over the repetitions ± half of the {CONFIDENCE:.0%} interval, and EG's loss over the projection's (ratio of
geometric means, with its interval) where eta0 has the smallest loss on the whole stream (hindsight) and on its first eighth (early)."""


def _losses(single: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown = [], []
    for (stream, radius), part in _in_order(single, NAMES):
        T = part["rounds"].iloc[0][-1]
        best = part[part["rule"] == HINDSIGHT]
        means = {method: mean((best.loc[best["method"] == method, "loss"] / T).tolist()) for method in METHODS}
        ratios = {rule: relative(part[part["rule"] == rule], "loss", EG, PROJECTED) for rule in RULES}
        etas = {method: sorted(best.loc[best["method"] == method, "eta0"].unique().tolist()) for method in METHODS}
        table.append(
            {"stream": stream, "radius": radius}
            | {f"{method}_{name}": value for method, each in means.items() for name, value in (("loss", each.value), ("half", each.half))}
            | {f"log_ratio_{rule}_{name}": getattr(each, name) for rule, each in ratios.items() for name in Mean._fields}
        )
        shown.append(
            {"Stream": NAMES[stream], "Radius": f"{radius:g}"}
            | {METHODS[method].capitalize() if method == PROJECTED else METHODS[method]: each.text() for method, each in means.items()}
            | {f"Ratio, {rule}": ratio_text(each) for rule, each in ratios.items()}
            | {f"eta0, {METHODS[method]}": ", ".join(f"{eta:g}" for eta in values) for method, values in etas.items()}
        )
    ahead = _count(single, "loss")
    text = f"{ahead}\n{_ends(single)}{_ABOUT_LOSSES}"
    return Section("Cumulative loss", text, "losses", pd.DataFrame(table), pd.DataFrame(shown, dtype="str"))


def _count(single: pd.DataFrame, measure: str) -> str:
    """Return a sentence that says how often which method has the smaller loss."""
    found = []
    for rule in RULES:
        ratios = [each for each in _ratios(single, measure, rule).values() if each.repetitions]
        eg, projected = sum(each.value < -each.half for each in ratios), sum(each.value > each.half for each in ratios)
        found.append(f"by {rule} EG at {eg} of {len(ratios)}, the projection at {projected}")
    return f"**The smaller loss (streams and radii, by the intervals): {'; '.join(found)}.**"


def _ends(single: pd.DataFrame) -> str:
    """Return a sentence on choices at an end of the grid, where there are any."""
    at_end = single[single["at_end"].astype(bool)]
    if not len(at_end):
        return ""
    return f"{len(at_end)} of {len(single)} choices of eta0 are an end of the grid, beyond which a better one may lie.\n"


_ABOUT_FEATURES = """\
Features with a weight at the end of the stream, medians over the repetitions, eta0 by hindsight: weights that are not 0, and those above a
millionth of the largest; and features of the examples (the dimension). EG moves the weight of every feature that it has seen, so that none
of these is 0 again; most of them are negligible where its steps are large."""


def _features(single: pd.DataFrame) -> Section:
    import pandas as pd

    table = []
    for (stream, radius), part in _in_order(single, NAMES):
        best = part[part["rule"] == HINDSIGHT]
        counts = {(m, c): best.loc[best["method"] == m, c].median() for m in METHODS for c in ("non_zeros", "features")}
        table.append({"stream": stream, "radius": radius} | {f"{m}_{c}": value for (m, c), value in counts.items()})
    frame = pd.DataFrame(table)
    heads = {
        "projected_non_zeros": "Not 0, projection", "eg_non_zeros": "Not 0, EG",
        "projected_features": "Above 1e-6, projection", "eg_features": "Above 1e-6, EG",
    }  # fmt: skip
    shown = pd.DataFrame(
        [
            {"Stream": NAMES[row["stream"]], "Radius": f"{row['radius']:g}"}
            | {head: "-" if math.isnan(row[name]) else f"{row[name]:,.0f}" for name, head in heads.items()}
            for row in table
        ],
        dtype="str",
    )
    return Section("Features in use", _ABOUT_FEATURES, "features", frame, shown)


_ABOUT_REGRET = """\
Regret: the sum of the losses so far minus that of the best fixed point in the ball over the same rounds, which is solved to a proven gap.
Slope: of log regret against log T over the last three doublings of T, for each repetition; eta0 by hindsight. A bound that grows as
sqrt(T) allows a slope of 0.5 in the end, and more for a while, where regret is far below it: the share is the largest that a regret is of
Zinkevich's bound D^2 sqrt(T) / (2 eta0) + G^2 sum_t eta_t / 2 for the same eta0, with the ball's diameter D and the longest example G."""


def _regrets(found: pd.DataFrame, names: Mapping[str, str], title: str, name: str) -> Section:
    import pandas as pd

    table, shown = [], []
    for (stream, radius), part in _in_order(found, names):
        for method, label in METHODS.items():
            own = part[(part["rule"] == HINDSIGHT) & (part["method"] == method) & part["regrets"].notna()]
            if not len(own):
                continue
            T = own["rounds"].iloc[0][-1]
            end, slope = mean([regrets[-1] for regrets in own["regrets"]]), mean(own["slope"].dropna().tolist())
            share = own["bound_share"].max()
            table.append(
                {"stream": stream, "radius": radius, "method": method, "rounds": T, "regret": end.value, "regret_half": end.half,
                 "slope": slope.value, "slope_half": slope.half, "repetitions": slope.repetitions, "bound_share": share}
            )  # fmt: skip
            cells = [names[stream], f"{radius:g}", label, f"{T:,}"]
            shown.append([*cells, end.text(1), slope.text(2), "-" if math.isnan(share) else f"{share:.2g}"])
    heads = ["Stream", "Radius", "Method", "Rounds", "Regret at the end", "Slope", "Share of the bound"]
    return Section(title, _ABOUT_REGRET, name, pd.DataFrame(table), pd.DataFrame(shown, columns=heads, dtype="str"))


def _figures(own: pd.DataFrame, words: str, tag: str) -> list[Section]:
    pairs = zip(own["losses"], own["rounds"], strict=True)
    means: Any = [[loss / T for loss, T in zip(*pair, strict=True)] for pair in pairs]
    mean_losses = own.assign(means=means)
    return [
        _figure(mean_losses, "means", f"Mean loss of the rounds so far, {words}", f"loss-curves-{tag}", NAMES),
        _figure(own, "curve", f"Features with a weight that is not 0, {words}", f"feature-curves-{tag}", NAMES),
        _figure(own, "regrets", f"Regret, {words}", f"regret-curves-{tag}", NAMES),
    ]


def _figure(own: pd.DataFrame, measure: str, title: str, name: str, names: Mapping[str, str]) -> Section:
    from bench_mtl.papers.singer.figures import panels, unrolled

    frame = unrolled(own, measure)
    label = {"means": "loss", "curve": "features", "regrets": "regret"}[measure]
    text = "Means over the repetitions in bands of their intervals, both axes logarithmic; eta0 by hindsight."
    draw = partial(panels, title, frame, "stream", names, METHODS, label) if len(frame) else None
    return Section(title, text, name, frame[["stream", "radius", "method", "seed", "T", "value"]], None, draw)


def _in_order(found: pd.DataFrame, names: Mapping[str, str]) -> list[tuple[tuple[Any, ...], pd.DataFrame]]:
    groups = dict(list(found.groupby(["stream", "radius"], sort=True)))
    places: list[Any] = sorted(groups, key=lambda place: (list(names).index(str(place[0])), str(place[1])))
    return [(place, groups[place]) for place in places]


def _data(settings: CellSettings) -> Sequence[Mapping[str, Any]]:
    stream = settings["stream"]
    spec = LANDMINE if stream == "landmine" else STREAMS.get(stream, {"name": "synthetic"})
    return () if str(spec["name"]).startswith("synthetic") else (spec,)


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
        "small": Scale(_grid(("stream",), (300.0,), ("tasks",), 1, ROUNDS), "synthetic data, one radius, one repetition: a minute."),
        "full": Scale(
            _grid(tuple(NAMES), RADII, TASK_STREAMS, 5, ROUNDS), "all streams, two radii, 5 repetitions: ten minutes on two cores."
        ),
    },
    compute=compute,
    read=read,
    uses=("l1_ball_glm", "l1inf_hinge", "sparse_online", "exponentiated_gradient", "stochastic_subgradient", "face_newton", "pdhg"),
    data=_data,
)
