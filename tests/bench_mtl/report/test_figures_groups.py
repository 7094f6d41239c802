"""Profiles, fronts and scaling, the dot plot of seconds, the map of speed-ups and the spread of ratios, against numbers by hand."""

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hand_reports import timed
from matplotlib.colors import to_rgb
from seaborn.utils import relative_luminance

from bench_mtl.report.figures import group_lines, maps, seconds
from bench_mtl.report.tables.contests import contests
from bench_mtl.report.tables.groups import groups
from bench_mtl.report.tables.instances import run_times
from bench_mtl.report.tables.winners import winners
from bench_mtl.results.frames import GENERIC, SPECIALISED
from bench_mtl.results.loading import View, read_results

NEVER = float("nan")


def instances(*gaps, **times):
    """Rows of `instance_times` from the seconds of every solver to each gap, instance by instance."""
    rows = [
        ("p", f"i{number}", solver, "specialised", gap, seconds, "verified")
        for solver, tuples in times.items()
        for number, of_gaps in enumerate(tuples)
        for gap, seconds in zip(gaps, of_gaps, strict=True)
    ]
    return pd.DataFrame(rows, columns=["problem", "instance", "solver", "kind", "target", "seconds", "status"])


@pytest.mark.parametrize(
    ("gaps", "times", "points", "front"),
    [
        (
            (0.1, 0.01),
            {
                "pg": [(1.0, 5.0), (2.0, NEVER), (3.0, NEVER)], "ag": [(4.0, 4.5), (4.0, 6.0), (NEVER, 9.0)],
                "no": [(NEVER, NEVER)] * 3, "one": [(0.1, 0.2), (NEVER, NEVER), (NEVER, NEVER)],
            },
            {("pg", 0.1): 2.0, ("ag", 0.1): 4.0, ("ag", 0.01): 6.0},
            {("pg", 0.1), ("ag", 0.01)},
        ),
        (
            (0.1, 0.01, 0.001),
            {"ladder": [(33.0, 33.0, 37.0)], "chosen": [(1.0, 9.0, 5.0)]},
            {("ladder", 0.01): 33.0, ("ladder", 0.001): 37.0, ("chosen", 0.1): 1.0, ("chosen", 0.001): 5.0},
            {("chosen", 0.1), ("chosen", 0.001)},
        ),
    ],
    ids=["half of the instances", "a smaller gap in the same time"],
)  # fmt: skip
def test_fronts_are_those_worked_out_by_hand(gaps, times, points, front):
    table = group_lines.front_points(instances(*gaps, **times))
    shown = table.set_index(["solver", "y"])
    assert shown["x"].to_dict() == points
    assert {point for point, is_on_front in shown["front"].items() if is_on_front} == front
    (axis,) = group_lines.fronts(table, "the group").axes
    for line in axis.lines:
        assert (np.diff(line.get_xdata()) >= 0).all(), "nobody is drawn back in time"


def test_profiles_are_the_shares():
    """Those of all solvers are the statistics' own; beside each stands its ratio to the best, which is won where the best failed."""
    times = {"pg": [1.0, 2.0, 4.0, NEVER], "ag": [2.0, 1.0, 8.0, 3.0], "scs": [10.0, 20.0, 2.0, NEVER]}

    def shares(panel, solver, *places, **times):
        points = group_lines.profile_points(instances(1e-6, **{name: [(time,) for time in of_solver] for name, of_solver in times.items()}))
        points = points[(points["panel"] == panel) & (points["solver"] == solver)]
        return [points["y"][points["x"] <= place].max() for place in places]

    assert shares(group_lines.PERFORMANCE, "pg", 1.0, 2.5, math.inf, **times) == [0.25, 0.75, 0.75]
    assert shares(group_lines.PERFORMANCE, "ag", 1.0, 2.5, math.inf, **times) == [0.5, 0.75, 1.0]
    assert shares(group_lines.PAIRWISE, "pg", 1.0, 1.99, 2.0, **times) == [0.5, 0.5, 0.75], "ag is the best"
    assert shares(group_lines.PAIRWISE, "ag", 0.0, pg=[1.0, 2.0, NEVER], ag=[NEVER, NEVER, 5.0]) == [pytest.approx(1 / 3)]
    skipped = instances(1e-6, pg=[(1.0,), (2.0,)], ag=[(1.0,)], no=[(NEVER,), (NEVER,)])
    skipped["status"] = skipped["status"].mask(skipped["solver"] == "no", "skipped 2/2")
    assert group_lines.run_everywhere(skipped) == ["pg"], "others are none of the group"


def test_a_size_that_was_not_reached_is_a_cross_at_the_time_it_had(make_store):
    sizes, stopped = (10, 20, 40), {"times": {"build": 0.1, "setup": 0.2, "solve": 11.0}}
    times = {"pg": (0.1, 0.3, 0.8), "scs": (1.0, 1.0, None), "ag": (None,) * 3}
    made = [
        timed(solver, seconds, problem=f"n={size}", data={"name": "made_up", "examples": size}, radius=1.0, **{} if seconds else stopped)
        for solver, of_sizes in times.items()
        for size, seconds in zip(sizes, of_sizes, strict=True)
    ]
    results = read_results(make_store(*made))
    points = group_lines.sweep_points(results.runs, results.samples, 1e-6)
    figure = group_lines.scaling(points)
    (axis,) = figure.axes
    crosses = {line.get_gid(): (list(line.get_xdata()), list(line.get_ydata())) for line in axis.lines if line.get_marker() == "x"}
    assert crosses["solver-scs"] == ([sizes[-1]], [11.2]), "not at its limit of 60 s"
    assert crosses["solver-ag"][0] == list(sizes)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["pg", "scs", "ag: not reached"]


COLUMNS = ["problem", "target", "winner", "kind", "seconds", "other", "other_seconds", "ratio", "rivals", "walkover", "other_reached"]
ROWS = [
    ("a", 1e-2, "pg", SPECIALISED, 1.0, "scs", 12.0, 12.0, "", False, 3),
    ("a", 1e-6, "pg", SPECIALISED, 1.0, None, NEVER, NEVER, "not in 6 to 60 s", False, None),
    ("b", 1e-2, "scs", GENERIC, 1.0, "pg", 3.7, 3.7, "", False, 4),
    ("b", 1e-6, "scs", GENERIC, 1.0, None, NEVER, NEVER, "crashed", False, None),
    ("c", 1e-2, "pg", SPECIALISED, 1.0, "scs", 1.0, 1.0, "", False, 4),
    ("c", 1e-6, None, None, NEVER, None, NEVER, NEVER, "", False, None),
    ("d", 1e-2, "pg", SPECIALISED, 1.0, None, NEVER, NEVER, "", True, None),
    ("d", 1e-6, None, None, NEVER, None, NEVER, NEVER, "", False, None),
]


def map_of(rows):
    table = pd.DataFrame(rows, columns=COLUMNS).assign(reached=4, runs=4, other_runs=4).astype({"other_reached": "Int64"})
    return maps.speed_up_points(table.assign(reference_wins=table["kind"] == GENERIC))


def test_a_ratio_is_of_the_rival_s_time_to_the_solver_s_whoever_wins():
    points = map_of(ROWS)
    assert list(points["ratio"].fillna(0)) == pytest.approx([12.0, 0.0, 1 / 3.7, 0.0, 1.0, 0.0, 0.0, 0.0])
    notes = ["", "rival not in 6 to 60 s", "", "solver crashed", "", "nobody", "no rival run", "nobody"]
    assert list(points["note"]) == notes
    assert points[["solver", "rival", "seconds", "rival_seconds"]].iloc[2].tolist() == ["pg", "scs", 3.7, 1.0]


def test_the_map_says_its_numbers_with_names_in_colours_that_are_those_of_all_reports_and_let_letters_be_read():
    axis, key = maps.speed_ups(map_of(ROWS), "us against them").axes
    cells = [text.get_text() for text in axis.texts]
    assert cells[::2] == ["12x faster", "rival not in 6 to 60 s", "3.7x slower", "solver crashed", "1.0x faster", "nobody"]
    assert cells[1:6:2] == ["pg 1.00 s\nscs 12.0 s (3 of 4)", "pg 1.00 s", "pg 3.70 s\nscs 1.00 s"]
    assert [text.get_text() for text in axis.get_yticklabels()] == ["a", "b", "c"], "d has no contest"
    assert "log scale" in key.get_xlabel()
    ratios = np.geomspace(1e-4, 1e4, 33)
    wide = maps.speed_ups(
        map_of([(f"p{i}", 1e-2, "pg", SPECIALISED, 1.0, "scs", r, r, "", False, 4) for i, r in enumerate(ratios)]), ""
    ).axes[0]
    assert axis.collections[0].get_clim() == wide.collections[0].get_clim()
    wide.figure.draw_without_rendering()
    colours = wide.collections[0].get_facecolors()
    for text, colour in zip(wide.texts[::2], colours, strict=True):
        shades = sorted(relative_luminance(parts) + 0.05 for parts in (to_rgb(text.get_color()), colour[:3]))
        assert shades[1] / shades[0] > 4.0
    assert colours[-1, 2] > colours[-1, 0], "faster is purple"
    assert colours[0, 0] > colours[0, 2], "slower is orange"
    assert np.ptp(colours[16, :3]) < 0.03, "alike is neither"


def contests_of(folder, baseline=None):
    results = read_results(folder, View(baseline=baseline))
    return results, contests(run_times(results.runs, results.samples, (1e-6,)))


def spread_of(folder, baseline=None):
    results, found = contests_of(folder, baseline)
    return maps.spread_points(found, maps.speed_up_points(winners(found, baseline)), groups(results.runs))


def test_first_runs_choose_who_is_best_of_those_that_solved_every_seed_and_later_ones_measure_it(make_store):
    runs = [timed("pg", taken, repetition=i) for i, taken in enumerate((1.0, 9.0, 11.0))]
    runs += [timed("ag", taken, repetition=i) for i, taken in enumerate((2.0, 0.1, 0.1))] + [timed("auto", 5.0), timed("scs", None)]
    runs += [timed("pg", 3.0, problem="q", seed=seed) for seed in (0, 1)] + [timed("cd", 0.1, problem="q", seed=0)]
    runs += [timed("ag", 1.0, problem="q", seed=0), timed("ag", None, problem="q", seed=1)]
    points = seconds.seconds_points(contests_of(make_store(*runs))[1]).set_index(["problem", "role"])
    assert points["solver"].fillna("").to_dict() == {
        ("lasso", "auto"): "auto", ("lasso", SPECIALISED): "pg", ("lasso", GENERIC): "", ("q", SPECIALISED): "pg"
    }  # fmt: skip
    best = points.loc[("lasso", SPECIALISED)]
    assert best["seconds"] == pytest.approx(10.0)
    assert best["low"] < 9.0 < 11.0 < best["high"]
    assert np.isnan(points.loc[("lasso", "auto"), "low"]), "one run has no interval"
    assert points.loc[("lasso", GENERIC), "limit_seconds"] == 60.0


def test_repetitions_are_paired_without_the_first_and_a_single_run_goes_with_all(make_store):
    own = [timed("pg", taken, repetition=i) for i, taken in enumerate((9.0, 1.0, 2.0, 4.0, 5.0))]
    its = [timed("scs", taken, repetition=i) for i, taken in enumerate((50.0, 8.0, 20.0, 4.0, 5.0))]
    assert spread_of(make_store(*own, *its, folder="several"))["ratio"].tolist() == pytest.approx([8.0, 10.0, 1.0, 1.0])
    assert spread_of(make_store(*own, timed("scs", 40.0), folder="single"))["ratio"].tolist() == pytest.approx([40.0, 20.0, 10.0, 8.0])
    assert spread_of(make_store(*own[:3], *its[:3], folder="few")).empty
    folder = make_store(
        *(timed(solver, taken, problem=of) for of in "abcd" for solver, taken in (("pg", 1.0), ("ag", 4.0))), folder="of one kind"
    )
    assert spread_of(folder).empty, "nobody of the other kind"
    assert spread_of(folder, "ag")["ratio"].tolist() == pytest.approx([4.0] * 4)


def test_the_spread_is_of_one_direction_and_of_problems_on_which_both_get_there(make_store):
    made = [timed("pg", 1.0, problem="a"), timed("scs", 5.0, problem="a"), timed("pg", 8.0, problem="b"), timed("scs", 2.0, problem="b")]
    made += [timed("pg", 1.0, problem="c"), timed("scs", None, problem="c"), timed("pg", 1.0, problem="d"), timed("scs", 3.0, problem="d")]
    made += [timed("pg", 2.0, problem="e"), timed("scs", 2.0, problem="e")]
    points = spread_of(make_store(*made))
    assert dict(zip(points["problem"], points["ratio"], strict=True)) == pytest.approx({"a": 5.0, "b": 0.25, "d": 3.0, "e": 1.0})
    assert set(points["group"]) == {"family on synthetic"}
    (axis,) = maps.spread(points, "").axes
    assert [text.get_text() for text in axis.get_yticklabels()] == [
        "family on synthetic\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}1e-6"
    ]
    dots = [place for collection in axis.collections for place in collection.get_offsets().tolist() if len(place) and place != [0.0, 0.0]]
    assert sorted(x for x, _ in dots) == pytest.approx([0.25, 1.0, 3.0, 5.0])


ASKS = """
import matplotlib, sys
import pandas as pd
before = dict(matplotlib.rcParams.copy())
from bench_mtl.report.figures import maps, style
rows = [(name, 1e-2, "pg", "scs", 1.0, 12.0, "", "", 12.0, "") for name in "ab"]
columns = ["problem", "target", "solver", "rival", "seconds", "rival_seconds", "share", "rival_share", "ratio", "note"]
style.files(maps.speed_ups(pd.DataFrame(rows, columns=columns), "t"), ["svg"])
style.files(maps.spread(pd.DataFrame({"group": "g", "target": 1e-2, "ratio": [1.0, 2.0, 3.0, 0.4]}), "t"), ["svg"])
from matplotlib import pyplot
assert "seaborn" in sys.modules
assert pyplot.get_fignums() == []
assert dict(matplotlib.rcParams.copy()) == before
assert matplotlib.rcParams._get("backend") is matplotlib.rcsetup._auto_backend_sentinel
"""


def test_seaborn_looks_for_no_screen_and_changes_no_setting(monkeypatch):
    monkeypatch.delenv("MPLBACKEND", raising=False)
    ended = subprocess.run([sys.executable, "-W", "error", "-c", ASKS], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
