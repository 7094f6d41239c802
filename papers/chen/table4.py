"""Table IV and figures 6 and 7: projected gradient (PG) against accelerated gradient (AG) on Scene."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from papers.chen import table4_cell as cell
from papers.chen.sparse_low_rank import PROBLEM
from papers.chen.table4_cell import NORMALISATIONS, RACE_CHANGE, SOLVERS, VARIANTS, Variant
from papers.experiment import CellSettings, Experiment, Scale
from papers.figures import Lines
from papers.published import published
from papers.tables import Table
from papers.values import MEASURE, NONE, SEED, VALUE, melted, tidy

SHORT = dict(zip(SOLVERS, ("PG", "AG"), strict=True))
SETTINGS = ((1.0, 2.0), (6.0, 4.0))
#: Of the small scale.
SMALL_CHANGES = (1e-1, 1e-3, 1e-5, 1e-7, 1e-10)
#: The readings of the paper: four normalisations of Scene, the first one for figures; other losses, labels and means.
MAIN = "standardise, unit_rows"
READINGS = (*NORMALISATIONS, *(variant.words for variant in VARIANTS))
#: Seconds from which on a single timing says something of the order of two.
TIMED = 0.05
CLAIMS = published("chen2012_table4")
_COLUMNS = ("gamma", "change", "solver", "reading")
_COURSE = "relative excess over the optimum"
_RATIO, _LEAST = "iterations of PG over AG", "PG over AG or a lower bound of it"
_GAPS = ("proven gap", "excess over the optimum")
_SECONDS = "seconds of PG over AG, the median row"


def values(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what a run takes until the rule stops it, PG over AG and what races say, under each reading; what is published."""
    variants = [Variant.of(row) for row in rows.to_dict("records")]
    rows = rows.assign(
        reading=[name if variant is None else variant.words for name, variant in zip(rows["normalisation"], variants, strict=True)],
        solver=rows["solver"].replace(SHORT),
    )
    is_variant = pd.Series([variant is not None for variant in variants], index=rows.index)
    races, stops, counts = rows[rows["solver"] == cell.RACE], rows[~is_variant & (rows["solver"] != cell.RACE)], rows[is_variant]
    counts = counts.assign(change=counts["change"].map(lambda _: cell.CHANGES), iterations=counts.get("counts"))
    runs = pd.concat([stops, counts.explode(["change", "iterations"])], ignore_index=True).astype({"iterations": "float64"})
    by_rule = runs[runs["iterations"].notna()]
    names = {"iterations": "iterations", "seconds": "run_seconds", _GAPS[0]: "proven_gap", _GAPS[1]: "excess"}
    parts = [melted(by_rule, _COLUMNS, names), *_ratios(runs), *_of_races(races), _published()]
    return tidy(parts, (*_COLUMNS, "step", "curve"))


def _ratios(runs: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield iterations of PG over those of AG, where PG has not been stopped what they are at least, and seconds of the median row."""
    seconds, settings = runs.get("run_seconds", pd.Series(np.nan, runs.index)), ["gamma", "change", "reading"]
    least, seconds = runs["iterations"].fillna(cell.MOST_ITERATIONS), seconds.where(runs["iterations"].notna() & (seconds >= TIMED))
    columns = pd.MultiIndex.from_product([["iterations", "least", "timed"], SHORT.values()])
    wide = runs.assign(least=least, timed=seconds).pivot(index=settings, columns="solver", values=["iterations", "least", "timed"])
    pg, ag = (wide.reindex(columns=columns).xs(name, axis=1, level=1).astype("float64") for name in SHORT.values())
    found = pd.DataFrame({_RATIO: pg["iterations"] / ag["iterations"], _LEAST: pg["least"] / ag["iterations"]}).reset_index()
    yield melted(found, settings, {name: name for name in (_RATIO, _LEAST)})
    medians = pd.DataFrame({"median": pg["timed"] / ag["timed"]}).dropna().groupby("reading").median().reset_index()
    yield melted(medians, ("reading",), {_SECONDS: "median"})


def _of_races(races: pd.DataFrame) -> list[pd.DataFrame]:
    """Return PG over AG to the same objective, that of PG's last step; both courses, their bounds, and the largest share of these."""
    if not len(races):
        return []
    ratio = races["pg_iterations"].astype("float64").fillna(cell.MOST_ITERATIONS) / races["ag_iterations"].astype("float64")
    courses = pd.concat([_course(races, name) for name in SHORT.values()])
    largest = courses.groupby(["gamma", "reading", "solver"], sort=False)["share"].max().reset_index()
    return [
        melted(races.assign(ratio=ratio), ("gamma", "reading"), {"iterations of PG over AG to the same objective": "ratio"}),
        melted(largest, ("gamma", "reading", "solver"), {"largest share of the bound": "share"}),
        *(melted(courses.assign(curve=curve), (*_COLUMNS, "step", "curve"), {_COURSE: curve}) for curve in ("excess", "bound")),
    ]


def _course(races: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a row for each step after 0 with the relative excess over the optimum there, its bound, and its share of that."""
    lists = {f"{name.lower()}_steps": "step", f"{name.lower()}_excess": "excess"}
    steps = races.drop(columns="excess").explode([*lists]).rename(columns=lists)
    steps = steps.astype(dict.fromkeys(("step", "excess", "rate", "optimum"), "float64")).query("step > 0")
    steps = steps.assign(solver=name, change=NONE, bound=bound(name, steps["rate"], steps["step"]) / steps["optimum"])
    return steps.assign(share=steps["excess"] / steps["bound"], excess=steps["excess"].where(steps["excess"] > 0.0))


def bound(name: str, rate: Any, steps: Any) -> Any:
    """Return what theorems 5.1 and 5.2 say that the objective is above the optimum by at most, with `rate` L ||T_0 - T*||^2."""
    return rate / (2.0 * steps) if name == "PG" else 2.0 * rate / (steps + 1.0) ** 2


def _published() -> pd.DataFrame:
    """Return the published iterations and seconds, for figures."""
    numbers = [
        {"gamma": claim.places["gamma"][0], "change": claim.places["change"][0], "solver": f"{claim.subject}, published", "reading": MAIN,
         SEED: np.nan, MEASURE: claim.measure, VALUE: claim.number}
        for claim in CLAIMS if claim.is_number and claim.subject
    ]  # fmt: skip
    return pd.DataFrame(numbers)


def _grid(normalisations: Sequence[str], changes: Sequence[float], variants: Sequence[Variant]) -> tuple[CellSettings, ...]:
    """Return the runs and races under some normalisations, and the cells of other readings, each with all criteria."""
    runs = [(cell.RACE, RACE_CHANGE), *((solver, change) for solver in SOLVERS for change in changes)]
    named: list[dict[str, Any]] = [{"normalisation": name, "gamma": gamma, "tau": tau, "solver": solver, "change": change}
                                   for name in normalisations for gamma, tau in SETTINGS for solver, change in runs]  # fmt: skip
    counted = [{"normalisation": "none", "gamma": gamma, "tau": tau, "solver": solver, "change": cell.CHANGES[-1], **variant._asdict()}
               for variant in variants for gamma, tau in SETTINGS for solver in SOLVERS]  # fmt: skip
    return (*named, *counted)


EXPERIMENT = Experiment(
    name="chen-table4",
    title="PG against AG on Scene",
    source="Chen, Liu, Ye, ACM TKDD 5(4), 2012, section 7.4, table IV, figures 6 and 7",
    about=f"""\
Algorithms 1 (PG) and 2 (AG) of the paper on all of Scene (2407 examples, 294 features, 6 tasks, squares with 1/2), from zero, stopped where
one step changes the objective by less than 10^-i, in the paper's two settings, gamma 1 with tau 2 and gamma 6 with tau 4. The search for
the step starts at L = 1, which the paper does not say. Every run is one cell, timed by itself on one core; one that is not stopped within
{cell.MOST_ITERATIONS} iterations has no number. The optimum is proven to {cell.REFERENCE_GAP:g} by `{cell.REFERENCE}`.

The paper's text leaves open how Scene is normalised, whether the loss is a sum or a mean over the examples, how labels are coded, and
whether data are centred: each of these readings is a protocol, with its iterations; the normalisations have seconds and gaps too, and
figures show "{MAIN}". "none", and a sum of raw squares on labels -1/+1, are one reading, run twice: by what these two differ,
a number of iterations hangs on rounding. AG does not lower the objective in every step, and where it first changes by little is such a
number.

A number counts as reproduced within a factor of 2, and "much faster" means less than half of the iterations, which are choices of ours.""",
    scales={
        "small": Scale(
            _grid([MAIN], SMALL_CHANGES, [variant for variant in VARIANTS if variant.loss == "mean"]),
            "one normalisation, five of the ten stopping criteria; a minute on one core.",
        ),
        "full": Scale(
            _grid([*NORMALISATIONS], cell.CHANGES, VARIANTS), "four normalisations, all ten stopping criteria; eight minutes on two cores."
        ),
    },
    compute=cell.compute,
    values=values,
    claims=CLAIMS,
    sections=(
        *(Lines(f"{measure.capitalize()}, ours and published", (measure,), "change", "solver", "gamma", name=measure, at={"solver": "*"},
                words=f"Under '{MAIN}'.", log="xy", ticks=False) for measure in ("iterations", "seconds")),
        Lines("How far from the optimum the rule stops", _GAPS, "change", "solver", dash="gamma", name="gaps", log="xy", ticks=False,
              words="The rule says nothing about either: the relative gap that the residuals of the last point prove; and its excess over "
              "the best lower bound, relative to the optimum."),
        Lines("AG to the objective of PG", (_COURSE,), "step", "solver", "gamma", "curve", name="race", log="xy", ticks=False,
              words=f"As in the paper's figure 6: PG stops where a step changes the objective by less than {RACE_CHANGE:.0e}, AG where its "
              "objective is as low. Relative to the proven optimum, which the paper did not have; dashed: bounds of theorems 5.1 and 5.2."),
        Table("Iterations under every reading", ("iterations",), ("gamma", "change", "solver"), ("reading",), name="readings", digits=0),
    ),
    subject="solver",
    subjects=tuple(SHORT.values()),
    protocols={"reading": READINGS},
    labels={f"{gamma:g}": f"gamma {gamma:g}, tau {tau:g}" for gamma, tau in SETTINGS},
    titles={"change": "Change of the objective below", "step": "iterations"},
    uses=(PROBLEM, *SOLVERS, cell.REFERENCE),
    data=lambda settings: (cell.data_of(settings),),
)  # fmt: skip
