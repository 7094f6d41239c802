"""The slides' portfolio design, sequentially: log-wealth of online methods on markets, against the best fixed portfolio in hindsight."""

from __future__ import annotations

import pandas as pd

from papers.experiment import Experiment, Scale, grid
from papers.figures import Lines
from papers.published import published
from papers.singer import sequential_cell as cell
from papers.singer.curves import EARLY, ELSEWHERE, HINDSIGHT, LOSS, NOT_ZERO, REGRET, SHARE, SLOPE, USED, so_far
from papers.singer.curves import values as of_passes
from papers.tables import Table
from papers.values import MEASURE, NONE, SEED, VALUE, melted, tidy

RULES = (ELSEWHERE, EARLY, HINDSIGHT)
NAMES = {
    cell.PROJECTED: "projection", cell.EG: "EG", cell.CAPPED: f"projection, at most {cell.CAP:g}",
    cell.EG_CONSTANT: f"EG, rate {cell.CONSTANT_RATE:g}", cell.HOLD: "bought once", cell.UNIFORM: "even shares",
    cell.FIXED: "best fixed", cell.FIXED_CAPPED: f"best fixed, at most {cell.CAP:g}",
}  # fmt: skip
WEALTH, GAIN = "log-wealth", "log-wealth above even shares"
_TRADED = (cell.PROJECTED, cell.EG, cell.CAPPED, cell.EG_CONSTANT, cell.HOLD)
_SETTINGS = ("market", "method", "rule", "T")


def values(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what passes give by market, method and rule, what is gained over even shares, and the best fixed portfolios."""
    passes = of_passes(rows, ("market",), RULES)
    wealth = passes[passes[MEASURE] == LOSS].assign(measure=WEALTH, value=lambda frame: -frame[VALUE])
    fixed = rows[rows["method"].isin((cell.FIXED, cell.FIXED_CAPPED))]
    ends = {name: [each[-1] for each in fixed.get(name, [])] for name in ("fixed", "fixed_features")}
    best = melted(fixed.assign(wealth=[-loss for loss in ends["fixed"]], held=ends["fixed_features"]), ("market", "method"),
                  {WEALTH: "wealth", USED: "held"})  # fmt: skip
    return tidy([passes, wealth, _gains(passes), *(best.assign(rule=rule, T=NONE) for rule in RULES)], _SETTINGS)


def _gains(passes: pd.DataFrame) -> pd.DataFrame:
    """Return the log-wealth so far above that of even shares, rebalanced every period, on the same draw."""
    losses = passes[passes[MEASURE] == so_far(LOSS)]
    even = losses.loc[losses["method"] == cell.UNIFORM, ["market", "rule", "T", SEED, VALUE]]
    both = losses.merge(even, on=["market", "rule", "T", SEED], suffixes=("", "_even"))
    return both.assign(measure=GAIN, value=both[f"{VALUE}_even"] - both[VALUE])


_CURVES = "Means over the draws in bands of their intervals; eta0 by the other draws."

EXPERIMENT = Experiment(
    name="singer-sequential",
    title="Sequential portfolios: projection against exponentiated gradient",
    source="Singer's slides, MMDS 2008, portfolio design and domain constrained empirical risk",
    about=f"""\
sum_t log(w_t.x_t) with w_t on the simplex, chosen before the price relatives x_t are known; no costs of trading. Projection:
w <- P(w + eta_t x_t / w_t.x_t) onto the simplex, or onto its part with at most {cell.CAP:g} in any asset. EG (Helmbold, Schapire, Singer,
Warmuth 1998): shares times exp(eta_t x_tj / w_t.x_t). Both start even and have eta_t = eta0 / sqrt(t), eta0 from one grid,
{cell.ETAS[0]:.2g} to {cell.ETAS[-1]:g} by factors of 2, by one rule: the best mean log-wealth of the other draws (elsewhere), the best on
the first eighth of the periods (early), or on all of them (hindsight, which nobody has). Beside them EG with the constant rate
{cell.CONSTANT_RATE:g} of its authors, even shares rebalanced or bought once, and the best fixed portfolio. Markets: `synthetic_market` as
in the suite singer-portfolio: {"; ".join(f"{name}: {options['periods']} periods" for name, options in cell.MARKETS.items())}; the
volatile one has 0.3 a period for 0.02.""",
    scales={
        "small": Scale(grid(4, market=tuple(cell.MARKETS), method=cell.METHODS), "4 draws of each market: half a minute."),
        "full": Scale(grid(100, market=tuple(cell.MARKETS), method=cell.METHODS), "100 draws of each market: 7 minutes on two cores."),
    },
    compute=cell.compute,
    values=values,
    claims=published("singer2008_sequential"),
    sections=(
        Table("Log-wealth", (WEALTH,), ("market", "method"), name="log-wealth", digits=2, words="""\
At the end, in nats; means over the draws ± half of the 95 % interval, eta0 by the other draws. The best fixed portfolio is proven, by the
certificate of `portfolio`, to a relative gap of 1e-6."""),
        Table("Gains", (WEALTH,), ("market", "rule"), name="gains", digits=2,
              pairs=((cell.PROJECTED, cell.EG), *((method, cell.UNIFORM) for method in _TRADED)),
              words="Differences in log-wealth on the same draws, by each rule for eta0; even shares are rebalanced every period."),
        Table("Assets held", (NOT_ZERO, USED), ("market", "method", "rule"), name="assets", digits=1, spread="none",
              at={"method": (*cell.SCHEDULED, cell.FIXED)},
              words="Shares at the end that are not 0, and those above 1e-6; means over the draws."),
        Table("Regret", (REGRET, SLOPE, SHARE), ("market", "method", "rule"), name="regret", digits=2, at={"method": cell.SCHEDULED},
              words="""\
The log-wealth of the best fixed portfolio over all periods (within the same cap) minus that of the method; the slope of log regret against
log T over the last three doublings of T, for each draw; the largest share that a regret at any checkpoint is of Zinkevich's bound for the
same eta0, with the longest gradient met (without its mean) and the diameter sqrt(2)."""),
        Lines("Regret against the best fixed portfolio", (so_far(REGRET),), "T", "method", "market", name="regret-curves", log="xy",
              ticks=False, words=_CURVES),
        Lines("Gains over even shares", (GAIN,), "T", "method", "market", name="gain-curves", at={"method": _TRADED}, share_y=False,
              ticks=False, words=_CURVES),
    ),
    subject="method",
    subjects=tuple(NAMES),
    protocols={"rule": RULES},
    labels={**NAMES, **{name: f"{name}, {options['assets']} assets" for name, options in cell.MARKETS.items()}},
    titles={"T": "Periods", "rule": "Rule for eta0"},
    uses=("portfolio", "simplex_newton"),
)  # fmt: skip
