"""How solvers look: always the same, and apart from each other; also in plots of one's own."""

import sqlite3
from contextlib import closing
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from seaborn.utils import relative_luminance

from bench_mtl import InputError, load_registry
from bench_mtl.report.figures import looks, solver_look, style
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED, UNKNOWN

PUBLISHED = sorted((Path(__file__).parents[3] / "reports").glob("*/results.sqlite"))

KNOWN = looks.known_looks()

#: Colours that are closer than this are taken for one another in thin lines.
NEAR = 0.1


def contrast(one, other):
    dark, light = sorted(relative_luminance(to_rgb(colour)) + 0.05 for colour in (one, other))
    return light / dark


def distance(one, other):
    """How far two colours are apart for the eye, in Oklab, by Ottosson's matrices: black and white are 1 apart."""
    cones = np.array([[0.41222147, 0.53633254, 0.05144599], [0.21190350, 0.68069955, 0.10739696], [0.08830246, 0.28171884, 0.62997870]])
    lab = np.array([[0.21045426, 0.79361779, -0.00407205], [1.97799850, -2.42859221, 0.45059371], [0.02590404, 0.78277177, -0.80867577]])
    linear = [np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in map(np.array, map(to_rgb, (one, other)))]
    return float(np.linalg.norm(lab @ (np.cbrt(cones @ linear[0]) - np.cbrt(cones @ linear[1]))))


def hard_to_tell(labels):
    """The pairs of labels that one figure may show with near colours, the same marker and the same line."""
    looked = {label: (*looks.look(label, SPECIALISED), looks.kind_of(label)) for label in labels}
    pairs = combinations(sorted(looked.items()), 2)
    return [(a, b) for (a, one), (b, other) in pairs if one[1:] == other[1:] and distance(one[0], other[0]) < NEAR]


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.parent.name)
def test_solvers_of_a_published_problem_are_told_apart(path):
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
        together = set(file.execute("select distinct problem_label, solver_label from run"))
    for problem in {problem for problem, _ in together}:
        assert hard_to_tell(label for of, label in together if of == problem) == []


def test_solvers_that_fit_one_problem_are_told_apart_and_colours_of_a_kind_are_far_from_each_other():
    registry = load_registry()
    variants = [variant for solver in registry.solvers.values() for variant in solver.variants()]
    for family in registry.problems.values():
        for problem in family.examples(np.random.default_rng(0)):
            labels = [variant.label for variant in variants if not variant.incompatibility(problem)]
            assert labels
            assert hard_to_tell(labels) == [], family
    for palette in KNOWN.palettes.values():
        assert min(distance(*pair) for pair in combinations(palette, 2)) > NEAR


def test_known_looks_differ_and_every_solver_of_the_package_is_known():
    assert len(set(KNOWN.solvers.values())) == len(KNOWN.solvers)
    assert all(colour in KNOWN.palettes[looks.kind_of(label)] for label, (colour, _) in KNOWN.solvers.items())
    labels = {variant.label for kind in load_registry().solvers.values() for variant in kind.variants()}
    assert labels
    assert {label for label in labels if not label.startswith(tuple(KNOWN.solvers))} == set()


def test_every_look_is_seen_on_white_and_on_a_dark_page():
    variants = [looks.look(f"{label}{ending}", SPECIALISED) for label in KNOWN.solvers for ending in KNOWN.endings]
    for colour in {*(colour for palette in KNOWN.palettes.values() for colour in palette), *(colour for colour, _ in variants)}:
        assert contrast(colour, "#ffffff") >= 3.0, colour
        assert contrast(colour, "#16181d") >= 3.0, colour
    assert {marker for _, marker in (*variants, *KNOWN.solvers.values())} <= set(looks.MARKERS)


def test_the_dash_tells_the_kind_and_nothing_else_does_for_a_known_solver():
    found = [style.solver_looks({"pdhg": kind})["pdhg"] for kind in (SPECIALISED, GENERIC, PEER, UNKNOWN)]
    assert found[0]["linestyle"] == "-"
    assert len({str(look["linestyle"]) for look in found}) == 4
    assert len({(look["color"], look["marker"]) for look in found}) == 1


def test_variants_and_strangers_have_looks_that_no_other_solver_has():
    for label in ("auto", "scs", "consensus_admm"):
        variants = [looks.look(f"{label}{ending}", SPECIALISED) for ending in list(KNOWN.endings)[:30]]
        assert len({KNOWN.solvers[label], *variants}) == 31
        assert looks.look(f"{label} step=7", SPECIALISED) != KNOWN.solvers[label]
    assert looks.look("scs_tuned_sdp", GENERIC) == looks.look("scs_tuned_sdp", PEER) != looks.look("scs_sdp", GENERIC)
    assert looks.look("pdhgx", SPECIALISED) != looks.look("pdhg_x", SPECIALISED), "the first is no variant"
    for kind in (SPECIALISED, GENERIC, PEER):
        strangers = [looks.look(f"stranger {i}", kind) for i in range(40)]
        assert not set(strangers) & set(KNOWN.solvers.values())
        assert {colour for colour, _ in strangers} <= set(KNOWN.palettes[kind])
        assert len(set(strangers)) > 15


def test_a_plot_of_one_s_own_has_the_looks_of_reports():
    kinds = {"pdhg": SPECIALISED, "scs_tuned": GENERIC, "celer": PEER, "scs_sdp": GENERIC, "auto target=0.01": SPECIALISED}
    for label, of_reports in style.solver_looks(kinds).items():
        assert solver_look(label) == of_reports | {"label": label}
        (line,) = Figure().subplots().plot([1.0, 2.0], [3.0, 4.0], **solver_look(label))
        assert line.get_label() == label
    assert solver_look("my_solver")["color"] in KNOWN.palettes[SPECIALISED]
    assert solver_look("my_solver", "generic")["color"] in KNOWN.palettes[GENERIC]
    with pytest.raises(InputError, match="kind must be one of specialised, generic, peer, not 'gpu'"):
        solver_look("my_solver", "gpu")
