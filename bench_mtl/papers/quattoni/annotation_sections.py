"""Tables and figures of the annotation experiment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from bench_mtl.papers.experiment import Section
from bench_mtl.papers.quattoni.annotation_figures import drawn_pictures, drawn_words, handles, looks_of, picture_of
from bench_mtl.papers.quattoni.annotation_models import LOOKS, MODELS, RADII, RIVALS
from bench_mtl.papers.quattoni.annotation_verdicts import COMPARED, CONVERGENCE, DATA, LEVEL, NAMES, PATH, auc_at, by_word, long, part
from bench_mtl.papers.summaries import CONFIDENCE, mean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_INTERVALS = f"Means over the repetitions ± half of the {CONFIDENCE:.0%} t interval."
_SPARSE = ("l1inf", "l1")


def sections(rows: pd.DataFrame) -> list[Section]:
    """Return all that has cells."""
    models = long(rows)
    found: list[Section] = []
    if len(models):
        found += [
            _curve(
                models, "AUC on the test images", "auc", "AUC", "The multi-task AUC of the judged words (by their positive test images)."
            ),
            _curve(models, "Equal error rate on the test images", "eer", "mean EER", "The mean over the judged words."),
            _sign_tests(rows),
            _words(models),
            _choices(models),
        ]
    if len(part(rows, CONVERGENCE)):
        found.append(_convergence(part(rows, CONVERGENCE)))
    if len(part(rows, PATH)):
        found.append(_paths(part(rows, PATH)))
    if "l1inf_picture" in rows and rows["l1inf_picture"].notna().any():
        found.append(_pictures(rows[rows["l1inf_picture"].notna()]))
    return found


def _collections(frame: pd.DataFrame) -> list[str]:
    return [name for name in DATA if (frame["data"] == name).any()]


def _sizes(frame: pd.DataFrame) -> list[int]:
    return sorted(int(size) for size in frame["examples"].unique())


def _curve(models: pd.DataFrame, title: str, measure: str, label: str, about: str) -> Section:
    """Return a measure by the size of the training sets."""
    import pandas as pd

    table, shown = [], []
    for name in _collections(models):
        for size in _sizes(models):
            own = models[(models["data"] == name) & (models["examples"] == size)]
            if not len(own):
                continue
            samples, short = float(own["samples"].mean()), int(own["short"].iloc[0])
            found = {model: mean(own.loc[own["model"] == model, measure].dropna().tolist()) for model in MODELS}
            table += [
                {"data": name, "examples": size, "samples": samples, "model": model, "mean": each.value, "half_width": each.half,
                 "repetitions": each.repetitions}
                for model, each in found.items()
            ]  # fmt: skip
            cells = {NAMES[model]: each.text() for model, each in found.items()}
            shown.append(
                {"Images": DATA[name], "Positive examples": str(size), "Samples of all words": f"{samples:,.0f}",
                 "Words with fewer": str(short)} | cells
            )  # fmt: skip
    frame = pd.DataFrame(table)
    text = f"{about} {_INTERVALS} Words with fewer: with fewer positive training images than asked for, of which all are taken."
    return Section(title, text, measure, frame, pd.DataFrame(shown, dtype="str"), partial(_drawn_curve, models, measure, title, label))


def _drawn_curve(models: pd.DataFrame, measure: str, title: str, label: str) -> Figure:
    from bench_mtl.papers.bands import draw_means
    from bench_mtl.report.figures import style

    models = models.assign(at=models.groupby(["data", "examples"])["samples"].transform("mean"))
    names, looks = _collections(models), looks_of()
    with style.styled():
        figure, axes = style.sheet(title, [3.3] * len(names), 2.7, handles(looks), headed=1)
        for axis, name in zip(axes, names, strict=True):
            own = models[models["data"] == name].dropna(subset=measure)
            for model, look in looks.items():
                draw_means(axis, own[own["model"] == model], "at", measure, look)
            axis.set(title=DATA[name], xlabel="training samples of all words", ylabel=label)
            style.logarithmic(axis, "x", own["at"].min() / 1.2, own["at"].max() * 1.2)
            style.ticks(axis, "x", _spread(sorted(own["at"].unique())), _thousands)
    return figure


def _spread(places: Sequence[float], apart: float = 1.3) -> list[float]:
    """Places for ticks on a logarithmic axis, without those that would be written over one another."""
    kept: list[float] = []
    for place in places:
        if not kept or place >= apart * kept[-1]:
            kept.append(float(place))
    return kept


def _thousands(value: float) -> str:
    return f"{value / 1000.0:.3g}k"


_ABOUT_TESTS = f"""\
The sign test of the joint model against each rival, pooled over the judged words: pairs of a positive and a negative test image that one
model ranks rightly and the other wrongly; one-sided, as the paper's hypothesis is (a small p-value: the joint model has the higher AUC).
Median p-value of the repetitions, with the smallest and the largest; wins and losses of the joint model, means over the repetitions. The
words share their test images, so that pairs are not independent and p-values are too small: the paper's too. Significant: p < {LEVEL:g}."""


def _sign_tests(rows: pd.DataFrame) -> Section:
    import pandas as pd

    from bench_mtl.papers.published import published

    numbers = [row for row in published("quattoni2009_annotation") if row["quantity"] == "p-value"]
    printed = {(row["examples"], row["against"]): row["published"] for row in numbers}
    table, shown = [], []
    compared = part(rows, COMPARED)
    for name in _collections(compared):
        for size in _sizes(compared):
            own = compared[(compared["data"] == name) & (compared["examples"] == size)]
            if not len(own):
                continue
            cells = {"Images": DATA[name], "Positive examples": str(size), "Samples of all words": f"{own['samples'].mean():,.0f}"}
            for rival in RIVALS:
                p_values, wins, losses = (own[f"{rival}_{what}"] for what in ("p", "wins", "losses"))
                table.append(
                    {"data": name, "examples": size, "samples": float(own["samples"].mean()), "rival": rival,
                     "p_median": float(p_values.median()), "p_min": float(p_values.min()), "p_max": float(p_values.max()),
                     "significant": int((p_values < LEVEL).sum()), "repetitions": len(own), "wins": float(wins.mean()),
                     "losses": float(losses.mean()), "pairs": float(own[f"{rival}_pairs"].mean()),
                     "p_published": printed.get((str(size), rival), "")}
                )  # fmt: skip
                spread = f" ({p_values.min():.1g} to {p_values.max():.1g})" if len(own) > 1 else ""
                cells |= {
                    f"p, {NAMES[rival]}": f"{p_values.median():.2g}{spread}",
                    f"Published, {NAMES[rival]}": printed.get((str(size), rival), "-"),
                    f"Wins : losses, {NAMES[rival]}": f"{wins.mean():.0f} : {losses.mean():.0f}",
                }
            shown.append(cells)
    return Section("Sign tests of l1,inf", _ABOUT_TESTS, "sign_tests", pd.DataFrame(table), pd.DataFrame(shown, dtype="str"))


def _words(models: pd.DataFrame) -> Section:
    """Return the EER of each word at the smallest size."""
    import pandas as pd

    size = _sizes(models)[0]
    found = {name: by_word(models[models["data"] == name], size) for name in _collections(models[models["examples"] == size])}
    frame = pd.concat([words.reset_index().assign(data=name) for name, words in found.items()])
    title = f"Equal error rate of each word, {size} positive examples"
    text = """\
The judged words, the most frequent one on the left; means over the repetitions, on few positive test images for the rarer words. As the
report of 2008 shows the stories for 30 examples."""
    return Section(title, text, "words", frame, None, partial(drawn_words, {DATA[name]: words for name, words in found.items()}, title))


def _choices(models: pd.DataFrame) -> Section:
    """Return which C the validation words chose, and what every C would have given."""
    import pandas as pd

    table, shown, edges = [], [], dict.fromkeys(MODELS, 0)
    for name in _collections(models):
        for size in _sizes(models):
            for model in MODELS:
                own = models[(models["data"] == name) & (models["examples"] == size) & (models["model"] == model)]
                if not len(own):
                    continue
                by_radius = [mean([aucs[i] for aucs in own["aucs"]]) for i in range(len(RADII))]
                times = [int((own["radius"] == radius).sum()) for radius in RADII]
                edges[model] += times[0] + times[-1]
                share, fill = mean(own["share"].tolist()), mean(own["fill"].tolist())
                gap, rejected = float(own["gap"].max()), float(own["rejected_gap"].max())
                table.append(
                    {"data": name, "examples": size, "model": model, "share": share.value, "fill": fill.value}
                    | {"gap": gap, "rejected_gap": rejected}
                    | {f"auc_C_{radius:g}": each.value for radius, each in zip(RADII, by_radius, strict=True)}
                    | {f"chosen_C_{radius:g}": count for radius, count in zip(RADII, times, strict=True)}
                )  # fmt: skip
                counted = [(radius, n) for radius, n in zip(RADII, times, strict=True) if n]
                chosen = ", ".join(f"{radius:g}" + (f" ({n}x)" if len(own) > 1 else "") for radius, n in counted)
                shown.append(
                    {"Images": DATA[name], "Positive examples": str(size), "Model": NAMES[model], "C chosen": chosen}
                    | {f"AUC, C = {radius:g}": f"{each.value:.4f}" for radius, each in zip(RADII, by_radius, strict=True)}
                    | {"Features used": f"{share.value:.0%}", "Fill": f"{fill.value:.0%}"}
                    | {"Gap": f"{gap:.1e}", "Gap, other C": f"{rejected:.1e}"}
                )
    choices = len(models) // len(MODELS)
    at_an_end = ", ".join(f"{NAMES[model]} {count} of {choices}" for model, count in edges.items())
    text = f"""\
C as the AUC of the ten validation words chose it, the test AUC of the judged words that every C gives (which nobody chose by), the share of
the features that the chosen model uses for any word, its fill (the mean share of the words that use such a feature), and the largest proven
gaps of the chosen fits and of the others. Where a fit can classify all its training images rightly, as the independent models can with
large C, the optimum is 0 and not one point alone: the AUC is then that of the point that the solver finds from 0. Chosen at an end of the
grid, beyond which a better C may lie: {at_an_end}."""
    return Section("C", text, "choices", pd.DataFrame(table), pd.DataFrame(shown, dtype="str"))


def _convergence(rows: pd.DataFrame) -> Section:
    """Return the objective along the subgradient method, and the optimum."""
    import pandas as pd

    rows = rows.sort_values(["data", "radius"])
    table = pd.DataFrame(
        [
            {"data": row["data"], "examples": row["examples"], "radius": row["radius"], "eta0": row["eta0"], "step": step,
             "objective": objective, "optimum": row["optimum"], "bound": row["bound"]}
            for row in rows.to_dict("records")
            for step, objective in zip(row["steps"], row["objectives"], strict=True)
        ]
    )  # fmt: skip
    shown = [
        [DATA[row["data"]], f"{row['radius']:g}", f"{row['eta0']:g}", f"{row['objectives'][-1]:.4f}", f"{row['optimum']:.4f}",
         f"{row['bound']:.4f}", f"{row['objectives'][-1] - row['optimum']:.4f}"]
        for row in rows.to_dict("records")
    ]  # fmt: skip
    heads = ["Images", "C", "Best eta0", f"After {LOOKS[-1]} steps", "Optimum", "Proven bound", "Above the optimum"]
    title = "Convergence of the subgradient method, l1,inf"
    sizes = ", ".join(f"{DATA[str(name)]}: {own['samples'].iloc[0]:,.0f} samples" for name, own in rows.groupby("data", sort=False))
    text = f"""\
The objective (the sum over the words of the mean hinge loss) at the best point so far of the paper's projected subgradient method, with the
best eta0 of 0.1, 1, 10 and 100, on the largest training sets ({sizes}); dashed: the optimum, to the proven bound."""
    draw = partial(_drawn_convergence, table, title)
    return Section(title, text, "convergence", table, pd.DataFrame(shown, columns=heads, dtype="str"), draw)


def _drawn_convergence(table: pd.DataFrame, title: str) -> Figure:
    from bench_mtl.report.figures import style

    names = _collections(table)
    styles = style.styles_in_turn([f"C = {radius:g}" for radius in RADII])
    drawn = {f"C = {radius:g}" for radius in table["radius"]}
    looks = {label: style.line(look, markersize=3.5, linewidth=1.3) for label, look in styles.items() if label in drawn}
    with style.styled():
        figure, axes = style.sheet(title, [3.3] * len(names), 2.7, handles(looks), headed=1)
        for axis, name in zip(axes, names, strict=True):
            for radius, own in table[table["data"] == name].groupby("radius"):
                look = looks[f"C = {radius:g}"]
                axis.plot(own["step"], own["objective"], **look)
                axis.axhline(own["optimum"].iloc[0], color=look["color"], linestyle=(0, (4, 2)), linewidth=0.9)
            axis.set(title=DATA[name], xlabel="iterations", ylabel="objective", ylim=(0.0, None))
            style.logarithmic(axis, "x", 0.9, LOOKS[-1] * 1.1)
    return figure


def _paths(rows: pd.DataFrame) -> Section:
    """AUC against the share of features in use."""
    import pandas as pd

    table = pd.DataFrame(
        [
            {"data": row["data"], "examples": row["examples"], "model": row["model"], "seed": row["seed"], "radius": radius,
             "share": share, "auc": auc}
            for row in rows.to_dict("records")
            for radius, share, auc in zip(row["radii"], row["shares"], row["aucs"], strict=True)
        ]
    )  # fmt: skip
    shown = []
    for name in _collections(rows):
        for model in MODELS:
            own = rows[(rows["data"] == name) & (rows["model"] == model)].to_dict("records")
            paths = [(row["shares"], row["aucs"]) for row in own]
            if paths:
                cells = {f"AUC at {share:.0%}": _known([auc_at(share, *each) for each in paths]) for share in (0.1, 0.3, 0.5, 0.7, 0.95)}
                chosen = [row["validation_aucs"].index(max(row["validation_aucs"])) for row in own]
                cells["AUC, C by validation"] = _known([row["aucs"][best] for row, best in zip(own, chosen, strict=True)])
                cells["C"] = ", ".join(f"{row['radii'][best]:.2g}" for row, best in zip(own, chosen, strict=True))
                cells["Best AUC"] = _known([max(aucs) for _, aucs in paths])
                shown.append({"Images": DATA[name], "Model": NAMES[model]} | cells)
    title = f"AUC and features in use, {_sizes(rows)[0]} positive examples"
    text = f"""\
Models of more and fewer features, by {len(rows["radii"].iloc[0])} values of C from {RADII[0]:g} to {RADII[-1]:g}; a feature is in use
where any word uses it. A point is the mean over the repetitions for one C. In the table the AUC at a share is on the straight line between
the neighbouring C of a repetition; "-": no C of some repetition gives as many, or as few. C by validation: chosen on
this grid as on the paper's four values, in each repetition; where the AUC is higher than in the curves above, these four are too few."""
    return Section(title, text, "features", table, pd.DataFrame(shown, dtype="str"), partial(_drawn_paths, table, title))


def _known(values: Sequence[float]) -> str:
    return "-" if any(math.isnan(value) for value in values) else mean(list(values)).text()


def _drawn_paths(table: pd.DataFrame, title: str) -> Figure:
    from bench_mtl.report.figures import style

    names, looks = _collections(table), looks_of(_SPARSE)
    with style.styled():
        figure, axes = style.sheet(title, [3.3] * len(names), 2.7, handles(looks), headed=1)
        for axis, name in zip(axes, names, strict=True):
            for model, look in looks.items():
                own = table[(table["data"] == name) & (table["model"] == model)].groupby("radius")[["share", "auc"]].mean()
                axis.plot(100.0 * own["share"], own["auc"], **look)
            axis.set(title=DATA[name], xlabel="% of the features in use", ylabel="AUC", xlim=(-3.0, 103.0))
    return figure


def _pictures(rows: pd.DataFrame) -> Section:
    rows = rows.drop_duplicates("data")
    size = int(rows["examples"].iloc[0])
    title = f"Coefficients, {size} positive examples"
    text = """\
Sizes of the coefficients of the first repetition with the C chosen: features in rows (the leading directions above), words in columns (the
most frequent on the left), white: 0, the darker the larger (by the root of the size, black from the 99th percentile of those above 0)."""
    pictures = [
        (f"{DATA[row['data']]}, {NAMES[model]}, C = {row[f'{model}_radius']:g}", picture_of(row, model))
        for row in rows.to_dict("records")
        for model in ("l1", "l1inf")
    ]
    return Section(title, text, "pictures", draw=partial(drawn_pictures, pictures, title))
