"""The slides' portfolio design, sequentially: log-wealth of online methods on markets, against the best fixed portfolio in hindsight."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from bench_mtl.papers.experiment import CellSettings, Experiment, Findings, PublishedNumber, Scale, Section, Verdict
from bench_mtl.papers.published import published
from bench_mtl.papers.singer.curves import (
    EARLY,
    ELSEWHERE,
    HINDSIGHT,
    judged_gains,
    judged_ratios,
    judged_slopes,
    judged_under,
    judged_within,
    long,
    relative,
)
from bench_mtl.papers.singer.sequential_cell import (
    CAP,
    CAPPED,
    CONSTANT_RATE,
    EG,
    EG_CONSTANT,
    ETAS,
    HOLD,
    MARKETS,
    METHODS,
    PROJECTED,
    UNIFORM,
    compute,
)
from bench_mtl.papers.summaries import CONFIDENCE, Mean, mean, paired_difference

if TYPE_CHECKING:
    import pandas as pd

RULES = (ELSEWHERE, EARLY, HINDSIGHT)
NAMES = {
    PROJECTED: "projection", EG: "EG", CAPPED: f"projection, at most {CAP:g}", EG_CONSTANT: f"EG, rate {CONSTANT_RATE:g}",
    HOLD: "bought once", UNIFORM: "even shares",
}  # fmt: skip
PLACES = {name: f"{name}, {options['assets']} assets" for name, options in MARKETS.items()}


def _grid(seeds: int) -> tuple[CellSettings, ...]:
    return tuple({"market": name, "method": method, "seed": seed} for seed in range(seeds) for name in MARKETS for method in METHODS)


def read(rows: pd.DataFrame) -> Findings:
    """Return what the slides say against these rows, tables of log-wealth, assets and regrets, and their curves."""
    found = long(rows, ["market"], RULES)
    comparisons = [_compared(row, found) for row in published("singer2008_sequential")]
    return Findings(tuple(comparisons), tuple(_sections(found, rows)) if len(found) else ())


# What the slides say.

_ABSENT = "the slides state the problem; a result of it is not in our copy of the document"


def _compared(row: Mapping[str, str], found: pd.DataFrame) -> PublishedNumber:
    what = f"{row['statement']} ({row['where']})"
    kind, quantity = row["relation"], row["quantity"]
    if kind == "absent":
        return PublishedNumber(what, "not in our copy", "see the table of log-wealth", Verdict.UNKNOWN, _ABSENT)
    if kind == "not run":
        why = "the markets are synthetic; a table of prices can be given to a suite"
        return PublishedNumber(what, "real prices", "-", Verdict.NOT_RUN, why)
    if kind == "fewer":
        ratios = {rule: {place: relative(part, quantity, PROJECTED, EG) for place, part in _markets(found, rule)} for rule in RULES}
        judged = judged_under({rule: judged_ratios(each, "fewer") for rule, each in ratios.items()})
        return PublishedNumber(what, "fewer than EG", *judged)
    if kind == "above":
        subject = EG if quantity == "gain_eg" else PROJECTED
        gains = {rule: {place: gain(part, subject, UNIFORM) for place, part in _markets(found, rule)} for rule in RULES}
        return PublishedNumber(what, "above even shares", *judged_under({rule: judged_gains(each) for rule, each in gains.items()}))
    own = found[found["method"] == (CAPPED if quantity == "bound_capped" else PROJECTED)]
    if quantity == "slope":
        slopes = {rule: {place: mean(part["slope"].dropna().tolist()) for place, part in _markets(own, rule)} for rule in RULES}
        return PublishedNumber(what, "slope at most 0.5", *judged_under({rule: judged_slopes(each) for rule, each in slopes.items()}))
    return PublishedNumber(what, "within the bound", *judged_within(own))


def gain(part: pd.DataFrame, subject: str, rival: str) -> Mean:
    """Return the paired difference in log-wealth."""
    loss = paired_difference(part, "loss", "method", subject, rival)
    return loss._replace(value=-loss.value)


def _markets(found: pd.DataFrame, rule: str) -> list[tuple[str, pd.DataFrame]]:
    own = found[found["rule"] == rule]
    return [(name, own[own["market"] == name]) for name in MARKETS if (own["market"] == name).any()]


# Tables and figures.


def _sections(found: pd.DataFrame, rows: pd.DataFrame) -> list[Section]:
    best = found[found["rule"] == (ELSEWHERE if (found["rule"] == ELSEWHERE).any() else HINDSIGHT)]
    return [_wealth(found, rows), _held(found, rows), _regrets(found), _regret_curves(best), _wealth_curves(best)]


_ABOUT_WEALTH = f"""\
Log-wealth at the end (nats; means over the draws ± half of the {CONFIDENCE:.0%} interval, eta0 by the other draws), and what a method gains
over even shares on the same draw, rebalanced every period, by each rule for eta0. The best fixed portfolio is proven: the certificate of
`portfolio`, to a relative gap of 1e-6."""


def _wealth(found: pd.DataFrame, rows: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown = [], []
    for name in [market for market in MARKETS if (found["market"] == market).any()]:
        for method, label in NAMES.items():
            own = {rule: part for rule in RULES for place, part in _markets(found, rule) if place == name}
            first = next(iter(own.values()))
            wealth = mean((-first.loc[first["method"] == method, "loss"]).tolist())
            gains = {rule: gain(part, method, UNIFORM) for rule, part in own.items()} if method != UNIFORM else {}
            table.append(
                {"market": name, "method": method, "log_wealth": wealth.value, "half_width": wealth.half, "repetitions": wealth.repetitions}
                | {f"gain_{rule}_{key}": getattr(each, key) for rule, each in gains.items() for key in ("value", "half")}
            )
            cells = {f"Gain, {rule}": each.text(2, sign=True) for rule, each in gains.items()}
            shown.append({"Market": PLACES[name], "Method": label, "Log-wealth": wealth.text(2)} | cells)
        for method, label in (("fixed", "best fixed"), ("fixed_capped", f"best fixed, at most {CAP:g}")):
            final = _best(rows, name, method)
            row: dict[str, float | str] = {"log_wealth": final.value, "half_width": final.half, "repetitions": final.repetitions}
            table.append({"market": name, "method": method, **row})
            shown.append({"Market": PLACES[name], "Method": label, "Log-wealth": final.text(2)})
    display = pd.DataFrame(shown).fillna("-").astype("str")
    return Section("Log-wealth", f"{_leads(found)}\n{_ABOUT_WEALTH}", "log-wealth", pd.DataFrame(table), display)


def _best(rows: pd.DataFrame, name: str, method: str) -> Mean:
    own = rows[(rows["market"] == name) & (rows["method"] == method)]
    return mean([-losses[-1] for losses in own["fixed"]] if "fixed" in own else [])


def _leads(found: pd.DataFrame) -> str:
    """Return a line for each rule: what projection gains over EG on each market."""
    lines = []
    for rule in RULES:
        gains = [(name, gain(part, PROJECTED, EG)) for name, part in _markets(found, rule)]
        known = [f"{name} {each.text(2, sign=True)}" for name, each in gains if each.repetitions]
        lines += [f"**Projection minus EG, nats, eta0 by {rule}: {', '.join(known)}.**"] if known else []
    return "\n".join(lines)


_ABOUT_HELD = """\
Assets with a share that is not 0 at the end, and with one above 1e-6; medians over the draws. The best fixed portfolio holds few."""


def _held(found: pd.DataFrame, rows: pd.DataFrame) -> Section:
    import pandas as pd

    table = []
    for name in [market for market in MARKETS if (found["market"] == market).any()]:
        for method in (PROJECTED, EG, CAPPED):
            counts: dict[str, float] = {}
            for rule in RULES:
                own = found[(found["market"] == name) & (found["rule"] == rule) & (found["method"] == method)]
                counts |= {f"non_zeros_{rule}": own["non_zeros"].median(), f"held_{rule}": own["features"].median()}
            table.append({"market": name, "method": method} | counts)
        own = rows[(rows["market"] == name) & (rows["method"] == "fixed")]
        if len(own):
            held = float(own["fixed_features"].map(lambda values: values[-1]).median())
            table.append({"market": name, "method": "fixed", "held_hindsight": held})
    frame = pd.DataFrame(table)
    shown = [
        {"Market": PLACES[row["market"]], "Method": NAMES.get(row["method"], "best fixed")}
        | {
            f"{head}, {rule}": _count(row.get(f"{key}_{rule}", math.nan))
            for rule in RULES
            for key, head in (("non_zeros", "Not 0"), ("held", "Above 1e-6"))
        }
        for row in frame.to_dict("records")
    ]
    return Section("Assets held", _ABOUT_HELD, "assets", frame, pd.DataFrame(shown, dtype="str"))


def _count(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.0f}"


_ABOUT_REGRET = """\
Regret: the log-wealth of the best fixed portfolio over the same periods (within the same cap) minus that of the method. Slope: of log
regret against log T over the last three doublings of T, for each draw. Share: the largest that a regret at any checkpoint is of
Zinkevich's bound for the same eta0, with the longest gradient met (without its mean) and the diameter sqrt(2)."""


def _regrets(found: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown = [], []
    for rule in RULES:
        for name, part in _markets(found, rule):
            for method in (PROJECTED, EG, CAPPED):
                own = part[(part["method"] == method) & part["regrets"].notna()]
                if not len(own):
                    continue
                end, slope = mean([each[-1] for each in own["regrets"]]), mean(own["slope"].dropna().tolist())
                share = own["bound_share"].max()
                table.append(
                    {"rule": rule, "market": name, "method": method, "regret": end.value, "regret_half": end.half, "slope": slope.value,
                     "slope_half": slope.half, "repetitions": slope.repetitions, "bound_share": share}
                )  # fmt: skip
                text = "-" if math.isnan(share) else f"{share:.2g}"
                shown.append([PLACES[name], NAMES[method], rule, end.text(2), slope.text(2), text])
    heads = ["Market", "Method", "eta0 by", "Regret at the end", "Slope", "Share of the bound"]
    return Section("Regret", _ABOUT_REGRET, "regret", pd.DataFrame(table), pd.DataFrame(shown, columns=heads, dtype="str"))


_ABOUT_CURVES = "Means over the draws in bands of their intervals; eta0 by the other draws."
_DRAWN = ("market", "method", "seed", "T", "value")


def _regret_curves(best: pd.DataFrame) -> Section:
    from bench_mtl.papers.singer.figures import panels, unrolled

    frame = unrolled(best, "regrets")
    draw = partial(panels, "Regret against the best fixed portfolio", frame, "market", PLACES, NAMES, "nats", width=2.6)
    return Section("Regret curves", _ABOUT_CURVES, "regret-curves", frame[list(_DRAWN)], None, draw if len(frame) else None)


def _wealth_curves(best: pd.DataFrame) -> Section:
    """Return the gains over even shares, draw by draw."""
    from bench_mtl.papers.singer.figures import panels, unrolled

    frame = unrolled(best, "losses")
    even = frame.loc[frame["method"] == UNIFORM, ["market", "seed", "T", "value"]].rename(columns={"value": "even"})
    frame = frame.merge(even, on=["market", "seed", "T"])
    frame = frame.assign(value=frame["even"] - frame["value"])[frame["method"] != UNIFORM]
    draw = partial(panels, "Log-wealth above even shares", frame, "market", PLACES, NAMES, "nats", logarithmic=False, width=2.6)
    return Section("Gains over even shares", _ABOUT_CURVES, "gain-curves", frame[list(_DRAWN)], None, draw if len(frame) else None)


EXPERIMENT = Experiment(
    name="singer-sequential",
    title="Sequential portfolios: projection against exponentiated gradient",
    source="Singer's slides, MMDS 2008, portfolio design and domain constrained empirical risk",
    about=f"""\
sum_t log(w_t.x_t) with w_t on the simplex, chosen before the price relatives x_t are known; no costs of trading. Projection:
w <- P(w + eta_t x_t / w_t.x_t) onto the simplex, or onto its part with at most {CAP:g} in any asset. EG (Helmbold, Schapire, Singer,
Warmuth 1998): shares times exp(eta_t x_tj / w_t.x_t). Both start even and have eta_t = eta0 / sqrt(t), eta0 from one grid,
{ETAS[0]:.2g} to {ETAS[-1]:g} by factors of 2, by one rule: the best mean log-wealth of the other draws (elsewhere), the best on the
first eighth of the
periods (early), or on all of them (hindsight, which nobody has). Beside them EG with the constant rate {CONSTANT_RATE:g} of its authors,
even shares rebalanced or bought once, and the best fixed portfolio. Markets: `synthetic_market` as in the suite singer-portfolio:
{"; ".join(f"{name}: {options['periods']} periods" for name, options in MARKETS.items())}; the volatile one has 0.3 a period for 0.02.""",
    scales={
        "small": Scale(_grid(4), "4 draws of each market: half a minute."),
        "full": Scale(_grid(30), "30 draws of each market: 3 minutes on two cores."),
    },
    compute=compute,
    read=read,
    uses=("portfolio", "simplex_newton"),
)
