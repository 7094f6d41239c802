"""The figures of `chen-table4`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_mtl.papers.chen.table4_cell import SOLVERS
from bench_mtl.papers.published import published

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMES = {"projected_gradient": "PG", "accelerated_gradient": "AG"}
_DASHED = (0, (4, 2))

#: Of theorems 5.1 and 5.2 for F - F* after k iterations, with L ||T_0 - T*||^2.
BOUNDS: Mapping[str, Callable[[float, float], float]] = {
    "pg": lambda rate, k: rate / (2.0 * k),
    "ag": lambda rate, k: 2.0 * rate / (k + 1.0) ** 2,
}

Number = Callable[[tuple[float, float], float, str, str], float | None]


class Points(NamedTuple):
    """One solver in one setting: by the change that its rule asks for."""

    pair: tuple[float, float]
    solver: str
    changes: tuple[float, ...]
    iterations: tuple[float | None, ...]
    seconds: tuple[float | None, ...]
    gaps: tuple[float | None, ...]
    published_iterations: tuple[float, ...]
    published_seconds: tuple[float, ...]


def points(number: Number, settings: Sequence[tuple[float, float]], changes: Sequence[float]) -> list[Points]:
    """Return what is drawn, of every setting and solver."""
    rows = published("chen2012_table4")
    found = []
    for pair in settings:
        for solver in SOLVERS:
            paper = [row for row in rows if (float(row["gamma"]), float(row["tau"])) == pair and row["solver"] == solver]
            steps, seconds, gaps = (
                tuple(number(pair, change, solver, name) for change in changes) for name in ("iterations", "run_seconds", "proven_gap")
            )
            their_steps, their_seconds = (tuple(float(row[name]) for row in paper) for name in ("iterations", "seconds"))
            found.append(Points(pair, solver, tuple(changes), steps, seconds, gaps, their_steps, their_seconds))
    return found


def costs(drawn: Sequence[Points]) -> Figure:
    """Iterations and seconds against the criterion, in two settings; the paper's dashed."""
    from matplotlib.lines import Line2D

    from bench_mtl.report.figures import style

    looks = style.styles_in_turn(_NAMES.values())
    kinds = [(name, dash, said) for name in _NAMES.values() for dash, said in (("-", "ours"), (_DASHED, "the paper"))]
    pairs = list(dict.fromkeys(each.pair for each in drawn))

    def look(name: str, dash: Any) -> dict[str, Any]:
        return style.line(looks[name], markersize=3.5, linewidth=1.2) | {"linestyle": dash}

    with style.styled():
        handles = [Line2D([], [], label=f"{name}, {said}", **look(name, dash)) for name, dash, said in kinds]
        figure, axes = style.sheet("Cost against the stopping criterion", [2.3] * 4, 2.6, handles, headed=1)
        panels = [(pair, quantity) for quantity in ("iterations", "seconds") for pair in pairs]
        for axis, (pair, quantity) in zip(axes, panels, strict=True):
            low, high = [], []
            for each in (each for each in drawn if each.pair == pair):
                name = _NAMES[each.solver]
                for values, dash in ((getattr(each, quantity), "-"), (getattr(each, f"published_{quantity}"), _DASHED)):
                    known = [(change, value) for change, value in zip(each.changes, values, strict=True) if value]
                    if known:
                        axis.plot(*zip(*known, strict=True), **look(name, dash))
                        low.append(min(value for _, value in known))
                        high.append(max(value for _, value in known))
            axis.set_title(f"gamma {pair[0]:g}, tau {pair[1]:g}")
            axis.set_xlabel("change of the objective below")
            axis.set_ylabel(quantity)
            style.logarithmic(axis, "y", min(low) / 1.5, max(high) * 1.5)
            _criteria(axis)
    return figure


def gaps(drawn: Sequence[Points]) -> Figure:
    """Return the proven gap where the rule stops."""
    from matplotlib.lines import Line2D

    from bench_mtl.report.figures import style

    looks = style.styles_in_turn(_NAMES.values())
    dashes = dict(zip(dict.fromkeys(each.pair for each in drawn), ("-", _DASHED), strict=True))

    def look(each: Points) -> dict[str, Any]:
        return style.line(looks[_NAMES[each.solver]], markersize=4.0, linewidth=1.2) | {"linestyle": dashes[each.pair]}

    with style.styled():
        handles = [
            Line2D([], [], label=f"{_NAMES[each.solver]}, gamma {each.pair[0]:g}, tau {each.pair[1]:g}", **look(each)) for each in drawn
        ]
        figure, (axis,) = style.sheet("Proven gap where the rule stops", [4.2], 2.8, handles)
        known = [gap for each in drawn for gap in each.gaps if gap]
        for each in drawn:
            axis.plot(*zip(*[(change, gap) for change, gap in zip(each.changes, each.gaps, strict=True) if gap], strict=True), **look(each))
        axis.set_xlabel("change of the objective below")
        axis.set_ylabel("proven relative gap")
        style.logarithmic(axis, "y", min(known) / 2.0, max(known) * 2.0, style.gap)
        _criteria(axis)
    return figure


def race(cells: Sequence[Mapping[Any, Any]]) -> Figure:
    """Excess over the optimum against iterations, and the bounds of the theorems."""
    from matplotlib.lines import Line2D

    from bench_mtl.report.figures import style

    looks = style.styles_in_turn(["PG", "AG"])
    with style.styled():
        handles = [Line2D([], [], label=name, **style.line(looks[name], linewidth=1.4) | {"marker": ""}) for name in looks]
        handles += [Line2D([], [], label=f"bound for {name}", color=looks[name].colour, linewidth=0.7, linestyle=_DASHED) for name in looks]
        figure, axes = style.sheet("AG until it is as good as PG", [3.4] * len(cells), 2.7, handles, headed=1)
        for axis, cell in zip(axes, cells, strict=True):
            low, most = 1.0, 1.0
            for name in looks:
                known = list(_positive(cell, name.lower()))
                steps, excess = zip(*known, strict=True)
                axis.plot(steps, excess, color=looks[name].colour, linewidth=1.4)
                axis.plot(steps[-1:], excess[-1:], color=looks[name].colour, marker=looks[name].marker, markersize=5.0)
                axis.plot(
                    steps,
                    [BOUNDS[name.lower()](cell["rate"], k) / cell["optimum"] for k in steps],
                    color=looks[name].colour, linewidth=0.7, linestyle=_DASHED,
                )  # fmt: skip
                low, most = min(low, *excess), max(most, *steps)
            axis.set_title(f"gamma {cell['gamma']:g}, tau {cell['tau']:g}")
            axis.set_xlabel("iterations")
            axis.set_ylabel("relative excess over the optimum")
            style.logarithmic(axis, "x", 0.8, most * 1.3)
            style.logarithmic(axis, "y", low / 2.0, 10.0, style.gap)
    return figure


def _positive(cell: Mapping[Any, Any], solver: str) -> Iterator[tuple[float, float]]:
    """Points that a logarithmic axis has."""
    for step, excess in zip(cell[f"{solver}_steps"], cell[f"{solver}_excess"], strict=True):
        if step > 0 and excess > 0.0:
            yield step, excess


def _criteria(axis: Any) -> None:
    """The criterion along the x axis, tighter to the right."""
    from bench_mtl.report.figures import style

    axis.set(xscale="log", xlim=(3e-1, 3e-11))
    style.ticks(axis, "x", [1e-1, 1e-4, 1e-7, 1e-10], style.gap)
