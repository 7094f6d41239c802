"""Tables, figures and the first sentences of `quattoni-cost`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bench_mtl.papers.experiment import Section
from bench_mtl.papers.quattoni.cost_cell import AXES, BASE, ITERATION, MATRICES, MEMORY, METHODS, NAMES, STEPS, TIME
from bench_mtl.papers.quattoni.cost_figures import Guide, panels
from bench_mtl.papers.quattoni.cost_fits import (
    axis_law,
    by_examples,
    common_ladder,
    decades,
    exponent,
    larger_half,
    log_law,
    of_iteration,
    of_memory,
    of_time,
    part_of,
    slopes,
    smaller_half,
    text,
)
from bench_mtl.papers.summaries import CONFIDENCE

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.stats.fits import PowerLaw


def headline(rows: pd.DataFrame) -> str:
    """Return what came out, a sentence for each claim that has rows."""
    return "\n".join(
        f"- {line}" for line in (_said_of_time(rows), _said_of_memory(rows), _said_of_steps(rows), _said_of_iteration(rows)) if line
    )


def sections(rows: pd.DataFrame) -> list[Section]:
    """Return a section with a table and a figure for each part that has rows."""
    makers = {TIME: _time, MEMORY: _memory, STEPS: _steps, ITERATION: _iteration}
    return [make(own) for part, make in makers.items() if len(own := part_of(rows, part))]


def _between(fits: Sequence[PowerLaw | None]) -> str:
    values = [fit.exponent for fit in fits if fit is not None]
    return f"{min(values):.2f} to {max(values):.2f}" if values else ""


def _said_of_time(rows: pd.DataFrame) -> str:
    own = part_of(rows, TIME)
    if not len(own):
        return ""
    known = {method: _between([of_time(part) for _, part in own[own["method"] == method].groupby("matrix")]) for method in METHODS}
    said = "; ".join(f"{NAMES[method]} {values}" for method, values in known.items() if values)
    span = decades(own["entries"].tolist())
    law = log_law(sorted(set(own["entries"])))
    return f"Time of a projection over {span:.1f} decades of dm, exponents by matrix: {said} (exactly n log n: {law:.2f})." if said else ""


def _said_of_memory(rows: pd.DataFrame) -> str:
    own = part_of(rows, MEMORY)
    if not len(own):
        return ""
    largest = own[own["entries"] >= own["entries"].max() / 2.0]
    each = {method: part["peak_bytes"] / part["entries"] for method, part in largest.groupby("method")}
    said = "; ".join(f"{NAMES[method]} {values.min():.1f} to {values.max():.1f}" for method, values in each.items())
    return f"Peak memory at the largest size, bytes an entry, the result included: {said}."


def _said_of_steps(rows: pd.DataFrame) -> str:
    own = part_of(rows, STEPS)
    said = [
        f"{size} examples a task {slopes(part, common_ladder(part)).text(2)} (eps down to {common_ladder(part)[-1]:g})"
        for size, part in by_examples(own).items()
        if len(common_ladder(part)) >= 3
    ]
    bound = "at most 2 is consistent with the bound O(1/eps^2), which is an upper one"
    return f"Slope of log iterations against log 1/eps: {'; '.join(said)}; {bound}." if said else ""


def _said_of_iteration(rows: pd.DataFrame) -> str:
    own = part_of(rows, ITERATION)
    said = []
    for axis in AXES:
        half = larger_half(part_of(own, ITERATION, axis=axis))
        values = [f"{fit.exponent:.2f}" for method in METHODS if (fit := of_iteration(half, f"step_{method}")) is not None]
        said += [f"{axis} {' and '.join(values)}"] if values else []
    return f"Exponents of an iteration, larger half of the sizes, the papers' projection and Newton's: {'; '.join(said)}." if said else ""


# The projection.

_ABOUT_TIME = f"""\
Exponents over all sizes and draws, with {CONFIDENCE:.0%} intervals. The second and third are 1 where the law is exactly n log n; the first
is then the one in the last column. An upper bound counts operations; a matrix that no longer fits into a cache has slower ones."""


def _time(own: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown = [], []
    for matrix in _present(own, "matrix", MATRICES):
        for method in _present(own, "method", METHODS):
            part = own[(own["matrix"] == matrix) & (own["method"] == method)]
            if not len(part):
                continue
            sizes = part["entries"].tolist()
            over_log = exponent(sizes, [each / math.log(n) for each, n in zip(part["best_seconds"], sizes, strict=True)])
            fits = {"n": of_time(part), "n_log_n": of_time(part, logarithm=True), "over_log_n": over_log}
            largest = part[part["entries"] == part["entries"].max()]
            each = float((largest["best_seconds"] / largest["entries"]).median()) * 1e9
            place = {"matrix": matrix, "method": method, "smallest": min(sizes), "largest": max(sizes)}
            table.append({**place, **_digits(fits), "n_log_n_has": log_law(sizes), "nanoseconds_an_entry": each})
            cells = [text(fits["n"]), text(fits["n_log_n"]), text(fits["over_log_n"]), f"{log_law(sizes):.3f}", f"{each:.3g}"]
            shown.append([matrix, _SHORT[method], *cells])
    heads = ["Matrix", "By", "Time in n", "Time in n log n", "Time / log n in n", "n log n in n", "ns an entry, largest"]
    frame = own.assign(panel=own["method"].map(NAMES), line=own["matrix"], x=own["entries"], y=own["best_seconds"])
    draw = partial(
        panels, "Time of a projection", frame, [NAMES[method] for method in METHODS], MATRICES, "entries n that are not 0", "seconds",
        Guide("n log n", lambda n: n * math.log(n)),
    )  # fmt: skip
    return Section(
        "Time of the projection", _ABOUT_TIME, "time", pd.DataFrame(table), pd.DataFrame(shown, columns=heads, dtype="str"), draw
    )


_SHORT = {method: name.removeprefix("the ").partition(" ")[0] for method, name in NAMES.items()}


def _digits(fits: Mapping[str, PowerLaw | None]) -> dict[str, float | None]:
    """Return exponents with their ends, as columns of a table."""
    found: dict[str, float | None] = {}
    for name, fit in fits.items():
        values = (None, None, None) if fit is None else (fit.exponent, fit.low, fit.high)
        found |= {f"exponent_{name}{end}": value for end, value in zip(("", "_low", "_high"), values, strict=True)}
    return found


_ABOUT_MEMORY = """\
The growth of the largest resident memory of a process during one projection, its result among it, over the entries of the matrix, each of
8 bytes; medians of the draws."""


def _memory(own: pd.DataFrame) -> Section:
    import pandas as pd

    own = own.assign(each=own["peak_bytes"] / own["entries"])
    table, shown = [], []
    for matrix in _present(own, "matrix", MATRICES):
        for method in _present(own, "method", METHODS):
            part = own[(own["matrix"] == matrix) & (own["method"] == method)]
            if not len(part):
                continue
            by_size = part.groupby("size")["each"].median()
            fit = of_memory(part)
            table.append(
                {"matrix": matrix, "method": method, **_digits({"n": fit})} | {f"bytes_{int(n)}": each for n, each in by_size.items()}
            )
            shown.append(
                {"Matrix": matrix, "By": _SHORT[method], "Bytes in n": text(fit)} | {f"{int(n):,}": f"{x:.1f}" for n, x in by_size.items()}
            )
    frame = own.assign(panel=own["matrix"], line=own["method"].map(NAMES), x=own["entries"], y=own["peak_bytes"])
    draw = partial(
        panels, "Peak memory of a projection", frame, _present(own, "matrix", MATRICES), tuple(NAMES.values()), "entries n", "bytes",
        Guide("linear", lambda n: n),
    )  # fmt: skip
    return Section(
        "Memory of the projection", _ABOUT_MEMORY, "memory", pd.DataFrame(table), pd.DataFrame(shown, dtype="str").fillna("-"), draw
    )


# Steps to an accuracy.

_ABOUT_STEPS = f"""\
Medians of the first step within a relative eps of the proven optimum, and how many draws reached it. Slopes of log iterations against
log 1/eps are fitted to each draw, over the eps that all draws reached, or the smaller half of them; means with {CONFIDENCE:.0%} intervals.
A slope of at most 2 is consistent with an upper bound of O(1/eps^2). It does not prove it: an easier problem may be solved faster."""


def _steps(own: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown, points = [], [], []
    for size, part in by_examples(own).items():
        ladder = common_ladder(part)
        for row in part.to_dict("records"):
            points += [
                {"examples": int(row["examples"]), "seed": row["seed"], "eta0": row["eta0"], "eps": eps, "iterations": t}
                for eps, t in zip(row["ladder"], row["reached"], strict=False)
            ]
        whole, half = slopes(part, ladder), slopes(part, smaller_half(ladder))
        etas = ", ".join(f"{eta:g}" for eta in sorted(part["eta0"].unique()))
        table.append(
            {"examples": size, "slope": whole.value, "half_width": whole.half, "slope_smaller_eps": half.value,
             "half_width_smaller_eps": half.half, "repetitions": whole.repetitions, "least_eps": min(ladder, default=math.nan)}
        )  # fmt: skip
        reach = f"{ladder[-1]:g}" if ladder else "-"
        shown.append([str(size), etas, str(len(part)), reach, whole.text(2), half.text(2)])
    heads = ["Examples a task", "eta0 chosen", "Draws", "Least eps of all", "Slope", "Slope, smaller eps"]
    frame = pd.DataFrame(points, columns=["examples", "seed", "eta0", "eps", "iterations"])
    names = [f"{size} examples a task" for size in by_examples(own)]
    drawn = frame.assign(
        panel="", line=[f"{size} examples a task" for size in frame["examples"]], x=1.0 / frame["eps"], y=frame["iterations"]
    )
    draw = partial(
        panels, "Iterations to a relative accuracy eps", drawn, [""], names, "1 / eps", "iterations", Guide("slope 2", lambda x: x * x), 3.4
    )
    return Section(
        "Iterations to an accuracy", f"{_ABOUT_STEPS}\n\n{_reached(own)}", "steps", pd.DataFrame(table),
        pd.DataFrame(shown, columns=heads, dtype="str"), draw if len(frame) else None,
    )  # fmt: skip


def _reached(own: pd.DataFrame) -> str:
    """Return a list of the median iterations to each accuracy, for each number of examples."""
    import numpy as np

    lines = []
    for size, part in by_examples(own).items():
        counts: dict[float, list[int]] = {}
        for row in part.to_dict("records"):
            for eps, t in zip(row["ladder"], row["reached"], strict=False):
                counts.setdefault(eps, []).append(t)
        said = ", ".join(f"{eps:g}: {np.median(found):,.0f} ({len(found)})" for eps, found in counts.items())
        lines.append(f"- {size} examples a task, eps: iterations (draws): {said or 'none reached'}.")
    return "\n".join(lines)


# The time of an iteration.

_ABOUT_ITERATION = f"""\
Exponents of the seconds of an iteration in what grows, over all sizes and over the larger half, with {CONFIDENCE:.0%} intervals. Where the
examples grow the projection does not: it is a fixed cost, which makes the exponent over all sizes smaller. The subgradient alone, without
a projection, stands beside. Others stay at {BASE["examples"]} examples a task, {BASE["features"]} features and {BASE["tasks"]} tasks."""

_MEASURES = {"step_merge": "papers' projection", "step_newton": "Newton's", "subgradient": "no projection"}


def _iteration(own: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown = [], []
    for axis in _present(own, "axis", AXES):
        part = own[own["axis"] == axis]
        half = larger_half(part)
        sizes = f"{part['size'].min():.0f} to {part['size'].max():.0f}"
        law = axis_law(part) if axis != "examples" else 1.0
        for measure, name in _MEASURES.items():
            fits = {"all": of_iteration(part, measure), "larger": of_iteration(half, measure)}
            seconds = float(part.loc[part["size"] == part["size"].max(), measure].median())
            table.append({"axis": axis, "measure": measure, **_digits(fits), "claimed": law, "seconds_at_largest": seconds})
            claimed = "" if measure == "subgradient" and axis != "examples" else f"{law:.3f}"
            cells = [text(fits["all"]), text(fits["larger"]), claimed or "-", f"{1e3 * seconds:.3g}"]
            shown.append([f"{axis}, {sizes}", name, *cells])
    heads = ["What grows", "Iteration", "All sizes", "Larger half", "Claim", "ms, largest"]
    parts = [own.assign(panel=own["axis"], line=name, x=own["size"], y=own[measure]) for measure, name in _MEASURES.items()]
    draw = partial(
        panels, "Time of an iteration", pd.concat(parts), _present(own, "axis", AXES), tuple(_MEASURES.values()),
        {"examples": "examples a task", "features": "features", "tasks": "tasks"}, "seconds", Guide("linear", lambda n: n), 2.2,
    )  # fmt: skip
    return Section(
        "Time of an iteration", _ABOUT_ITERATION, "iteration", pd.DataFrame(table), pd.DataFrame(shown, columns=heads, dtype="str"), draw
    )


def _present(own: pd.DataFrame, column: str, names: Sequence[str]) -> list[Any]:
    return [name for name in names if (own[column] == name).any()]
