"""Which figures a report has, in what order, and the files that they become."""

import re
import sys
from dataclasses import replace

import pytest
from hand_reports import timed

from bench_mtl.report.figures import gallery, printing, style
from bench_mtl.report.registry import report_tables
from bench_mtl.results.loading import read_results


@pytest.fixture
def entries(make_store):
    def made(*runs, folder="results"):
        results = read_results(make_store(*runs, folder=folder))
        return gallery.gallery(results, report_tables(results))

    return made


def test_a_suite_of_like_problems_has_every_kind_and_the_dot_plot_is_first(entries):
    found = entries(*(timed(solver, 1.0 + i, problem=f"p{i}", seed=i) for i in range(5) for solver in ("pg", "scs")))
    group, gaps = "family on synthetic", [("gap", f"p{i}") for i in range(5)]
    kinds = [*[("seconds", "")] * 3, ("speed_ups", ""), ("spread", ""), *gaps, ("profile", group), ("front", group)]
    assert [(entry.kind, entry.subject) for entry in found] == kinds
    assert found[0].name == "seconds-1e-6"
    assert len({entry.name for entry in found}) == len(found)
    for entry in found:
        assert entry.caption.count(". ") <= 1, "two sentences at most"
        assert entry.caption.endswith(".")
        assert len(entry.data)
        assert entry.draw().axes


def test_of_many_solvers_eight_are_first_and_the_others_have_a_second_figure(entries):
    runs = [timed(f"s{i}", 1.0 + i, problem=f"p{seed}", seed=seed) for seed in range(5) for i in range(9)]
    found = entries(*runs, *(timed("scs", 50.0, problem=f"p{seed}", seed=seed) for seed in range(5)))
    first, rest = [entry for entry in found if entry.subject == "p0"]
    assert (first.name, rest.name, rest.title) == ("p0", "p0-others", "Proven gap on p0: the other solvers")
    assert set(first.data["solver"]) == {"s0", "scs", *(f"s{i}" for i in range(1, 7))}
    assert set(rest.data["solver"]) == {"s7", "s8"}
    for kind in ("profile", "front"):
        first, rest = [entry for entry in found if entry.kind == kind]
        assert "scs" in set(first.data["solver"])
        assert (first.data["solver"].nunique(), rest.data["solver"].nunique()) == (8, 2)
        assert rest.draw().axes


@pytest.mark.parametrize("broken", ["", "gone", "unpickled"])
def test_several_processes_make_the_same_files_as_one_and_those_that_fail_are_done_without(entries, monkeypatch, broken):
    found = entries(*(timed("pg", 1.0 + i, problem=f"p{i}") for i in range(2)))[-2:]
    monkeypatch.setattr(printing, "MANY", 2)
    calls = []
    monkeypatch.setattr(printing, "_together", lambda parts, together=printing._together: calls.append(1) or together(parts))
    if broken == "gone":
        monkeypatch.setattr(printing, "ignore_interrupts", sys.exit)
    elif broken:
        found = [replace(entry, plot=lambda data, plot=entry.plot: plot(data)) for entry in found]
    one, several = (list(printing.printed_figures(found, ["svg", "csv"], processes).items()) for processes in (1, 2))
    assert one == several
    assert len(calls) == (3 if broken else 2), "where all is well nothing is drawn a second time"


def test_in_an_svg_a_solver_is_a_class_of_its_lines_and_legend_and_words_have_the_page_s_colour(entries):
    entry = entries(timed("pg", 1.0, problem="p"), timed("a solver", 2.0, problem="p"))[-1]
    files = gallery.files(entry, ("svg", "csv"))
    drawing = files["figures/p.svg"].decode()
    for label in ("pg", "a solver"):
        assert f'class="solver-{style.slug(label)}"' in drawing
        assert drawing.count(f'class="legend-{style.slug(label)}"') == 2, "its line and its name"
    assert style.slug("a solver") != style.slug("a-solver")
    assert 'id="solver' not in drawing
    assert "fill: #ffffff" not in drawing, "the ground is that of the page"
    assert drawing.count("@media") == 2
    assert "currentColor" in drawing
    assert style.INK not in drawing.partition("</style>")[2]
    ids = re.findall(r' id="([^"]*)"', drawing)
    assert len(set(ids)) == len(ids)
    assert files == gallery.files(entry, ("svg", "csv")), "the same bytes"
