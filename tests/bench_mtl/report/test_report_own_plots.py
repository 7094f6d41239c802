"""The style of all figures, for plots of one's own."""

from __future__ import annotations

import matplotlib
import pytest
from matplotlib.figure import Figure

from bench_mtl.core.errors import InputError
from bench_mtl.report.figures import looks, solver_look, style, use_style
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED


def test_a_solver_looks_as_in_reports() -> None:
    kinds = {"pdhg": SPECIALISED, "scs_tuned": GENERIC, "celer": PEER, "scs_sdp": GENERIC, "auto target=0.01": SPECIALISED}
    for label, of_reports in style.line_styles(kinds).items():
        own = solver_look(label)
        assert own == {"color": of_reports.colour, "marker": of_reports.marker, "linestyle": of_reports.dash, "label": label}
        (line,) = Figure().subplots().plot([1.0, 2.0], [3.0, 4.0], **own)
        assert line.get_label() == label


def test_every_listed_solver_has_the_kind_of_its_colour() -> None:
    palettes = looks.known_looks().palettes
    for label, (colour, _) in looks.known_looks().solvers.items():
        assert colour in palettes[looks.kind_of(label)]


def test_an_unknown_solver_is_specialised_unless_it_is_said() -> None:
    assert looks.kind_of("my_solver") == SPECIALISED
    assert solver_look("my_solver") == solver_look("my_solver")
    assert solver_look("my_solver")["color"] in looks.known_looks().palettes[SPECIALISED]
    assert solver_look("my_solver", "generic")["color"] in looks.known_looks().palettes[GENERIC]
    with pytest.raises(InputError, match="kind must be one of specialised, generic, peer, not 'gpu'"):
        solver_look("my_solver", "gpu")


def test_the_style_sets_what_figures_have_and_nothing_else() -> None:
    with matplotlib.rc_context():
        before = dict(matplotlib.rcParams.copy())  # a look at one by one would choose a backend
        use_style()
        changed = {name for name, value in dict(matplotlib.rcParams.copy()).items() if value != before[name]}
        assert changed <= set(style.STYLE) - {"text.parse_math"}
        assert matplotlib.rcParams["axes.grid"] is True
