"""Which figures a report has, and what it says of those that it has not."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from bench_mtl.report.figures import drawing, gallery, printing
from bench_mtl.report.registry import report_tables
from bench_mtl.results.loading import read_results


def run(solver, problem, seconds, **more):
    asked = 1e-6 if solver == "scs" else None
    common = {"solver": solver, "problem": problem, "times": {"build": 0.1 if asked else 0.0, "solve": 1.0}}
    return {**common, "samples": [(0.01, 0, 1.0, 1.0, 0.5, None), (seconds, 9, 9.0, 1.0, 1.0, asked)][1 if asked else 0 :], **more}


@pytest.fixture
def made(make_store):
    def make(*runs, folder="results"):
        results = read_results(make_store(*runs, folder=folder))
        drawn, undrawn = gallery.drawings(results, report_tables(results))
        return [(one.kind, one.about) for one in drawn], {one.kind: one.sentence for one in undrawn}, drawn

    return make


GROUP = "family on synthetic"


def test_a_suite_of_like_problems_has_every_kind(made):
    kinds, undrawn, drawn = made(*(run(solver, f"p{i}", 1.0 + i, seed=i) for i in range(3) for solver in ("pg", "scs")))
    assert kinds == [*(("convergence", f"p{i}") for i in range(3)), ("profiles", GROUP), ("pareto", GROUP), ("speed_ups", "")]
    assert not undrawn.keys() & {kind for kind, _ in kinds}
    assert len({one.stem for one in drawn}) == len(drawn)
    for one in drawn:
        assert one.caption.endswith(".")
        assert len(one.data)
        assert one.draw().axes


def test_two_instances_are_told_to_be_too_few(made):
    kinds, undrawn, _ = made(run("pg", "p", 1.0), run("pg", "q", 2.0))
    assert [kind for kind, _ in kinds] == ["convergence"] * 2
    assert undrawn["profiles"] == f"Profiles are drawn of 3 instances or more, so not of {GROUP}."
    assert undrawn["pareto"] == f"Time against precision is drawn of 3 instances or more, so not of {GROUP}."
    assert undrawn["speed_ups"].startswith("No problem has a time of a specialised and of a generic solver")


def test_failures_alone_have_sentences_alone(made):
    kinds, undrawn, _ = made(*({"solver": "pg", "problem": "p", "seed": seed, "status": "crashed"} for seed in range(4)))
    assert not kinds
    assert set(undrawn) == {"convergence", "profiles", "pareto", "speed_ups", "spread", "patterns"}
    assert undrawn["convergence"] == "No run has a proven point on this problem, so there is no figure: the reasons are listed below."
    assert undrawn["profiles"] == f"No solver proves a gap of 1e-6 on {GROUP}, so there are no profiles."
    assert undrawn["pareto"].startswith(f"No solver proves a gap of 1e-1 on half of {GROUP}")


def test_a_family_is_profiled_as_a_whole_and_its_fronts_are_of_its_groups(made):
    data = [{"name": name} for name in ("a", "b")]
    runs = [run("pg", f"{one['name']}{i}", 1.0, data=one, seed=i) for one in data for i in range(3)]
    kinds, _, _ = made(*runs)
    groups = [(kind, about) for kind, about in kinds if kind in ("profiles", "pareto")]
    assert groups == [("pareto", "family on a"), ("pareto", "family on b"), ("profiles", "all of family")]
    kinds, _, _ = made(*runs[:2], *runs[3:5], folder="fewer")
    assert [about for kind, about in kinds if kind == "pareto"] == ["all of family"]


def test_of_many_problems_the_first_have_figures(made, monkeypatch):
    monkeypatch.setattr(gallery, "MOST_PROBLEMS", 2)
    kinds, undrawn, _ = made(*(run("pg", f"p{i}", 1.0) for i in range(3)))
    assert [about for kind, about in kinds if kind == "convergence"] == ["p0", "p1"]
    assert undrawn["convergence"].startswith("The first 2 problems alone have figures on paper")


def test_of_many_groups_the_first_are_drawn_and_one_sentence_tells_of_the_others(made, monkeypatch):
    monkeypatch.setattr(gallery, "MOST_GROUPS", 2)
    data = [{"name": name} for name in "abcd"]
    hopeless = {"samples": [], "times": {}, "status": "crashed"}
    runs = [
        run("pg", f"{one['name']}{i}", 1.0, data=one, seed=i, **(hopeless if one["name"] == "a" else {})) for one in data for i in range(8)
    ]
    kinds, undrawn, drawn = made(*runs)
    assert [about for kind, about in kinds if kind == "pareto"] == ["family on b", "family on c"], "nothing is proven on a"
    assert [about for kind, about in kinds if kind == "profiles"] == ["family on b", "all of family"], "the family as a whole, and one more"
    which = "is drawn of 2 groups of problems, families as a whole before others,"
    assert undrawn["profiles"] == f"A profile {which} and not of 2 more; the tables have all."
    assert undrawn["pareto"] == f"Time against precision {which} and not of 1 more; the tables have all."
    assert all(len(one.data) for one in drawn)


def test_of_many_sweeps_the_first_are_drawn_and_one_sentence_tells_of_the_others(made, monkeypatch):
    monkeypatch.setattr(gallery, "MOST_GROUPS", 2)
    data = [{"name": name, "examples": size} for name in "abcde" for size in (10, 20, 40)]
    kinds, undrawn, _ = made(*(run("pg", f"{one['name']}{one['examples']}", 1.0, data=one) for one in data))
    assert [about.split()[2].rstrip(",") for kind, about in kinds if kind == "scaling"] == ["a", "b"]
    assert undrawn["scaling"] == "Scaling is drawn of the first 2 sweeps and not of 3 more; the table has all."


def files_of(drawn, formats, processes):
    with printing.printing(drawn, formats, processes) as files:
        return files()


def test_several_processes_make_the_same_files_as_one(made, monkeypatch):
    _, _, drawn = made(*(run("pg", f"p{i}", 1.0 + i) for i in range(2)))
    alone = files_of(drawn, ["svg", "csv"], 1)
    monkeypatch.setattr(printing, "MANY", 2)
    monkeypatch.setattr(printing, "_together", once(printing._together))  # a second time, they are drawn here
    together = files_of(drawn, ["svg", "csv"], 2)
    assert list(together.items()) == list(alone.items())


def once(function):
    """A function that may be called one time."""
    calls = []

    def called(*arguments):
        assert not calls
        calls.append(arguments)
        return function(*arguments)

    return called


@pytest.mark.parametrize("broken", ["gone", "unpickled"])
def test_processes_that_fail_are_done_without(made, monkeypatch, broken):
    _, _, drawn = made(*(run("pg", f"p{i}", 1.0 + i) for i in range(2)))
    monkeypatch.setattr(printing, "MANY", 2)
    if broken == "gone":
        monkeypatch.setattr(printing, "ignore_interrupts", sys.exit)
    else:
        drawn = [replace(one, draw=lambda one=one: one.draw()) for one in drawn]
    assert list(files_of(drawn, ["png", "csv"], 2)) == [f"figures/p{i}.{form}" for i in range(2) for form in ("png", "csv")]


def test_stems_are_file_names_and_differ():
    stems = drawing.distinct_stems(["A b", "a-b", "../", "é", "x" * 200])
    assert stems == ["a-b", "a-b-2", "problem", "problem-2", "x" * 80]


def test_a_drawing_is_written_in_the_formats_asked_for_beside_its_data(made):
    _, _, (drawn, *_) = made(run("pg", "p", 1.0))
    assert list(drawing.files(drawn, ("csv", "png"))) == ["figures/p.png", "figures/p.csv"]
    assert list(drawing.files(drawn, ("csv",))) == ["figures/p.csv"]
    with pytest.raises(ValueError, match="formats: eps cannot be written, only svg, png, pdf"):
        drawing.files(drawn, ("png", "eps"))


def test_of_many_solvers_eight_lead_and_the_others_have_a_second_figure(made):
    runs = [run(f"s{i}", f"p{seed}", 1.0 + i, seed=seed) for seed in range(3) for i in range(9)]
    runs += [run("scs", f"p{seed}", 50.0, seed=seed) for seed in range(3)]
    kinds, _, drawn = made(*runs)
    assert kinds[:2] == [("convergence", "p0")] * 2
    first, rest = drawn[:2]
    assert (first.stem, rest.stem, rest.title) == ("p0", "p0-others", "Convergence on p0: the other solvers")
    assert set(first.data["solver"]) == {"s0", "scs", *(f"s{i}" for i in range(1, 7))}
    assert set(rest.data["solver"]) == {"s7", "s8"}
    assert "Of 10 solvers the printed figure has 8: those that prove most, soonest, after the best of each kind" in first.caption
    one, other = first.draw(), rest.draw()
    assert one.axes[0].get_xlim() == other.axes[0].get_xlim()
    assert one.axes[0].get_ylim() == other.axes[0].get_ylim()
    assert [text.get_text() for text in other.texts][:3] == ["p0: the other solvers", "s7", "s8"]
    for kind in ("profiles", "pareto"):
        first, rest = [one for one in drawn if one.kind == kind]
        assert first.chart is not None
        assert len(first.chart.solvers) == 10, "the page has them all"
        assert rest.chart is None
        assert len(set(first.data["solver"])) == 8
        assert len(set(rest.data["solver"])) == 2
        assert "scs" in set(first.data["solver"])
        assert len(first.draw().axes) == len(rest.draw().axes)


def test_eight_solvers_have_one_figure(made):
    kinds, _, drawn = made(*(run(f"s{i}", "p", 1.0 + i) for i in range(8)))
    assert [kind for kind, _ in kinds] == ["convergence"]
    assert "second figure" not in drawn[0].caption
