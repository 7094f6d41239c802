"""The style of all figures, for plots of one's own with pyplot."""

from __future__ import annotations

from typing import Any

from bench_mtl.report.figures import looks, style


def use_style() -> None:
    """Give all plots that are made after it the fonts, axes and grid of the figures of reports.

    It changes what the style sets in ``matplotlib.rcParams``, and nothing else; ``matplotlib.rcdefaults()`` undoes it. Formulas between
    dollars stay formulas, unlike in reports, whose labels come from others.
    """
    import matplotlib.style

    matplotlib.style.use({name: value for name, value in style.STYLE.items() if name != "text.parse_math"})


def solver_look(label: str, kind: str | None = None) -> dict[str, Any]:
    """Return how a solver is drawn in all figures, as options of a plot: ``axes.plot(seconds, gap, **solver_look("admm"))``.

    Colour and marker are those of the label, and never change. The line tells the kind: solid for specialised solvers, dashed for generic
    ones, dotted for peers.

    Parameters
    ----------
    label : of the solver, as in reports: ``"pdhg"``, ``"scs_tuned"``, ``"my_solver"``
    kind : "specialised", "generic" or "peer"; by default that of the label, "specialised" where it is not known

    Returns
    -------
    dict
        color, marker, linestyle, gid (the name of its group in an SVG file) and label.

    Raises
    ------
    InputError : another kind.
    """
    from bench_mtl.core.checks import one_of
    from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED

    chosen = looks.kind_of(label) if kind is None else one_of("kind", kind, (SPECIALISED, GENERIC, PEER))
    return style.solver_looks({label: chosen})[label] | {"label": label}
