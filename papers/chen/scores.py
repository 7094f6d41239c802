"""What the tables of scores share: values and protocols of the learners' cells, their tables and their figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from papers.chen import protocol
from papers.chen.learners import MODELS, TOLERANCE, TUNING_STEPS, UNITS, Model
from papers.chen.protocol import FOLDS, TUNING_TOLERANCE
from papers.experiment import Experiment, Read, Scale, Section
from papers.figures import Dots, Lines
from papers.published import published
from papers.tables import Table, ordered
from papers.values import MEASURE, NONE, VALUE, label, melted, tidy, with_families

MULTI_TASK = ("MixedNorm", "MTRL", "MTL(Omega,Sigma)", "TraceNorm", "ASO")
FAMILIES: Mapping[str, Sequence[str]] = {
    "multi-task": MULTI_TASK,
    "multi-task without ASO": tuple(name for name in MULTI_TASK if name != "ASO"),
    "single-task": ("OneNorm", "IndSVM", "RidgeReg"),
    "IndSVM and RidgeReg": ("IndSVM", "RidgeReg"),
}

#: The published measures, in per cent.
MEASURES = ("average AUC", "macro F1", "micro F1")
SETTINGS = ("data", "model", "features", "intercept", "decision", "auc")
_CELL = ("data", "model", "features", "intercept")


def values(rows: pd.DataFrame, stand_ins: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Return scores in per cent under every protocol, by the paper's names of data sets; seconds; and what tuning might have found."""
    theirs = {ours: name for name, ours in (stand_ins or {}).items()}
    rows = rows.assign(data=rows["data"].replace(theirs))
    scores = [melted(rows, _CELL, {"average AUC": column}, 100.0).assign(auc=kind) for kind, column in protocol.AUCS.items()]
    for rule, form in protocol.DECISIONS.items():
        scores.append(melted(rows, _CELL, {f"{kind} F1": form.format(kind) for kind in ("macro", "micro")}, 100.0).assign(decision=rule))
    seconds = melted(rows, _CELL, {"seconds of a fit": "fit_seconds", "seconds of tuning": "tuning_seconds"})
    return tidy([with_families(tidy(scores, SETTINGS), FAMILIES), seconds, _margins(rows)], SETTINGS)


#: Ways to choose the settings of MixedNorm and of TraceNorm, by the columns of their scores.
_CHOICES: Mapping[str, tuple[str, str]] = {
    "tuned in training": ("average_auc", "average_auc"),
    "both on test": ("best_on_test", "best_on_test"),
    "MixedNorm on test": ("best_on_test", "average_auc"),
}


def _margins(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the AUC of MixedNorm minus that of TraceNorm, repetition by repetition, where cells have looked at the test part."""
    if "best_on_test" not in rows:
        return pd.DataFrame()
    keys = ["data", "features", "intercept", "seed"]
    scores = {name: rows[(rows["model"] == name) & rows["best_on_test"].notna()].set_index(keys) for name in ("MixedNorm", "TraceNorm")}
    margins = {name: scores["MixedNorm"][ours] - scores["TraceNorm"][theirs] for name, (ours, theirs) in _CHOICES.items()}
    return melted(pd.DataFrame(margins).reset_index(), _CELL, {name: name for name in margins}, 100.0).assign(model="margin")


_ABOUT_SCORES = """\
Per cent, means ± standard deviation over the repetitions. The pooled AUC is of all labels and examples together as if of one task, which
rewards knowing which labels are frequent. F1 by the rule of decision: scores above 0; for each label as many positives as its share of the
training part asks for; for each example one label, that with the highest score; a threshold for each label, chosen for the highest F1 on
the training folds. Labels without a positive or a negative training example are left out, and of the AUC those without a positive or a
negative test example; macro F1 needs a positive one."""

_ABOUT_MARGIN = """\
Could better tuning bring the published margin of MixedNorm over TraceNorm? For these sets every setting of both grids was also fitted to
the whole training part, to the accuracy of the tuning, and judged on the test part. The margin is shown with settings tuned in training as
everywhere else, with the best setting of each learner on the test part, and with that of MixedNorm alone against TraceNorm as tuned, which
favours MixedNorm; means ± half of the 95 % interval."""

_ABOUT_FITS = """\
What tuning chose (the settings of most repetitions; the rest in cells.csv), how often at an edge of a grid of three values or more, where a
wider grid might have had better, and the final fits: the largest proven relative gap, and as parts of MixedNorm the share of non-zeros of
the sparse one and the rank of the other. Where the gap is near 1 the training examples can be fitted exactly: the optimum is 0, it has many
points, and the scores are those of the point that was reached. Seconds are medians of the repetitions on one core: of all fits of the
tuning, and of one final fit."""

SCORES = Table("Scores", MEASURES, _CELL, ("decision", "auc"), words=_ABOUT_SCORES, name="scores", digits=1, spread="deviation")
AUC = Dots(
    "Average AUC", "average AUC", "model", panel="data", published=True, spread="deviation", name="auc",
    words="Published and ours, per cent, under the default protocol; bars are standard deviations.",
)  # fmt: skip
MARGIN = Table(
    "MixedNorm over TraceNorm, chosen on the test set", tuple(_CHOICES), ("data", "features", "intercept"),
    words=_ABOUT_MARGIN, name="margin", digits=2, at={"model": "margin"},
)  # fmt: skip


#: Columns of the table of fits: the text of their numbers.
_FORMS = {"largest_gap": ".0e", "non_zeros": ".1%", "rank": ".0f", "tuning_seconds": ".1f", "fit_seconds": ".2f"}


def fits(read: Read) -> Section:
    """Return what was chosen, what it took."""
    found, none = [], pd.Series(dtype=float)
    for key, part in ordered(read.rows, read.experiment, _CELL).groupby(list(_CELL), sort=False):
        model = MODELS[str(key[1])]
        settings = Counter(", ".join(f"{name} {value:g}" for name, value in each.items()) for each in part["setting"])
        setting, count = settings.most_common(1)[0]
        found.append({
            **dict(zip(_CELL, key, strict=True)), "setting": setting, "times": count, "repetitions": len(part),
            "at_edge": sum(is_at_edge(model.grid, model.units, each) for each in part["setting"]),
            "largest_gap": part["relative_gap"].astype(float).max(), "non_zeros": part.get("share_of_non_zeros", none).median(),
            "rank": part.get("rank", none).median(), "tuning_seconds": part["tuning_seconds"].median(),
            "fit_seconds": part["fit_seconds"].median(),
        })  # fmt: skip
    digits = pd.DataFrame(found)
    of = "/" + digits["repetitions"].astype("str")
    texts = {name: [NONE if pd.isna(value) else f"{value:{form}}" for value in digits[name]] for name, form in _FORMS.items()}
    times = digits["setting"] + " (" + digits["times"].astype("str") + of + ")"
    shown = digits.assign(**texts, setting=times, at_edge=digits["at_edge"].astype("str") + of).drop(columns=["times", "repetitions"])
    heads = [*map(read.experiment.head, _CELL), "Setting", "Edge", "Gap", "Non-zeros", "Rank", "s, tuning", "s, one fit"]
    return Section("Settings and fits", _ABOUT_FITS, "fits", shown.set_axis(heads, axis=1), digits, after=fitted_twice(read.rows))


def fitted_twice(rows: pd.DataFrame) -> str:
    """Return by how much the scores of two fits of one problem differ; MixedNorm at tau 0 is OneNorm."""
    keys = ["data", "features", "intercept", "seed"]
    both = rows[rows["model"] == "MixedNorm"].merge(rows[rows["model"] == "OneNorm"], on=keys, suffixes=("", " of OneNorm"))
    settings = zip(both["setting"], both["setting of OneNorm"], strict=True)
    both = both[[mixed == {"gamma": one["penalty"], "tau": 0.0} for mixed, one in settings]]
    if not len(both):
        return ""
    of_f1 = [form.format(kind) for form in protocol.DECISIONS.values() for kind in ("macro", "micro")]
    auc, f1 = (
        max(100.0 * (both[name] - both[f"{name} of OneNorm"]).abs().max() for name in names) for names in (protocol.AUCS.values(), of_f1)
    )
    return (
        f"MixedNorm at tau 0 is OneNorm. Where both chose the same penalty, in {len(both)} pairs of cells, their fits are of one problem: "
        f"their scores differ by up to {auc:.2g} points of AUC and {f1:.2g} of F1."
    )


def is_at_edge(grid: Mapping[str, Sequence[float]], units: Mapping[str, str], setting: Mapping[str, float]) -> bool:
    """Return whether a parameter of three values or more has the first or the last of them, and could have one beyond.

    Nothing lies beyond 0, and next to nothing changes beyond the penalty that leaves no coefficient where there is no other part.
    """
    limits = {name: (0.0, 1.0) if units.get(name) == "correlation" else (0.0,) for name in grid}
    return any(
        len(tried) > 2 and setting[name] in (tried[0], tried[-1]) and setting[name] not in limits[name] for name, tried in grid.items()
    )


_ABOUT_NUMBERS = """\
Differences of two learners below 0.3 points decide nothing, which is a choice of ours: two solvers' fits of one problem, each proven to the
gap stated, do not score quite the same, and may differ by more. What the paper says of the multi-task learners is judged with and without
ASO, since one learner that is behind would speak for all."""


def _grid_words(model: Model) -> str:
    units = {name: f" times {UNITS[unit]}" for name, unit in model.units.items()}
    parts = [f"{name} of {', '.join(f'{value:g}' for value in values)}{units.get(name, '')}" for name, values in model.grid.items()]
    few = f" (on {model.most_features} singular directions of the training examples where there are more features)"
    return ", ".join(parts) + (few if model.most_features else "")


_GRIDS = "; ".join(f"{name} {_grid_words(model)}" for name, model in MODELS.items())
_ABOUT_PROTOCOL = f"""\
Random training and test parts, in a ratio of 1 to 9 where no other is named; the squared loss on labels -1 and +1, but for IndSVM, which
has the squared hinge of scikit-learn's LinearSVC. The paper leaves open what moves its numbers most, so each choice is varied, and the
comparison says what depends on it. Features: normalised (dense data have mean 0 and deviation 1 over the training examples, counts of
words are TF-IDF, and then all rows have length 1) or raw (dense data as they come, counts with rows of length 1). Intercept: without, as
in the paper's f(x) = w.x, or free (IndSVM's is penalised, as in scikit-learn). Decisions: at 0; as many positives as the label's share of
the training part; one label an example; a threshold from the training folds. AUC: the mean over labels, or pooled over labels and
examples. F1: the paper describes Macro F1 as calculated over all tasks together and Micro F1 as the average over tasks, the two names
exchanged against its own source, which its numbers rule out (10 and 61 per cent for MixedNorm on MediaMill with 80 labels): Macro F1 here
is the average over labels, and Micro F1 that of all decisions together. Features that no training example has are left out, and all
features are divided by one number, for common units of the grids.

Parameters are tuned by {FOLDS}-fold cross-validation within the training part, by the average AUC, the same folds for all learners; our
copy of the paper has its grids only as some multiples, so these are ours: {_GRIDS}. MixedNorm's grid holds those of its special cases:
OneNorm's at tau 0, and TraceNorm's at gamma 1, where next to nothing is left of the sparse part. MTL(Omega,Sigma) is not given all
features of wide data: its graphical lasso takes time like their cube, and its penalty is not the same in a rotated basis, so that no
reduction is exact; this may cost it points. Convex fits of the tuning are to be proven to a relative gap of {TUNING_TOLERANCE:g}, those of
MixedNorm, TraceNorm and OneNorm within {TUNING_STEPS} steps from the neighbouring setting's fit, and the final one, on the whole training
part, to {TOLERANCE:g} (the paper stops where the objective changes by less than 1e-5, which proves no accuracy); where examples can be
fitted exactly, so that the optimum is 0, to these shares of a millionth of the objective at 0. A label without a positive or negative
example in the training part is not learnt, and named in cells.csv."""


def table_experiment(
    name: str, title: str, place: str, claims: str, *, small: Scale, full: Scale, about: str = "", **more: Any
) -> Experiment:
    """Return a table of scores, made again, from the cells that all tables share; `more` are fields of an experiment."""
    fields: dict[str, Any] = {"subjects": tuple(MODELS), "sections": (AUC, SCORES, MARGIN, fits), **more}
    return Experiment(
        name=name,
        title=title,
        source=f"Chen, Liu, Ye, ACM TKDD 5(4), 2012, {place}",
        about="\n\n".join(filter(None, [about, _ABOUT_PROTOCOL, _ABOUT_NUMBERS])),
        scales={"small": small, "full": full},
        compute=protocol.compute,
        values=partial(values, stand_ins=more.get("stand_ins")),
        claims=published(claims),
        protocols=protocol.PROTOCOLS,
        titles={"auc": "Kind of AUC", "decision": "Rule of decision", "model": "Learner"},
        uses=protocol.LEARNER_CODE,
        data=protocol.files,
        limits=protocol.TUNING_LIMITS,
        cells_of=protocol.CELLS_OF,
        **fields,
    )


#: The learners with the highest and the lowest mean at a place.
BEST, WORST, BEST_OTHER = "the best", "the worst", "the best but MixedNorm"

_ABOUT_CURVES = "Per cent, means over the repetitions ± half of the 95 % interval; decisions at 0, AUC per label."

Place = Callable[[Mapping[Any, Any]], float]
"""Where a row is on a curve."""


def curves(table: Experiment, along: str, place: Place, *, other_data: str = "") -> Experiment:
    """Return an experiment of tables as one of curves along a column."""
    drawn = [
        Lines(f"Scores, {features} features, {intercept} intercept", MEASURES, along, "model", name=f"curves-{features}", log="",
              words=_ABOUT_CURVES, at={"features": features, "intercept": intercept})
        for features, intercept in protocol.MAIN
    ]  # fmt: skip
    shown = Table("Scores in digits", (*MEASURES, "seconds of tuning"), (along, "model", "features", "intercept"), name="scores", digits=2,
                  words=f"{_ABOUT_CURVES} Seconds are of all fits of a tuning, on one core.")  # fmt: skip
    return replace(table, values=partial(curve_values, along, place), sections=(*drawn, shown), other_data=other_data)


def curve_values(along: str, place: Place, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the values of the tables at every place of the curves, with the learners that are the best and the worst there."""
    places: list[str] = [label(place(row)) for row in rows.to_dict("records")]
    groups = rows.assign(place=places).groupby("place", sort=False)
    parts = [_with_ends(values(part.assign(data=NONE))).assign(**{along: str(at)}) for at, part in groups]
    return tidy(parts, (*SETTINGS, along))


def _with_ends(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the ends; there are none where a learner is missing, which might be one."""
    ends = []
    scores = frame[frame[MEASURE].isin(MEASURES) & frame["model"].isin(list(MODELS))]
    for _, part in scores.groupby([MEASURE, *(name for name in SETTINGS if name != "model")], sort=False):
        means = part.groupby("model")[VALUE].mean()
        if len(means) == len(MODELS):
            named = {BEST: means.idxmax(), WORST: means.idxmin(), BEST_OTHER: means.drop("MixedNorm").idxmax()}
            ends += [part[part["model"] == name].assign(model=end) for end, name in named.items()]
    return pd.concat([frame, *ends], ignore_index=True)
