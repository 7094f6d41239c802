"""Tables, figures and the first sentences of `quattoni-report`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bench_mtl.papers.experiment import Section
from bench_mtl.papers.quattoni.annotation_figures import drawn_pictures, drawn_words, handles, looks_of, picture_of
from bench_mtl.papers.quattoni.annotation_models import MODELS, STEP_SIZES
from bench_mtl.papers.quattoni.annotation_verdicts import NAMES, by_word
from bench_mtl.papers.quattoni.report2008_cell import CERTIFIED, FINER, GRIDS, METHODS, PAPER, PUBLISHED
from bench_mtl.papers.quattoni.report2008_data import SVD, WORDS
from bench_mtl.papers.quattoni.report2008_verdicts import PAIRS, as_published, differences
from bench_mtl.papers.summaries import CONFIDENCE, Mean, mean, paired_difference

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Positive examples a topic of the report's pictures of topics and of coefficients.
SHOWN = 30
_INTERVALS = f"Means over the runs ± half of the {CONFIDENCE:.0%} t interval."
#: What varies in the table on sensitivity, by features and grid.
_VARIANTS: Mapping[tuple[str, str], str] = {
    (SVD, PUBLISHED): "as in the report",
    (SVD, FINER): "more values of C",
    (WORDS, FINER): "more values of C, no SVD",
}


def sections(models: pd.DataFrame, rows: pd.DataFrame) -> list[Section]:
    """Return all that has cells; `models` has a row for each model of each of the `rows`."""
    own = as_published(models)
    found = []
    if len(own):
        found += [_curves(own), _differences(own)]
        if (own["examples"] == SHOWN).any():
            found.append(_topics(own[own["examples"] == SHOWN]))
        found += [_choices(own), _cost(own)]
    if (models["features"] != SVD).any() or (models["grid"] != PUBLISHED).any():
        found.append(_sensitivity(models))
    if "l1inf_picture" in rows and rows["l1inf_picture"].notna().any():
        found.append(_pictures(rows[rows["l1inf_picture"].notna()].iloc[0].to_dict()))
    return found


# The first sentences.


def headline(models: pd.DataFrame) -> str:
    """Return what came out, an entry for each question that has rows."""
    own = as_published(models)
    said = [_said_of_sizes(own), *_said_of_orders(own), _said_of_topics(own), _said_of_sharing(own), _said_of_steps(own)]
    return "\n".join(f"- {line}" for line in (*said, _said_of_variants(models)) if line)


_HOW: Mapping[str, str] = {PAPER: "after the report's 200 steps", CERTIFIED: "at the proven optimum"}


def _said_of_sizes(own: pd.DataFrame) -> str:
    """Return the errors at the smallest and the largest size, by the report's procedure."""
    at = own[own["method"] == PAPER]
    if not len(at):
        return ""
    ends = sorted({min(_sizes(at)), max(_sizes(at))})
    parts = []
    for size in ends:
        means = at[at["examples"] == size].groupby("model")["eer"].mean()
        parts.append(f"{', '.join(f'{means[model]:.3f} ({NAMES[model]})' for model in MODELS)} with {size}")
    runs = at["seed"].nunique()
    return f"Mean EER of the judged topics {_HOW[PAPER]}, means of {runs} runs: {'; '.join(parts)} positive examples a topic."


def _said_of_orders(own: pd.DataFrame) -> Iterator[str]:
    for model, rival in PAIRS:
        parts = []
        for method in _methods(own):
            found = differences(own[own["method"] == method], "eer", model, rival, _sizes(own))
            parts.append(f"{_HOW[method]} {_signs(found)}")
        if parts:
            yield f"{NAMES[model]} against {NAMES[rival]}, mean EER by positive examples: {'; '.join(parts)}."


def _signs(found: Mapping[int, Mean]) -> str:
    """Return at which sizes a difference is below 0, above 0 and neither, by the intervals, and how large it is there."""
    known = {size: each for size, each in found.items() if each.repetitions}
    lower = [size for size, each in known.items() if each.value < -each.half]
    higher = [size for size, each in known.items() if each.value > each.half]
    open_ = [size for size in known if size not in (*lower, *higher)]
    parts = [("lower", lower), ("higher", higher)]
    said = [f"{word} at {_listed(sizes)} (by {_range([abs(known[size].value) for size in sizes])})" for word, sizes in parts if sizes]
    return ", ".join([*said, *([f"undecided at {_listed(open_)}"] if open_ else [])]) or "not run"


def _listed(sizes: Sequence[int]) -> str:
    return " and ".join(filter(None, [", ".join(map(str, sizes[:-1])), str(sizes[-1])]))


def _range(values: Sequence[float]) -> str:
    ends = dict.fromkeys(f"{value:.3f}" for value in (min(values), max(values)))
    return " to ".join(ends)


def _said_of_topics(own: pd.DataFrame) -> str:
    parts = []
    for method in _methods(own):
        words = by_word(own[own["method"] == method], SHOWN)
        if len(words):
            counts = [int((words["l1inf"] < words[rival]).sum()) for rival in ("l1", "l2")]
            parts.append(f"{_HOW[method]} for {counts[0]} and {counts[1]} of {len(words)} topics")
    return f"With {SHOWN} positive examples l1,inf has a lower EER than l1 and than l2 {'; '.join(parts)}." if parts else ""


def _said_of_sharing(own: pd.DataFrame) -> str:
    """Return how features are shared by the models of each method."""
    parts = []
    for method in _methods(own):
        at = own[(own["examples"] == SHOWN) & (own["method"] == method)]
        if len(at):
            means = at.groupby("model")[["share", "fill"]].mean()
            each = [f"{NAMES[model]} {means['share'][model]:.0%} and {means['fill'][model]:.0%}" for model in ("l1inf", "l1")]
            parts.append(f"{_HOW[method]} {', '.join(each)}")
    what = f"Share of the features in use, and of the topics that use one of them, {SHOWN} positive examples"
    return f"{what}: {'; '.join(parts)}." if parts else ""


def _said_of_steps(own: pd.DataFrame) -> str:
    found = {(size, model): _of_steps(own, size, model) for size in _sizes(own) for model in MODELS}
    known = {place: each for place, each in found.items() if each.repetitions}
    if not known:
        return ""
    lower = sum(each.value < -each.half for each in known.values())
    higher = sum(each.value > each.half for each in known.values())
    (size, model), most = max(known.items(), key=lambda pair: abs(pair[1].value))
    counts = f"lower in {lower} of {len(known)} cases (model and size), higher in {higher}, undecided in the others"
    largest = f"the largest difference is {most.value:+.3f} ({NAMES[model]}, {size} positive examples)"
    return f"200 steps against the optimum of the same models: the mean EER after the steps is {counts}; {largest}."


def _said_of_variants(models: pd.DataFrame) -> str:
    parts: dict[int, list[str]] = {}
    for size, words, at in _variants(models):
        each = [paired_difference(at, "eer", "model", "l1inf", rival).text(3, sign=True) for rival in ("l1", "l2")]
        parts.setdefault(size, []).append(f"{words} {each[0]} and {each[1]}")
    if not parts:
        return ""
    said = "; ".join(f"with {size} positive examples {', '.join(each)}" for size, each in parts.items())
    return f"Sensitivity: mean EER of l1,inf minus that of l1, and of l2, {_HOW[CERTIFIED]}: {said}."


def _variants(models: pd.DataFrame) -> Iterator[tuple[int, str, pd.DataFrame]]:
    """Yield size, words and rows of each variant that has rows, and of the report's own choices at its size."""
    own = models[models["method"] == CERTIFIED]
    varied = own[(own["features"] != SVD) | (own["grid"] != PUBLISHED)]
    for size in _sizes(varied):
        for (features, grid), words in _VARIANTS.items():
            at = own[(own["examples"] == size) & (own["features"] == features) & (own["grid"] == grid)]
            if len(at):
                yield size, words, at


# The sections.


def _methods(own: pd.DataFrame) -> list[str]:
    return [method for method in METHODS if (own["method"] == method).any()]


def _sizes(own: pd.DataFrame) -> list[int]:
    return sorted(int(size) for size in own["examples"].unique())


def _curves(own: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown = [], []
    for method in _methods(own):
        for size in _sizes(own):
            at = own[(own["method"] == method) & (own["examples"] == size)]
            if not len(at):
                continue
            found = {model: mean(at.loc[at["model"] == model, "eer"].tolist()) for model in MODELS}
            samples, short = int(at["samples"].iloc[0]), int(at["short"].iloc[0])
            table += [
                {"method": method, "examples": size, "samples": samples, "short": short, "model": model, "mean": each.value,
                 "half_width": each.half, "repetitions": each.repetitions}
                for model, each in found.items()
            ]  # fmt: skip
            cells = {NAMES[model]: each.text() for model, each in found.items()}
            shown.append(
                {"Method": method, "Positive examples": str(size), "Samples": f"{samples:,}", "Topics with fewer": str(short)} | cells
            )
    text = f"""\
The mean over the judged topics of the equal error rate on the test images. {_INTERVALS} Samples: of all topics together. Topics with fewer
have fewer positive training images than asked for, and give all of them; their training sets differ from run to run in the negatives alone.
Guessing has an EER of 0.5."""
    draw = partial(_drawn_curves, own, "Mean equal error rate by training size")
    return Section("Mean equal error rate", text, "eer", pd.DataFrame(table), pd.DataFrame(shown, dtype="str"), draw)


def _drawn_curves(own: pd.DataFrame, title: str) -> Figure:
    from bench_mtl.papers.bands import draw_means
    from bench_mtl.report.columns import format_count
    from bench_mtl.report.figures import style

    methods, sizes, looks = _methods(own), _sizes(own), looks_of()
    with style.styled():
        figure, axes = style.sheet(title, [3.3] * len(methods), 2.8, handles(looks), share_y=True, headed=1)
        for axis, method in zip(axes, methods, strict=True):
            for model, look in looks.items():
                draw_means(axis, own[(own["method"] == method) & (own["model"] == model)], "examples", "eer", look)
            axis.set(title=_TITLES[method], xlabel="positive examples a topic", ylabel="mean EER" if axis is axes[0] else "")
            style.logarithmic(axis, "x", sizes[0] / 1.3, sizes[-1] * 1.3)
            style.ticks(axis, "x", sizes, format_count)
    return figure


_TITLES: Mapping[str, str] = {PAPER: "200 steps, as in the report", CERTIFIED: "certified optimum"}


def _differences(own: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown = [], []
    for method in _methods(own):
        at = own[own["method"] == method]
        found = {pair: differences(at, "eer", *pair, _sizes(own)) for pair in PAIRS}
        for size in _sizes(own):
            table += [
                {"method": method, "examples": size, "model": model, "against": rival, "difference": each[size].value,
                 "half_width": each[size].half, "repetitions": each[size].repetitions}
                for (model, rival), each in found.items()
            ]  # fmt: skip
            cells = {f"{NAMES[a]} minus {NAMES[b]}": each[size].text(sign=True) for (a, b), each in found.items()}
            shown.append({"Method": method, "Positive examples": str(size)} | cells)
    text = f"""\
Differences in mean EER of two models on the same training sets, run by run; below 0 the first model is the better one. {_INTERVALS} These
intervals decide the statements above: they hold the partition into four sets and the topics fixed, as the report does."""
    return Section("Paired differences", text, "differences", pd.DataFrame(table), pd.DataFrame(shown, dtype="str"))


def _topics(at: pd.DataFrame) -> Section:
    import pandas as pd

    found = {method: by_word(at[at["method"] == method], SHOWN) for method in _methods(at)}
    frame = pd.concat([words.reset_index().assign(method=method) for method, words in found.items()])
    title = f"Equal error rate of each judged topic, {SHOWN} positive examples"
    text = "Means over the runs, the most frequent topic on the left. The report's figure 3, right, shows its stories like this."
    draw = partial(drawn_words, {_TITLES[method]: words for method, words in found.items()}, title)
    return Section(title, text, "topics", frame, None, draw)


def _choices(own: pd.DataFrame) -> Section:
    """Return which C and eta0 were chosen, what every C would have given, how features are used, and what is proven."""
    import pandas as pd

    radii = GRIDS[PUBLISHED]
    table, shown = [], []
    for method in _methods(own):
        for size in _sizes(own):
            for model in MODELS:
                at = own[(own["method"] == method) & (own["examples"] == size) & (own["model"] == model)]
                if not len(at):
                    continue
                by_radius = [mean([eers[i] for eers in at["eer_by_radius"]]).value for i in range(len(radii))]
                times = [int((at["radius"] == radius).sum()) for radius in radii]
                share, fill, gap = float(at["share"].mean()), float(at["fill"].mean()), float(at["gap"].max())
                table.append(
                    {"method": method, "examples": size, "model": model, "share": share, "fill": fill, "gap": gap,
                     "rejected_gap": float(at["rejected_gap"].max())}
                    | ({f"eta0_{step:g}": int((at["eta0"] == step).sum()) for step in STEP_SIZES} if method == PAPER else {})
                    | {f"eer_C_{radius:g}": each for radius, each in zip(radii, by_radius, strict=True)}
                    | {f"chosen_C_{radius:g}": count for radius, count in zip(radii, times, strict=True)}
                )  # fmt: skip
                shown.append(
                    {"Method": method, "Examples": str(size), "Model": NAMES[model],
                     f"C of {_in_turn(radii)}": " : ".join(map(str, times))}
                    | {f"EER, C = {radius:g}": f"{each:.4f}" for radius, each in zip(radii, by_radius, strict=True)}
                    | {"Features": f"{share:.0%}", "Fill": f"{fill:.0%}", "Gap": f"{gap:.0e}"}
                )  # fmt: skip
    frame = pd.DataFrame(table)
    text = f"""\
How often the EER of the validation topics chose each C; the mean EER of the judged topics on the test images that every C gives (which
nobody chose by); the share of the features that the chosen models use for any topic; their fill, the mean share of the topics that use such
a feature; and the largest relative gap that is proven of a chosen model. A gap of 1 says that the optimum is close to 0: all training
images can be classified rightly, many models do so, and the EER is that of the one that was reached.{_of_eta0(own)}"""
    return Section("C, features in use, proofs", text, "choices", frame, pd.DataFrame(shown, dtype="str"))


def _in_turn(values: Sequence[float]) -> str:
    return " : ".join(f"{value:g}" for value in values)


def _of_eta0(own: pd.DataFrame) -> str:
    """Return how often the training objective chose each eta0, in a sentence."""
    steps = own[own["method"] == PAPER]
    if not len(steps):
        return ""
    counts = _in_turn([int((steps["eta0"] == step).sum()) for step in STEP_SIZES])
    return f" Of the report's procedure, eta0 of {_in_turn(STEP_SIZES)} had the best training objective for {counts} of the chosen models."


def _of_steps(own: pd.DataFrame, size: int, model: str) -> Mean:
    """Return the EER after the report's steps minus that of the optimum, on the same training sets."""
    at = own[(own["examples"] == size) & (own["model"] == model)]
    return paired_difference(at, "eer", "method", PAPER, CERTIFIED) if len(at) else mean([])


def _cost(own: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown = [], []
    for size in _sizes(own):
        found = {model: _of_steps(own, size, model) for model in MODELS}
        table += [
            {"examples": size, "model": model, "difference": each.value, "half_width": each.half, "repetitions": each.repetitions}
            for model, each in found.items()
        ]
        shown.append({"Positive examples": str(size)} | {NAMES[model]: each.text(sign=True) for model, each in found.items()})
    text = f"""\
Mean EER after the report's 200 steps minus that of the same model at its proven optimum, each with its own C; above 0 the steps stop too
early, below 0 stopping early helps. {_INTERVALS}"""
    return Section("What 200 steps cost", text, "steps", pd.DataFrame(table), pd.DataFrame(shown, dtype="str"))


def _sensitivity(models: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown = [], []
    for size, words, at in _variants(models):
        found = {NAMES[model]: mean(at.loc[at["model"] == model, "eer"].tolist()) for model in MODELS}
        pairs = {f"{NAMES[a]} minus {NAMES[b]}": paired_difference(at, "eer", "model", a, b) for a, b in PAIRS}
        radii = {model: sorted({float(radius) for radius in at.loc[at["model"] == model, "radius"]}) for model in MODELS}
        table += [
            {"examples": size, "variant": words, "what": what, "mean": each.value, "half_width": each.half, "repetitions": each.repetitions}
            for what, each in (found | pairs).items()
        ]
        chosen = "; ".join(f"{NAMES[model]} {', '.join(f'{radius:g}' for radius in each)}" for model, each in radii.items())
        shown.append(
            {"Examples": str(size), "Variant": words}
            | {what: each.text() for what, each in found.items()}
            | {what: each.text(sign=True) for what, each in pairs.items()}
            | {"C chosen": chosen}
        )
    finer = GRIDS[FINER]
    text = f"""\
Two choices varied, each model at its proven optimum: {len(finer)} values of C from {finer[0]:g} to {finer[-1]:g} in the place of the
report's three, and then also the visual words themselves in the place of their coordinates in the basis. More values of C cover the scale
of the features too, which the report does not give: features s times as large in a ball of radius C are the same as these in one of radius
s C. With C of {finer[0]:g} and less no score of an image reaches 1, so that another C changes nothing but the scale of the scores. For l2,
whose norm no rotation changes, the visual words give the same model: what its EER differs by is what two fits of one model differ by.
Models whose balls are too large to bind are one and the same, and differ by 0. Mean EER and its paired differences. {_INTERVALS}"""
    return Section("Sensitivity to C and to the basis", text, "sensitivity", pd.DataFrame(table), pd.DataFrame(shown, dtype="str"))


def _pictures(row: Mapping[Any, Any]) -> Section:
    title = f"Coefficients, {int(row['examples'])} positive examples"
    text = f"""\
Sizes of the coefficients after {PAPER}, first run, with the C chosen: features in rows (the leading directions above), topics in columns
(the most frequent on the left), white: 0, the darker the larger (by the root of the size, black from the 99th percentile of those above
0). The report's figure 4 shows its coefficients like this."""
    pictures = [(f"{NAMES[model]}, C = {row[f'{model}_radius']:g}", picture_of(row, model)) for model in ("l1", "l1inf")]
    return Section(title, text, "pictures", draw=partial(drawn_pictures, pictures, title, 2.8, "topics"))
