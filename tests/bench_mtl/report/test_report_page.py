"""The HTML report: what is in it, and how it behaves in a browser, from disk."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench_mtl.core.text import one_line
from bench_mtl.report.figures import convergence, style
from bench_mtl.report.figures.gallery import drawings
from bench_mtl.report.page import curves, page
from bench_mtl.report.page.article import Part, article
from bench_mtl.report.page.charts import charts
from bench_mtl.report.page.curves import convergence_charts
from bench_mtl.report.page.inline_figures import inline_figure
from bench_mtl.report.page.markup import rounded
from bench_mtl.report.page.speed_up_map import speed_up_map
from bench_mtl.report.page.tables import html_table, text_table
from bench_mtl.report.registry import report_tables
from bench_mtl.results.loading import Results, read_results

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
FLAGS += ("--disable-component-update", "--disable-sync")

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (make system installs it)")

#: Labels and reasons that would run, or break what they are put in, if they were not taken for text.
HOSTILE = "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">'`${1}`&lt;\u2028\u2029"
HOSTILE += "|[a](javascript:alert)"

MOST_BYTES = 6 * 2**20

PUBLISHED = Path(__file__).parents[3] / "reports"


def iterative(solver: str, *, scale: float = 1.0, end: float = 1e-7, points: int = 8, **run: Any) -> dict[str, Any]:
    gaps = np.geomspace(0.5, end, points)
    samples = [(scale * (i + 1) / 10, 9 * i, 10.0 * i, 1.0, 1.0 - gap, None) for i, gap in enumerate(gaps)]
    return {"solver": solver, "samples": samples, **run}


def generic(solver: str, *, scale: float = 1.0, **run: Any) -> dict[str, Any]:
    asked = (1e-2, 1e-4, 1e-7)
    samples = [(scale * (i + 2.0), 40 * (i + 1), 0.0, 1.0, 1 - tolerance / 2, tolerance) for i, tolerance in enumerate(asked)]
    return {"solver": solver, "family": "conic", "times": {"build": 0.5, "solve": scale * 4.0}, "samples": samples, **run}


RUNS = (
    iterative("pg"),
    iterative("slow", scale=30.0, end=1e-3, status="timeout", reason="time limit"),
    generic("scs", scale=3.0),
    generic("ecos", scale=12.0),
    {"solver": "admm", "status": "skipped", "reason": "needs a split"},
    iterative("pg", problem="ridge", scale=2.0),
    generic("scs", problem="ridge"),
    {"solver": "pg", "problem": "nothing here", "status": "crashed", "reason": "signal 9"},
)

MakeStore = Callable[..., Path]


def built(folder: Path) -> tuple[Results, bytes]:
    results = read_results(folder)
    tables = report_tables(results)
    return results, page(results, tables, *drawings(results, tables))


def charted(results: Results) -> list[dict[str, Any]]:
    places = {solver: place for place, solver in enumerate(results.runs["solver_label"].unique())}
    return convergence_charts(results, {}, places)


@pytest.fixture(scope="module")  # it leaves an event loop behind, which other tests must not find
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, headless=True, args=list(FLAGS))
        yield chromium
        chromium.close()


def wait_until(tab: Any, expression: str) -> None:
    """Until it is true. (Playwright's own wait evaluates strings in the page, which its policy forbids from the second look on.)"""
    end = time.monotonic() + 30.0
    while not tab.evaluate(expression):
        assert time.monotonic() < end, expression
        tab.wait_for_timeout(20)


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page from disk, and holds it to no error and no request but for the file."""
    watched = []

    def opened(content: bytes, said_in_address: str = "", **context: Any) -> Any:
        path = tmp_path / "report.html"
        path.write_bytes(content)
        tab = browser.new_context(**context).new_page()
        said: list[str] = []
        asked: list[str] = []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(path.as_uri() + said_in_address)
        if context.get("java_script_enabled", True):
            wait_until(tab, "document.documentElement.classList.contains('drawn')")
        watched.append((tab, said, asked, path.as_uri()))
        return tab

    yield opened
    for tab, said, asked, address in watched:
        assert said == []
        assert [each.partition("#")[0] for each in asked] == [address]
        tab.context.close()


@pytest.fixture(scope="module")
def pages() -> dict[str, bytes]:
    """What was built once serves every test that only looks at it."""
    return {}


@pytest.fixture
def shown(make_store: MakeStore, open_page: Callable[..., Any], pages: dict[str, bytes]) -> Any:
    if "shown" not in pages:
        pages["shown"] = built(make_store(*RUNS))[1]
    return open_page(pages["shown"])


def rows(tab: Any, name: str, column: int | None = None) -> list[str]:
    """The texts of the rows of a table that can be seen, or of one of their cells."""
    cells = "row => row.innerText" if column is None else f"row => row.cells[{column}].innerText"
    script = f"rows => rows.filter(row => row.offsetHeight > 0).map({cells})"
    return list(tab.locator(f"#table-{name} tbody tr").evaluate_all(script))


# ---------------------------------------------------------------- without a browser


def test_the_page_is_whole_and_asks_for_nothing(make_store: MakeStore) -> None:
    _, content = built(make_store(*RUNS))
    text = content.decode()
    markup = re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.DOTALL)
    assert not re.search(r"<(link|img|iframe|object|embed|video|audio|base)\b", markup)
    assert not re.search(r"\b(src|srcset|action|style|on\w+)=", markup)
    assert set(re.findall(r'href="([^"]{1,4})', markup)) <= {
        f"#{start}" for start in ("sum", "con", "cha", "pro", "tab", "not", "rea", "lim", "env", "sui")
    }
    assert "sourceMappingURL" not in text
    assert "url(" not in text[text.index("<style>") : text.index("</style>")]
    assert "default-src &#39;none&#39;" in text
    assert "unsafe" not in text[: text.index("<style>")]


def test_what_a_reader_finds_in_which_order(make_store: MakeStore) -> None:
    _, content = built(make_store(*RUNS))
    heads = re.findall(r"<h2>(.*?)</h2>", content.decode())
    last = ["Problems", "Tables", "Not verified", "How to read this", "Known limitations", "Environment", "Suite"]
    assert heads == ["What it says", "Convergence", "Across problems", *last]
    text = content.decode()
    assert "8 runs: 5 verified, 1 timeout, 1 crashed, 1 skipped." in text
    assert "the specialised solver pg is" in text
    assert "signal 9" in text
    assert "No run has a proven point on this problem, so there is no figure: the reasons are listed below." in text
    assert "# a fence: ```" in text, "the suite's text"
    assert not re.search(r">(nan|none|inf|<na>|nat)<", text, flags=re.IGNORECASE)


def test_the_same_results_give_the_same_page(make_store: MakeStore) -> None:
    folder = make_store(*RUNS)
    assert built(folder)[1] == built(folder)[1]


def test_every_table_with_a_row_is_shown_also_one_it_has_not_heard_of(make_store: MakeStore) -> None:
    import pandas as pd

    results = read_results(make_store(*RUNS))
    tables = report_tables(results)
    tables["brand_new"] = pd.DataFrame({"problem": ["lasso"], "solver": ["pg"], "things": [1234.5678]})
    tables["without_rows"] = pd.DataFrame({"problem": []})
    text = page(results, tables, *drawings(results, tables)).decode()
    assert re.search(r'<section class="table paper-12" id="table-brand_new">\s*<h3>Brand new</h3>', text)
    expected = {name for name, table in tables.items() if len(table)}
    assert set(re.findall(r'id="table-(\w+)"', text)) == expected
    contents = re.findall(r'href="#table-(\w+)"', text)
    assert (contents[0], contents[-1]) == ("summary", "brand_new")


def test_a_contradiction_comes_first(make_store: MakeStore) -> None:
    liar = {"solver": "liar", "samples": [(0.1, 1, 1.0, 1.2, 1.1, None)]}
    text = built(make_store(RUNS[0], liar))[1].decode()
    alarm = text.index('<p class="alarm" role="alert">CONTRADICTION on lasso')
    assert text.index("<h1>hand</h1>") < alarm < text.index('<div class="head">')
    assert 'class="alarm"' not in built(make_store(RUNS[0], folder="agreeing"))[1].decode()


@pytest.mark.parametrize("runs", [RUNS[:1], RUNS[-1:], RUNS[4:5], [iterative("pg", end=1e-300)]], ids=["one", "crash", "skip", "tiny"])
def test_results_that_are_hardly_there(make_store: MakeStore, runs: list[dict[str, Any]]) -> None:
    text = built(make_store(*runs))[1].decode()
    assert ("there is nothing to draw" in text) == ("samples" not in runs[0])
    assert not re.search(r">(nan|none|inf|<na>|nat)<", text, flags=re.IGNORECASE)


def test_cells_are_those_of_the_printed_table_with_keys_to_sort_by() -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {"solver": ["a", "b", "c"], "seconds": [1234.5678, float("nan"), 0.25], "status": ["verified", "wrong", "skipped 2/2"]}
    )
    table = html_table("instances", "Instances", "", frame)  # type: ignore[arg-type]
    assert [column.title for column in table.columns] == ["Solver", "Seconds", "Status"]
    assert [(row[1].text, row[1].key) for row in table.rows] == [("1235", "1234.57"), ("-", ""), ("0.250", "")]
    assert [row[2].tone for row in table.rows] == ["good", "bad", "quiet"]
    assert {row[0].key for row in table.rows} == {None}


def test_what_counts_as_a_mixed_end() -> None:
    import pandas as pd

    frame = pd.DataFrame({"status": ["timeout", "verified 1/2, memory 1/2", "verified 1/2, error 1/2"]})
    table = html_table("summary", "Summary", "", frame)  # type: ignore[arg-type]
    assert [row[0].tone for row in table.rows] == ["mixed", "mixed", "bad"]


def test_curves_are_those_of_the_printed_figure(make_store: MakeStore) -> None:
    results = read_results(make_store(*RUNS))
    lasso, ridge = charted(results)
    assert (lasso["label"], ridge["label"]) == ("lasso", "ridge")
    points = convergence.curves(results.runs, results.samples)
    of_lasso = points[points["problem"] == "lasso"]
    for axis, name in enumerate(("seconds", "passes", "iteration")):
        expected = {curve.solver: curve for curve in convergence.drawn_curves(of_lasso, name, results.targets)}
        for place, label in enumerate(("pg", "slow", "scs", "ecos")):
            solver = lasso["solvers"][place]
            assert solver["s"] == place
            if name == "passes" and "asked" in solver:
                assert solver["x"][axis] is None, "a generic solver knows no passes"
                continue
            np.testing.assert_allclose(solver["y"], expected[label].y, rtol=5e-4)
            np.testing.assert_allclose(solver["x"][axis]["x"], expected[label].x, rtol=5e-4)
    slow = lasso["solvers"][1]
    assert (slow["note"], slow["x"][0]["end"]) == ("timeout", [60, 1e-3, 24]), "its limit of 60 s, after its last point"
    assert lasso["solvers"][2]["asked"] == ["1e-2", "1e-4", "1e-7"]


def test_long_curves_are_thinned_to_what_a_page_can_hold(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    results = read_results(make_store(*(iterative("pg", points=400, problem=f"number {i}") for i in range(8))))
    monkeypatch.setattr(curves, "MOST_POINTS", 500)
    kept = [problem["solvers"][0]["y"] for problem in charted(results)]
    assert 200 < sum(map(len, kept)) <= 500
    assert all(gaps[0] == 0.5 and gaps[-1] == 1e-7 for gaps in kept)
    for target in results.targets:  # the first point at a target is never left out
        first = results.samples.loc[results.samples["relative_gap"] <= target, "relative_gap"].iloc[0]
        assert all(rounded(first) in gaps for gaps in kept)


def test_several_runs_become_a_median_in_a_band(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [run for seed in range(5) for run in (iterative("pg", scale=1 + seed, seed=seed), generic("scs", scale=1 + seed, seed=seed))]
    results = read_results(make_store(*runs))
    (problem,) = charted(results)
    pg, scs = problem["solvers"]
    assert (pg["runs"], scs["runs"]) == (5, 5)
    x, low, middle, high = pg["x"][0]["band"]
    assert len(x) == len(low) == len(middle) == len(high) > 10
    assert all(a <= b <= c for a, b, c in zip(low, middle, high, strict=True))
    assert (low[-1], middle[-1], high[-1]) == (1e-7, 1e-7, 1e-7)
    assert "band" not in scs["x"][0]
    assert scs["x"][1] is None
    answers = scs["x"][0]["answers"]
    assert answers[1] == [6, 9, 12], "the medians of 2, 3, 4 s times 1 to 5"
    assert (answers[0], answers[2]) == ([2, 3, 4], [10, 15, 20])
    monkeypatch.setattr(curves, "MOST_OF_BANDS", 0)
    (coarse,) = charted(results)
    assert len(coarse["solvers"][0]["x"][0]["band"][0]) <= 10


def test_charts_across_problems_show_what_the_printed_figures_show(make_store: MakeStore) -> None:
    sizes = (10, 20, 40)
    runs = [
        {**run, "problem": f"size {size}", "data": {"name": "synthetic", "features": size}}
        for size in sizes
        for run in (iterative("pg", scale=size), {"solver": "sub", "status": "timeout", "samples": [(60.0, 0, 1.0, 1.0, 0.5, None)]})
    ]
    results = read_results(make_store(*runs))
    tables = report_tables(results)
    drawn, _ = drawings(results, tables)
    found = {chart["label"]: chart for chart in charts(drawn, {"pg": 0, "sub": 1})}
    profile = next(chart for label, chart in found.items() if label.startswith("Performance profile of "))
    assert profile["lines"][0] == {"s": 0, "note": "", "x": [1, 2], "y": [1, 1], "crosses": []}
    assert [label.split(" of ")[0] for label, chart in found.items() if chart.get("equal") == 1] == ["Pairwise profiles"]
    (scaling,) = (chart for label, chart in found.items() if label.startswith("Scaling"))
    assert [line["x"] for line in scaling["lines"]] == [[10, 20, 40], []]
    assert scaling["lines"][0]["note"] == "exponent 1.00 [1.00, 1.00]"
    assert scaling["lines"][1]["crosses"] == [[10, 60], [20, 60], [40, 60]]
    assert scaling["limit"] == {"label": "limit 60 s", "value": 60}
    (front,) = (chart for label, chart in found.items() if label.startswith("Time against precision"))
    assert front["front"][0] == sorted(front["front"][0])
    captions = {drawing.caption for drawing in drawn}
    assert all(chart["caption"] in captions for chart in found.values())


def test_numbers_have_four_digits() -> None:
    assert [rounded(value) for value in (1234.56, 0.123456, 12345.0, 1.0, 0.0, 1.23456e-9)] == [1235, 0.1235, 12340, 1, 0, 1.235e-9]
    assert json.dumps(rounded(3.0)) == "3"


# ---------------------------------------------------------------- in a browser


@needs_browser
def test_a_filter_leaves_the_rows_that_hold_its_words(shown: Any) -> None:
    assert len(rows(shown, "objectives")) == 6
    box = shown.locator("#table-objectives input[type=search]")
    box.fill("PG ridge")
    assert [row.split("\t")[:2] for row in rows(shown, "objectives")] == [["ridge", "pg"]]
    assert shown.locator("#table-objectives .count").inner_text() == "1 of 6 rows"
    assert len(rows(shown, "times")) > 4, "other tables keep theirs"
    box.fill("")
    assert len(rows(shown, "objectives")) == 6


@needs_browser
def test_choices_of_the_page_apply_to_all_tables(shown: Any) -> None:
    shown.locator("#only-problem").select_option("ridge")
    assert {row.split("\t")[0] for name in ("winners", "summary", "objectives", "times") for row in rows(shown, name)} == {"ridge"}
    assert rows(shown, "not_verified") == []
    assert shown.locator("#problems article:visible h3").all_inner_texts() == ["ridge"]
    assert shown.locator("#convergence [data-of=chart] option:checked").inner_text() == "ridge"
    shown.locator("#only-solver").select_option("scs")
    assert [row.split("\t")[:2] for row in rows(shown, "summary")] == [["ridge", "scs"]]
    shown.get_by_role("button", name="Clear").click()
    wait_until(shown, "document.querySelectorAll('#table-not_verified tbody tr').length === 3")
    shown.locator("#only-status").select_option("timeout")
    assert [row.split("\t")[1] for row in rows(shown, "not_verified")] == ["slow"]
    shown.locator("#only-target").select_option("1e-4")
    assert set(rows(shown, "winners", 1)) == {"1e-4"}


@needs_browser
def test_columns_of_numbers_are_sorted_as_numbers(shown: Any) -> None:
    heads = shown.locator("#table-summary thead th").all_inner_texts()
    column = heads.index("s to 1e-2")
    before = rows(shown, "summary", column)
    head = shown.locator("#table-summary thead th").nth(column)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    up = rows(shown, "summary", column)
    assert sorted(up) != up, "as words they would be in another order"
    known = [float(text) for text in up if text != "-"]
    assert known == sorted(known)
    assert up[len(known) :] == ["-"] * (len(up) - len(known)) != [], "what has no number comes last"
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    down = rows(shown, "summary", column)
    assert [float(text) for text in down if text != "-"] == known[::-1]
    assert down[len(known) :] == up[len(known) :]
    head.get_by_role("button").click()
    assert rows(shown, "summary", column) == before


def drawn(tab: Any) -> SimpleNamespace:
    """The chart of convergence: labels of its axes, how many points, and which solvers can be seen."""
    script = """() => {
        const chart = benchMtl.chart("convergence"), sets = chart.data.datasets.filter((_, i) => chart.isDatasetVisible(i));
        return {
            x: chart.options.scales.x.title.text, type: chart.scales.x.type, upward: chart.scales.y.type, lowest: chart.scales.y.min,
            points: sets.reduce((sum, set) => sum + set.data.length, 0), names: sets.map((set) => set.name),
            solvers: [...new Set(sets.map((set) => set.s))], targets: chart.options.plugins.markLines.marks.map((mark) => mark.label),
        };
    }"""
    return SimpleNamespace(**tab.evaluate(script))


@needs_browser
def test_the_chart_follows_its_choices(shown: Any) -> None:
    first = drawn(shown)
    blank = "document.createElement('canvas').toDataURL().length"
    assert shown.evaluate(f"benchMtl.chart('convergence').canvas.toDataURL().length > 5 * {blank}"), "something is drawn"
    assert (first.x, first.type, first.upward) == ("solve time (s)", "logarithmic", "logarithmic")
    assert first.solvers == [0, 1, 2, 3]
    assert set(first.names) == {"steps", "markers", "waiting", "crosses", "answers"}
    assert first.targets == ["1e-2", "1e-4", "1e-6"]
    section = shown.locator("#convergence")
    section.locator("[data-of=axis]").select_option("passes over the data")
    passes = drawn(shown)
    assert (passes.x, passes.solvers) == ("passes over the data", [0, 1])
    section.locator("[data-of=chart]").select_option("ridge")
    assert drawn(shown).x == "passes over the data"
    assert drawn(shown).solvers == [0]
    section.locator("[data-of=axis]").select_option("solve time (s)")
    assert drawn(shown).solvers == [0, 2]
    section.locator("[data-of=logx]").uncheck()
    assert (drawn(shown).type, drawn(shown).upward) == ("linear", "logarithmic")
    section.locator("[data-of=targets] input[value='1e-4']").uncheck()
    assert drawn(shown).targets == ["1e-2", "1e-6"]
    entry = section.locator(".legend button").first
    assert entry.inner_text() == "pg"
    entry.press("Enter")
    assert entry.get_attribute("aria-pressed") == "false"
    assert drawn(shown).solvers == [2]


@needs_browser
def test_the_chart_zooms_and_tells_of_a_point(shown: Any) -> None:
    scale = "(() => { const { min, max } = benchMtl.chart('convergence').scales.x; return [min, max]; })()"
    whole = shown.evaluate(scale)
    canvas = shown.locator("#convergence .canvas canvas")
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] * 0.4, "y": box["height"] * 0.3})
    shown.mouse.down()
    shown.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.6, steps=4)
    shown.mouse.up()
    wait_until(shown, f"{scale}[0] > {whole[0] * 1.1}")
    shown.get_by_role("button", name="Reset the zoom").click()
    assert shown.evaluate(scale) == whole
    place = shown.evaluate(
        """() => {
        const chart = benchMtl.chart("convergence"), set = chart.data.datasets.findIndex((one) => one.name === "answers");
        const { x, y } = chart.getDatasetMeta(set).data[1];
        return { x, y };
    }"""
    )
    canvas.hover(position=place)
    wait_until(shown, "benchMtl.chart('convergence').tooltip?.body?.length > 0")
    told = shown.evaluate("benchMtl.chart('convergence').tooltip.body.flatMap((part) => part.lines)")
    assert told == ["scs, generic", "relative gap 5e-5", "9 s, 80 iterations", "tolerance asked 1e-4"]


@needs_browser
def test_gaps_of_zero_are_drawn_at_a_floor_that_is_told(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    exact = {"solver": "pg", "samples": [(0.0, 0, 0.0, 1.0, 0.5, None), (0.4, 9, 10.0, 1.0, 1.0, None)]}
    tab = open_page(built(make_store(exact))[1])
    assert drawn(tab).lowest == pytest.approx(5e-10)
    assert "Gaps below 1e-9, zero among them, are drawn there." in tab.locator("#convergence .caption").inner_text()
    assert tab.evaluate("benchMtl.chart('convergence').data.datasets[0].data.at(-1).y") == 1e-9


@needs_browser
def test_sweeps_have_a_chart(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    sizes = (10, 20, 40)
    runs = [
        {**run, "problem": f"size {size}", "data": {"name": "synthetic", "features": size}}
        for size in sizes
        for run in (iterative("pg", scale=size), {"solver": "sub", "status": "timeout", "samples": [(60.0, 0, 1.0, 1.0, 0.5, None)]})
    ]
    tab = open_page(built(make_store(*runs))[1])
    section = tab.locator("#charts")
    labels = section.locator("option").all_text_contents()
    section.locator("select").select_option(next(label for label in labels if label.startswith("Scaling")))
    sets = tab.evaluate("benchMtl.chart('charts').data.datasets.map(({ name, s, data }) => [name, s, data.map(({ x }) => x)])")
    assert sets == [["line", 0, [10, 20, 40]], ["line", 1, []], ["crosses", 1, [10, 20, 40]]]
    assert section.locator(".legend button").first.inner_text() == "pg (exponent 1.00 [1.00, 1.00])"
    upright = """() => {
        const chart = benchMtl.chart("charts"), { top, bottom } = chart.chartArea, ratio = chart.currentDevicePixelRatio;
        const column = [Math.round((chart.scales.x.getPixelForValue(1) - 1) * ratio), top * ratio, 2 * ratio, (bottom - top) * ratio];
        const { data, width, height } = chart.ctx.getImageData(...column.map(Math.round));
        const grey = (i) => data[i] < 200 && data[i] === data[i + 1] && data[i] === data[i + 2] && data[i + 3] > 99;
        return [...Array(height).keys()].filter((row) => [...Array(width).keys()].some((x) => grey(4 * (row * width + x)))).length / height;
    }"""
    for label in labels:
        section.locator("select").select_option(label)
        if label.startswith("Pairwise"):
            assert 0.4 < tab.evaluate(upright) < 0.7, "dashes of 5 and gaps of 4 where the two are equal, as the caption says"
        assert section.locator(".caption").inner_text()
        assert tab.evaluate("benchMtl.chart('charts').data.datasets.length") > 0


@needs_browser
@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_is_never_wider_than_the_window(make_store: MakeStore, open_page: Callable[..., Any], width: int) -> None:
    long = [{**run, "problem": "a_very_long_label_without_any_space_in_it_" * 3} for run in RUNS[:3]]
    tab = open_page(built(make_store(*RUNS, *long))[1], viewport={"width": width, "height": 700})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert (
        tab.evaluate("Math.max(...[...document.querySelectorAll('.scroll, .canvas, pre')].map((one) => one.getBoundingClientRect().right))")
        <= width
    )
    assert tab.locator("#table-summary .scroll").evaluate("box => box.scrollWidth > box.clientWidth"), "a wide table scrolls in its box"


@needs_browser
def test_long_tables_are_shown_in_part_and_on_paper_cut(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    import pandas as pd

    results = read_results(make_store(*RUNS))
    tables = report_tables(results)
    # a table of many rows from few runs, which take long
    rest = tables["objectives"].iloc[[0] * 205].assign(seed=range(205))
    tables["objectives"] = pd.concat([tables["objectives"], rest], ignore_index=True)
    tab = open_page(page(results, tables, *drawings(results, tables)))
    sentence = "Printed: at most 12 rows of 211. The page and the CSV file of this table have the others."
    assert len(rows(tab, "objectives")) == 200
    assert tab.locator("#table-objectives .count").text_content() == "211 rows, the first 200 shown"
    assert not tab.get_by_text(sentence).is_visible()
    tab.emulate_media(media="print")
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert len(rows(tab, "objectives")) == 12
    assert tab.get_by_text(sentence).is_visible()
    for hidden in ("nav", "#choices", ".controls", ".tools", "#convergence .panel"):
        assert not tab.locator(hidden).first.is_visible()
    assert tab.locator("#convergence .printed figcaption").all_inner_texts() == ["lasso", "ridge"]
    assert tab.locator("#convergence .printed figure > canvas").evaluate_all("all => all.every((one) => one.offsetHeight > 200)")
    tab.emulate_media(media="screen")
    tab.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert tab.locator("#convergence .printed > *").count() == 0
    assert len(rows(tab, "objectives")) == 200
    tab.locator("#table-objectives").get_by_role("button", name="Show all 211 rows").click()
    assert len(rows(tab, "objectives")) == 211
    seeds = tab.locator("#table-objectives thead th").all_inner_texts().index("Seed")
    tab.locator("#table-objectives thead th").nth(seeds).get_by_role("button").click(click_count=2)
    assert rows(tab, "objectives", seeds)[:3] == ["204", "203", "202"], "of rows that a script has made, too"


@needs_browser
def test_a_report_of_three_problems_is_printed_on_twelve_pages(open_page: Callable[..., Any]) -> None:
    tab = open_page(built(PUBLISHED / "headline-hinge")[1])
    paper = tab.pdf(prefer_css_page_size=True)
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 12


@needs_browser
def test_without_scripts_all_words_and_tables_are_there(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    tab = open_page(built(make_store(*RUNS))[1], java_script_enabled=False)
    assert tab.locator("#table-objectives tbody tr").count() == 6
    assert tab.get_by_text("The curves are drawn by a script").is_visible()
    assert tab.locator("button:visible, select:visible, canvas:visible").count() == 0


@needs_browser
def test_labels_that_look_like_scripts_are_words(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    odd = {"problem": HOSTILE, "data": {"name": HOSTILE}, "notes": [HOSTILE], "reason": HOSTILE}
    runs = [iterative(HOSTILE, info={"note": HOSTILE}, **odd), generic("scs", **odd), {"solver": "pg", "status": "error", **odd}]
    content = built(make_store(*runs))[1]
    assert "\u2028" not in content.decode().split('id="data">')[1].split("</script>")[0]
    tab = open_page(content)
    assert tab.title() == "hand: bench-mtl report"
    assert tab.locator("img").count() == 0
    assert tab.locator("a:not([href^='#'])").count() == 0
    assert tab.locator("#convergence [data-of=chart] option").all_text_contents() == [f"{one_line(HOSTILE)} (1)"]
    tab.locator("#only-problem").select_option(index=1)
    assert len(rows(tab, "summary")) == 3
    tab.locator("#only-solver").select_option(f"{one_line(HOSTILE)} (1)")
    assert len(rows(tab, "summary")) == 1
    assert tab.title() == "hand: bench-mtl report"


@needs_browser
def test_a_page_of_failures_alone(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    tab = open_page(built(make_store(*RUNS[4:5], *RUNS[-1:]))[1])
    assert [row.split("\t")[-1] for row in rows(tab, "not_verified")] == ["needs a split", "signal 9"]
    assert tab.locator("canvas").count() == 0
    assert tab.get_by_text("there is nothing to draw").is_visible()


@needs_browser
@pytest.mark.parametrize("count", [300, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_large_suite_opens_in_two_seconds(make_store: MakeStore, open_page: Callable[..., Any], count: int) -> None:
    generator = np.random.default_rng(0)
    runs = []
    for number in range(count):
        problem, solver, seed = f"problem {number // 100} of a family with a name", number // 10 % 10, number % 10
        points = 12 if solver > 6 else 138
        seconds = np.cumsum(generator.exponential(0.01 * (solver + 1), points))
        gaps = np.exp(-np.linspace(0, 16 - solver % 4 * 2, points)) * generator.uniform(0.9, 1.0, points)
        asked = 10.0 ** -np.arange(1, points + 1) if solver > 6 else [None] * points
        columns = zip(seconds.tolist(), range(points), range(points), gaps.tolist(), asked, strict=True)
        samples = [(s, 7 * i, 9.0 * j if a is None else 0.0, 1.0, 1 - gap, a) for s, i, j, gap, a in columns]
        run = {"solver": f"solver {solver}", "family": "conic", "problem": problem, "seed": seed, "samples": samples}
        runs.append({**run, "status": "timeout" if solver % 4 > 1 else "verified"})
    results, content = built(make_store(*runs))
    assert len(results.runs) == count
    assert len(results.samples) > 100 * count
    assert len(content) < MOST_BYTES
    tab = open_page(content)
    assert tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") < 2000
    tab.locator("#only-problem").select_option(index=2)
    tab.locator("#only-solver").select_option("solver 3")
    assert len(rows(tab, "objectives")) == 10


# ---------------------------------------------------------------- the map of speed-ups


def test_the_map_has_a_cell_per_problem_and_target(make_store: MakeStore) -> None:
    slow = [iterative("pg", problem="slow", scale=100.0), generic("scs", problem="slow", scale=0.1)]
    stopped = {"status": "timeout", "samples": [(9.0, 1, 0.0, 1.0, 0.5, 1e-2)], "problem": "stopped", "family": "conic"}
    runs = [*RUNS[:4], *slow, iterative("pg", problem="stopped"), {"solver": "scs", **stopped}]
    results, content = built(make_store(*runs))
    winners = report_tables(results)["winners"]
    found = speed_up_map(winners, {"lasso": "a", "slow": "b", "stopped": "c"})
    assert found is not None
    assert found.targets == ["1e-2", "1e-4", "1e-6"]
    assert [(row.problem, row.anchor) for row in found.rows] == [("lasso", "a"), ("slow", "b"), ("stopped", "c")]
    lasso, quick, bound = (row.cells for row in found.rows)
    assert [cell.tone[0] for cell in lasso] == ["p"] * 3
    assert [cell.tone[0] for cell in quick] == ["n"] * 3, "the generic solver is faster"
    assert all(cell.bound and cell.words.startswith(">= ") and cell.about == "fastest: pg (specialised)" for cell in bound)
    assert (len(found.tones), found.tones[0], found.tones[6], found.bounds) == (13, "n6", "m", True)
    text = content.decode()
    start = text.index('<table class="heat"')
    heat = text[start : text.index("</table>", start)]
    assert heat.count('<th scope="row"><a href="#problem-') == 3
    assert heat.count("<td") == 9 == heat.count('<a href="#problem-') - 3
    assert heat.count(" bound") == 3
    assert text.index("<h2>What it says</h2>") < start < text.index("<h2>Convergence</h2>")
    assert {f'id="{anchor}"' in text for anchor in re.findall(r'href="#(problem-\d)"', heat)} == {True}


def test_there_is_no_map_without_a_ratio(make_store: MakeStore) -> None:
    results, content = built(make_store(iterative("pg")))
    assert speed_up_map(report_tables(results)["winners"], {"lasso": "a"}) is None
    assert '<table class="heat"' not in content.decode()


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colours_of_the_map_can_be_read(shown: Any, scheme: str) -> None:
    """Words on every colour, and what is hatched beside what is not."""
    shown.emulate_media(color_scheme=scheme)
    contrasts = """() => {
        const cell = document.querySelector(".heat td"), numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
        const light = (colour) => {
            const [r, g, b] = numbers(colour).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        return ["m", ...["p", "n"].flatMap((side) => [1, 2, 3, 4, 5, 6].map((level) => side + level))].map((tone) => {
            cell.className = tone;
            const { color, backgroundColor } = getComputedStyle(cell);
            const [dim, bright] = [light(color), light(backgroundColor)].sort((a, b) => a - b);
            return (bright + 0.05) / (dim + 0.05);
        });
    }"""
    assert min(shown.evaluate(contrasts)) >= 4.5
    shown.evaluate("document.querySelector('.heat td').className = 'p3 bound'")
    assert "repeating-linear-gradient" in shown.locator(".heat td").first.evaluate("cell => getComputedStyle(cell).backgroundImage")


@needs_browser
def test_a_cell_of_the_map_leads_to_its_problem(shown: Any) -> None:
    shown.locator("#only-problem").select_option("lasso")
    shown.locator(".heat tbody tr").nth(1).locator("td a").first.click()
    wait_until(shown, "document.querySelector('#convergence [data-of=chart]').selectedOptions[0].textContent === 'ridge'")
    assert shown.locator("#problem-2").is_visible()
    assert shown.locator("#problem-2 h3").inner_text() == "ridge"


# ---------------------------------------------------------------- the first screen, phones, light and dark


@needs_browser
def test_the_first_screen_says_what_how_many_how_fast_how_sure_and_where(shown: Any) -> None:
    shown.set_viewport_size({"width": 1280, "height": 800})
    words = shown.locator("header").inner_text()
    order = [
        "hand",
        ", settings counted apart, on 3 problems, not each on every one, to a proven relative gap of 1e-2, 1e-4 and 1e-6.",
        "8 runs: 5 verified",
        "fastest on",
        "contradict",
        "Machine:",
    ]
    places = [words.index(part) for part in order]
    assert places == sorted(places)
    assert shown.locator(".provenance li").count() <= 10
    assert shown.locator(".provenance").evaluate("part => part.getBoundingClientRect().bottom") < 800


@needs_browser
def test_on_a_phone_the_ratio_is_beside_the_frozen_problem(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    seeds = range(3)
    long = {"problem": "a label of many words, d=200 m=60, 40 examples a task"}
    runs = [
        {**run, **long, "seed": seed} for seed in seeds for run in (iterative("pg", scale=1.0 + seed), generic("scs", scale=9.0 + seed))
    ]
    tab = open_page(built(make_store(*runs))[1], viewport={"width": 375, "height": 700})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 375
    heads = tab.locator("#table-winners thead th")
    assert heads.all_inner_texts()[:3] == ["Problem", "Target", "Ratio"]
    assert "(" in rows(tab, "winners", 2)[0], "with its interval"
    assert tab.locator("#table-winners td:nth-child(3)").first.evaluate("cell => cell.getBoundingClientRect().right") <= 361
    for name in ("#table-winners .scroll", "#speed-ups .scroll"):
        place = f"document.querySelector('{name} tbody tr').cells[0].getBoundingClientRect()"
        before = tab.evaluate(f"{place}.left")
        tab.locator(name).evaluate("box => { box.scrollLeft = 150; }")
        assert tab.evaluate(f"{place}.left") == pytest.approx(before, abs=2.0)
        assert 90 < tab.evaluate(f"{place}.width") < 150


@needs_browser
def test_charts_follow_the_colours_of_the_system(shown: Any) -> None:
    colours = "(({ x }) => [x.ticks.color, x.grid.color, x.title.color])(benchMtl.chart('convergence').options.scales)"
    ground = "getComputedStyle(document.querySelector('.canvas')).backgroundColor"
    tip = "benchMtl.chart('convergence').options.plugins.tooltip.backgroundColor"
    cell = "getComputedStyle(document.querySelector('.heat td')).backgroundColor"
    light = [shown.evaluate(each) for each in (colours, ground, tip, cell)]
    shown.emulate_media(color_scheme="dark")
    wait_until(shown, f"{ground} === 'rgb(18, 22, 28)'")
    wait_until(shown, f"{colours}[1] !== '{light[0][1]}'")
    dark = [shown.evaluate(each) for each in (colours, ground, tip, cell)]
    assert all(one != other for one, other in zip(light, dark, strict=True))
    shown.emulate_media(color_scheme="light")
    wait_until(shown, f"{colours}[1] === '{light[0][1]}'")


# ---------------------------------------------------------------- which curves, and where runs ended


@needs_browser
def test_eight_solvers_are_shown_at_first(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    runs = [iterative(f"pg{i}", scale=1.0 + i) for i in range(7)] + [generic(f"cone{i}", scale=1.0 + i) for i in range(5)]
    tab = open_page(built(make_store(*runs))[1])
    assert len(drawn(tab).solvers) == 8
    buttons = tab.locator("#convergence .legend button:visible")
    assert buttons.count() == 12, "of eight solvers and of four choices"
    more = tab.locator("#convergence .legend").get_by_role("button", name="4 more")
    more.click()
    assert tab.locator("#convergence .legend button[aria-pressed=false]:visible").count() == 4
    tab.locator("#convergence .legend button[aria-pressed=false]").first.click()
    assert len(drawn(tab).solvers) == 9
    tab.locator("#convergence .legend").get_by_role("button", name="All").click()
    assert len(drawn(tab).solvers) == 12
    tab.locator("#convergence .legend").get_by_role("button", name="None").click()
    assert drawn(tab).solvers == []
    tab.locator("#convergence .legend").get_by_role("button", name="Leading").click()
    assert len(drawn(tab).solvers) == 8


def test_dashes_tell_the_kinds_apart(make_store: MakeStore) -> None:
    runs = [iterative("pg"), generic("scs"), {**generic("sklearn"), "family": "peer_sklearn"}]
    text = built(make_store(*runs))[1].decode()
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert [solver["kind"] for solver in data["solvers"]] == ["specialised", "generic", "peer"]
    dashes = [tuple(solver["dash"]) for solver in data["solvers"]]
    assert dashes[0] == ()
    assert len(set(dashes)) == 3


@needs_browser
def test_runs_that_were_stopped_or_proved_nothing_are_crosses_at_the_top(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    dead = {"solver": "dead", "family": "conic", "status": "timeout", "reason": "killed", "times": {"solve": 60.0, "build": 1.0}}
    tab = open_page(built(make_store(*RUNS[:3], dead))[1])
    crosses = tab.evaluate(
        """() => {
        const chart = benchMtl.chart("convergence"), { top, bottom } = chart.chartArea;
        return chart.data.datasets.flatMap((set, i) => (set.name !== "crosses" ? [] : set.data.map((point, j) => {
            const { x, y } = chart.getDatasetMeta(i).data[j];
            return { s: set.s, x, y, share: (y - top) / (bottom - top), at: point.x, about: point.about };
        })));
    }"""
    )
    assert [(cross["s"], cross["at"]) for cross in crosses] == [(1, 60), (3, 60)]
    assert all(0.0 <= cross["share"] < 0.1 for cross in crosses)
    assert abs(crosses[0]["y"] - crosses[1]["y"]) > 5, "one below the other"
    assert crosses[0]["about"] == ["slow (timeout), specialised", "timeout at 60 s", "relative gap 0.001", "time limit"]
    assert crosses[1]["about"] == ["dead (timeout), generic", "timeout at 60 s", "nothing proven", "killed"]
    tab.locator("#convergence .canvas canvas").hover(position={"x": crosses[1]["x"], "y": crosses[1]["y"]})
    wait_until(tab, "benchMtl.chart('convergence').tooltip?.body?.length > 0")
    assert tab.evaluate("benchMtl.chart('convergence').tooltip.body.flatMap((part) => part.lines)") == crosses[1]["about"]
    tab.locator("#convergence [data-of=axis]").select_option("passes over the data")
    script = "benchMtl.chart('convergence').data.datasets.filter((set) => set.name === 'crosses').map((set) => set.s)"
    assert tab.evaluate(script) == [1], "of the runs that count passes"
    assert "dead (timeout)" in tab.locator("#convergence .legend button").all_inner_texts()


# ---------------------------------------------------------------- the address


@needs_browser
def test_a_link_shows_what_was_chosen(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    content = built(make_store(*RUNS))[1]
    tab = open_page(content)
    assert tab.evaluate("location.hash") == ""
    tab.locator("#only-problem").select_option("lasso")
    tab.locator("#only-target").select_option("1e-4")
    tab.locator("#convergence [data-of=axis]").select_option("passes over the data")
    tab.locator("#convergence [data-of=logx]").uncheck()
    tab.locator("#convergence [data-of=targets] input[value='1e-2']").uncheck()
    tab.locator("#convergence .legend button", has_text="slow").click()
    tab.locator("#table-objectives input[type=search]").fill("scs")
    heads = tab.locator("#table-summary thead th")
    column = heads.all_inner_texts().index("s to 1e-2")
    heads.nth(column).get_by_role("button").click(click_count=2)

    def seen(of: Any) -> list[Any]:
        chart = drawn(of)
        sorted_by = of.locator("#table-summary thead th").nth(column).get_attribute("aria-sort")
        tables = [rows(of, name) for name in ("winners", "summary", "objectives", "times")]
        return [chart.x, chart.type, chart.targets, chart.solvers, sorted_by, of.locator("#only-target").input_value(), *tables]

    before, address = seen(tab), tab.evaluate("location.hash")
    assert before[:6] == ["passes over the data", "linear", ["1e-4", "1e-6"], [0], "descending", "1e-4"]
    again = open_page(content, address)
    assert seen(again) == before
    assert again.evaluate("location.hash") == address
    again.get_by_role("button", name="Clear").click()
    wait_until(again, "!location.hash.includes('target=')")
    again.evaluate("location.hash = '#problem=ridge'")
    wait_until(again, "document.querySelector('#only-problem').value === 'ridge'")
    assert drawn(again).x == "solve time (s)"
    assert again.locator("#convergence [data-of=chart] option:checked").inner_text() == "ridge"


@needs_browser
def test_a_part_of_the_page_stays_in_the_address_beside_the_choices(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    content = built(make_store(*RUNS))[1]
    tab = open_page(content, "#table-objectives")
    assert tab.evaluate("location.hash") == "#table-objectives"
    tab.locator("#only-solver").select_option("pg")
    address = tab.evaluate("location.hash")
    assert address == "#at=table-objectives&solver=pg"
    again = open_page(content, address)
    assert again.evaluate("Math.abs(document.querySelector('#table-objectives').getBoundingClientRect().top) < 300")
    assert again.locator("#only-solver").input_value() == "pg"


@needs_browser
@pytest.mark.parametrize(
    "junk",
    [
        "#%", "#=&=&&==", "#problem=nobody&solver=%00&target=1e-999", "#sort.summary=--&find.summary=%F0%28&sort.nothing=x",
        "#convergence.axis=__proto__&convergence.show=<script>&charts.chart=-1&at=../..", "#constructor", "#at=data&convergence.targets=",
        "#" + "x=" * 5000,
    ],
    ids=["percent", "signs", "names", "tables", "charts", "word", "part", "long"],
)  # fmt: skip
def test_junk_in_the_address_does_nothing(open_page: Callable[..., Any], make_store: MakeStore, pages: dict[str, bytes], junk: str) -> None:
    if "shown" not in pages:
        pages["shown"] = built(make_store(*RUNS))[1]
    tab = open_page(pages["shown"], junk)
    assert tab.locator("#only-problem").input_value() == ""
    assert drawn(tab).x == "solve time (s)"
    assert drawn(tab).solvers == [0, 1, 2, 3]
    assert len(rows(tab, "objectives")) == 6


# ---------------------------------------------------------------- pages of words, tables and figures


def figure(*, picture: bool = False) -> bytes:
    from matplotlib.figure import Figure

    made = Figure()
    axes = made.add_subplot()
    if picture:
        axes.imshow(np.arange(6.0).reshape(2, 3))
    axes.plot([0, 1, 2], [1, 3, 2], "--")
    return style.files(made, ["svg"])["svg"]


def test_figures_become_part_of_a_page() -> None:
    text = inline_figure(figure(), 'what "it" is', "part-1")
    assert text.startswith("<svg ")
    assert text.endswith("</svg>")
    assert 'aria-label="what &#34;it&#34; is"' in text
    assert not re.search(r" style=|<style|<metadata|<!--|<\?xml", text)
    assert re.search(r' fill="none" stroke="#[0-9a-f]{6}"', text)
    ids = re.findall(r' id="([^"]+)"', text)
    assert all(each.startswith("part-1-") for each in ids)
    assert set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)


def article_of(**more: Any) -> bytes:
    import pandas as pd

    table = pd.DataFrame({"What": ["a", "b", "c"], "Ours": ["9.5 ± 0.1", "10.25 ± 0.4", "-"], "Why": ["7 is", "<b>", "near"]})
    parts = [
        Part("Tables", "Words **here**.", table=table, after="And more."),
        Part("Figures", figure=figure(**more)),
        Part("Again", figure=figure()),
    ]
    return article("Squares & more", "# Squares & more\n\nNobody, 1900.", parts)


def test_columns_of_texts_that_are_numbers() -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": ["1.5 ± 2", "-3", "-"], "b": ["1 x", "two", "3"], "c": ["", "-", "-"], "d": [">= 12x", "1e-3", "85%"]})
    table = text_table("x", "X", "", frame)  # type: ignore[arg-type]
    assert [column.numeric for column in table.columns] == [True, False, False, True]
    assert [row[0].key for row in table.rows] == ["1.5", "", ""]
    assert [row[3].key for row in table.rows] == ["12", "", "85"]
    assert {row[1].key for row in table.rows} == {None}


def test_an_article_has_the_policy_of_a_report() -> None:
    content = article_of()
    assert article_of() == content
    text = content.decode()
    assert "default-src &#39;none&#39;" in text
    assert "unsafe" not in text[: text.index("<style>")]
    assert "img-src" not in text
    assert "img-src data:" in article_of(picture=True).decode()
    assert "&lt;b&gt;" in text
    assert "Chart.js" not in text


@needs_browser
def test_an_article_in_a_browser(open_page: Callable[..., Any]) -> None:
    tab = open_page(article_of(picture=True), viewport={"width": 375, "height": 700})
    assert tab.title() == "Squares & more: bench-mtl report"
    assert tab.evaluate("document.documentElement.scrollWidth") <= 375
    assert tab.locator("nav a").all_inner_texts() == ["Tables", "Figures", "Again"]
    assert tab.locator("svg").count() == 2
    assert tab.locator("svg").evaluate_all("all => all.every((one) => one.getBoundingClientRect().width > 200)")
    stroke = "line => getComputedStyle(line).strokeLinejoin"
    assert tab.locator("svg path[stroke]").first.evaluate(stroke) == "round"
    tab.locator("#table-part-1 thead th").nth(1).get_by_role("button").click()
    assert rows(tab, "part-1", 0) == ["a", "b", "c"]
    tab.locator("#table-part-1 thead th").nth(1).get_by_role("button").click()
    assert rows(tab, "part-1", 0) == ["b", "a", "c"]
    assert tab.evaluate("location.hash") == "#sort.part-1=-Ours"
    tab.locator("#table-part-1 input").fill("near")
    assert rows(tab, "part-1", 0) == ["c"]


# ---------------------------------------------------------------- what problems measure


def measuring(run: dict[str, Any], nonzeros: float = 50.0) -> dict[str, Any]:
    """A run whose points have fewer and fewer non-zeros, and a smaller error; it begins with none."""
    samples = [
        (s, i, p, v, d, a, {"non-zeros": nonzeros / place if place else 0.0, "held-out error": 0.3 + 0.1 / (place + 1)})
        for place, (s, i, p, v, d, a) in enumerate(run["samples"])
    ]
    return {**run, "samples": samples}


ONLINE = {
    "solver": "online", "samples": [(0.01 * (i + 1), 10 * i + 1, 0.1 * (i + 1), 1.0 + 2.0 / (i + 1), 0.1, None) for i in range(10)],
}  # fmt: skip
MEASURED = (
    measuring(iterative("pg")),
    measuring(ONLINE),
    measuring(generic("scs")),
    *(measuring({**iterative("several", scale=1.0 + seed), "seed": seed}, 80.0) for seed in range(3)),
    iterative("pg", problem="ridge"),
)


def test_quantities_are_those_of_the_printed_figures(make_store: MakeStore) -> None:
    lasso, ridge = charted(read_results(make_store(*MEASURED)))
    assert lasso["examples"] == 7
    assert [one["what"] for one in lasso["quantities"]] == ["objective", "held-out error", "non-zeros"]
    assert [one["what"] for one in ridge["quantities"]] == ["objective"]
    assert "examples" not in ridge
    objective, error, nonzeros = lasso["quantities"]
    assert (objective["log"], error["log"], nonzeros["log"]) == (False, False, True)
    pg, online, scs, several = nonzeros["solvers"]
    assert pg["y"] == [0, 50, 25, rounded(50 / 3), 12.5, 10, rounded(50 / 6), rounded(50 / 7)]
    np.testing.assert_allclose(online["x"][1]["x"], 0.1 * np.arange(1, 11), rtol=1e-3)
    assert (scs["x"][1], scs["asked"]) == (None, ["1e-2", "1e-4", "1e-7"])
    x, low, middle, high = several["x"][0]["band"]
    assert (x[0], x[-1], several["runs"]) == (0.3, 2.4, 3)
    assert all(a <= b <= c for a, b, c in zip(low, middle, high, strict=True))
    assert json.dumps(lasso, allow_nan=False)


def test_quantities_are_thinned_to_what_a_page_can_hold(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    results = read_results(make_store(measuring(iterative("pg", points=400))))
    monkeypatch.setattr(curves, "MOST_NUMBERS", 4 * 3 * 50)
    (problem,) = charted(results)
    assert [len(one["solvers"][0]["y"]) for one in problem["quantities"]] == [50, 50, 50]


def test_a_page_without_measures_has_no_choice_of_quantities(make_store: MakeStore) -> None:
    results, content = built(make_store(*RUNS))
    assert all("quantities" not in problem and "examples" not in problem for problem in charted(results))
    assert 'data-of="quantity"' not in re.sub(r"<script.*?</script>", "", content.decode(), flags=re.DOTALL)
    measured = make_store(*MEASURED, folder="measured")
    assert built(measured)[1] == built(measured)[1]


@needs_browser
def test_another_quantity_and_examples_seen_can_be_drawn(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    tab = open_page(built(make_store(*MEASURED))[1])
    section = tab.locator("#convergence")
    assert section.locator("[data-of=quantity] option").all_text_contents() == [
        "proven relative gap", "objective", "held-out error", "non-zeros",
    ]  # fmt: skip
    section.locator("[data-of=axis]").select_option("examples seen")
    last = "benchMtl.chart('convergence').data.datasets.find((set) => set.s === 1 && set.name === 'steps').data.at(-1).x"
    assert tab.evaluate(last) == pytest.approx(7.0)
    assert drawn(tab).targets == ["1e-2", "1e-4", "1e-6"]
    section.locator("[data-of=quantity]").select_option("non-zeros")
    nonzeros = drawn(tab)
    assert (nonzeros.x, nonzeros.upward, nonzeros.targets, nonzeros.solvers) == ("examples seen", "logarithmic", [], [0, 1, 3])
    assert tab.evaluate("benchMtl.chart('convergence').options.scales.y.title.text") == "non-zeros"
    first = "benchMtl.chart('convergence').data.datasets.find((set) => set.s === 0 && set.name === 'steps').data[0].y"
    assert tab.evaluate(first) == nonzeros.lowest > 0, "a zero is at the lower end"
    section.locator("[data-of=logy]").uncheck()
    assert (drawn(tab).upward, tab.evaluate(first)) == ("linear", 0)
    assert "Non-zeros against solve time and examples seen" in section.locator(".caption").inner_text()
    section.locator("[data-of=axis]").select_option("solve time (s)")
    section.locator("[data-of=logy]").check()
    section.locator("[data-of=quantity]").select_option("held-out error")
    assert (drawn(tab).upward, drawn(tab).solvers) == ("linear", [0, 1, 2, 3]), "values that are close together"
    section.locator("[data-of=chart]").select_option("ridge")
    assert drawn(tab).targets == ["1e-2", "1e-4", "1e-6"], "ridge has no such measure, so its gap is drawn"
    section.locator("[data-of=chart]").select_option("lasso")
    section.locator("[data-of=quantity]").select_option("objective")
    canvas = section.locator(".canvas canvas")
    place = """() => {
        const chart = benchMtl.chart("convergence"), set = chart.data.datasets.findIndex((one) => one.name === "answers");
        const { x, y } = chart.getDatasetMeta(set).data[1];
        return { x, y };
    }"""
    canvas.hover(position=tab.evaluate(place))
    wait_until(tab, "benchMtl.chart('convergence').tooltip?.body?.length > 0")
    told = tab.evaluate("benchMtl.chart('convergence').tooltip.body.flatMap((part) => part.lines)")
    assert told == ["scs, generic", "objective 1", "3 s, 80 iterations", "tolerance asked 1e-4"]


@needs_browser
def test_sparsity_against_accuracy_has_a_chart(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    tab = open_page(built(make_store(*MEASURED))[1])
    assert tab.locator("#charts h2").inner_text() == "Across problems, and sparsity against accuracy"
    section = tab.locator("#charts")
    section.locator("select").select_option("Sparsity against accuracy on lasso")
    sets = tab.evaluate("benchMtl.chart('charts').data.datasets.map(({ name, s, data }) => [name, s, data.at(-1).x])")
    assert sets[:2] == [["line", 0, rounded(50 / 7)], ["end", 0, rounded(50 / 7)]]
    assert {s for _, s, _ in sets} == {0, 1, 2, 3}
    assert "the marker is where it ends" in section.locator(".caption").inner_text()
