"""The HTML report: what is in it, and how it behaves in a browser, from disk."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hand_reports import GOOD, descent, ladder, stored

from bench_mtl.core.text import one_line
from bench_mtl.report.document import Document, Part
from bench_mtl.report.figures import style
from bench_mtl.report.registry import report_tables
from bench_mtl.report.render.files import report_files
from bench_mtl.report.render.html import page
from bench_mtl.report.render.inline_figures import inline_figure
from bench_mtl.report.render.tables import text_table
from bench_mtl.results.loading import read_results

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (make system installs it)")

#: Labels and reasons that would run, or break what they are put in, if they were not taken for text.
HOSTILE = "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">'`${1}`&lt;\u2028\u2029"
HOSTILE += "|[a](javascript:alert)"

MakeStore = Callable[..., Path]


RUNS = (
    descent("pg"),
    descent("slow", GOOD[:2], seconds=30.0, status="timeout", reason="time limit"),
    ladder("scs", seconds=3.0),
    ladder("ecos", seconds=12.0),
    {"solver": "admm", "status": "skipped", "reason": "needs a split"},
    descent("pg", problem="ridge"),
    ladder("scs", problem="ridge"),
    {"solver": "pg", "problem": "nothing here", "status": "crashed", "reason": "signal 9"},
)


def built(folder: Path) -> dict[str, str]:
    """Return the texts of the report of a folder."""
    results = read_results(folder)
    return {name: content.decode() for name, content in report_files(results, report_tables(results), ["html", "md"]).items()}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What was built once serves every test that only looks at it."""
    return built(stored(tmp_path_factory.mktemp("page") / "results", RUNS))


@pytest.fixture(scope="module")
def long_labels(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the same results with a label that no line can hold."""
    long = [{**run, "problem": "a_very_long_label_without_any_space_in_it_" * 3} for run in RUNS[:3]]
    return built(stored(tmp_path_factory.mktemp("long") / "results", [*RUNS, *long]))["report.html"]


@pytest.fixture(scope="module")  # it leaves an event loop behind, which other tests must not find
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS.split())
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page from disk, and holds it to no error and no request but for the file."""
    watched = []

    def opened(content: str | bytes, place: str = "", **context: Any) -> Any:
        path = tmp_path / "report.html"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        tab = browser.new_context(**context).new_page()
        said: list[str] = []
        asked: list[str] = []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(path.as_uri() + place)
        watched.append((tab, said, asked, path.as_uri()))
        return tab

    yield opened
    for tab, said, asked, address in watched:
        assert said == []
        assert [each.partition("#")[0] for each in asked] == [address]
        tab.context.close()


@pytest.fixture
def shown(texts: dict[str, str], open_page: Callable[..., Any]) -> Any:
    return open_page(texts["report.html"])


def rows(tab: Any, name: str, column: int = 0) -> list[str]:
    """Return the texts of a column of a table, of the rows that can be seen."""
    script = f"rows => rows.filter(row => row.offsetHeight > 0).map(row => row.cells[{column}].innerText)"
    return list(tab.locator(f"#table-{name} tbody tr").evaluate_all(script))


# ---------------------------------------------------------------- without a browser


def test_the_page_is_whole_and_asks_for_nothing(texts: dict[str, str]) -> None:
    text = texts["report.html"]
    markup = re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.DOTALL)
    assert not re.search(r"<(link|img|iframe|object|embed|video|audio|base)\b", markup)
    assert not re.search(r"\s(src|srcset|action|style|on\w+)=", markup)
    places = set(re.findall(r' id="([^"]+)"', markup))
    assert set(re.findall(r'href="#([^"]+)"', markup)) <= places
    assert all(link.startswith("data:image/png") for link in re.findall(r'href="([^"#]+)"', markup))
    assert len(places) == len(re.findall(r' id="', markup)), "no two alike"
    head, _, sheet = text.partition("<style>")
    assert "url(" not in sheet[: sheet.index("</style>")]
    assert "default-src &#39;none&#39;" in head
    assert "unsafe" not in head
    assert not re.search(r">(nan|none|inf|<na>|nat)<", text, flags=re.IGNORECASE)


def test_it_is_read_in_the_same_order_in_all_forms(texts: dict[str, str]) -> None:
    heads = [head for head in re.findall(r"<h2>(.*?)</h2>", texts["report.html"]) if head != "All tables"]
    assert re.findall(r"^## (.*)$", texts["report.md"], re.MULTILINE) == heads
    assert "# a fence: ```" in texts["report.html"], "the suite's text"


def test_every_table_with_a_row_is_there(make_store: MakeStore, texts: dict[str, str]) -> None:
    tables = report_tables(read_results(make_store(*RUNS)))
    assert {name for name, table in tables.items() if len(table)} <= set(re.findall(r'id="table-(?:all-)?([\w-]+)"', texts["report.html"]))


def test_columns_of_numbers_and_tones_of_statuses() -> None:
    frame = pd.DataFrame({"a": ["1.5 ± 2", "-3", "-"], "b": ["1 x", "two", "3"], "c": ["", "-", "-"], "d": ["12x", "1e-3", "85%"]})
    frame["Status"] = ["verified 2/2", "verified 1/2, timeout 1/2", "verified 1/2, error 1/2"]
    frame["e"] = ["3 tasks", "4 tasks", "5 tasks"]
    table = text_table("x", "X", frame, ["#there", "", ""])
    assert [column.is_numeric for column in table.columns] == [True, False, False, True, False, False]
    assert [row[4].tone for row in table.rows] == ["good", "mixed", "bad"]
    assert [row[0].address for row in table.rows] == ["#there", "", ""]


def figure(*, picture: bool = False) -> bytes:
    from matplotlib.figure import Figure

    axes = (drawn := Figure()).add_subplot()
    if picture:
        axes.imshow(np.arange(6.0).reshape(2, 3))
    axes.plot([0, 1, 2], [1, 3, 2], "--")
    return style.files(drawn, ["svg"])["svg"]


def test_figures_become_part_of_a_page() -> None:
    text = inline_figure(figure(), 'what "it" is', "part-1")
    assert text.startswith("<svg ")
    assert text.endswith("</svg>")
    assert 'aria-label="what &#34;it&#34; is"' in text
    assert not re.search(r" style=|<style|<metadata|<!--|<\?xml", text)
    assert re.search(r' fill="none" stroke="#[0-9a-f]{6}"', text)
    ids = re.findall(r' id="([^"]+)"', text)
    assert all(each.startswith("part-1-") for each in ids)
    assert set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text)) <= {*ids}
    assert re.findall(r"<text [^>]*>([^<]*)</text>", text)[:2] == ["0.00", "0.25"], "letters stay letters"


def article_of(*, picture: bool) -> bytes:
    table = pd.DataFrame({"What": ["a", "b", "c"], "Ours": ["9.5 ± 0.1", "10.25 ± 0.4", "-"], "Why": ["7 is", "<b>", "near"]})
    figures = [Part(title, figure=figure(picture=picture)) for title in ("Figures", "Again")]
    return page(Document("Squares & more", "# Squares & more\n\nNobody, 1900.", (Part("Tables", "Words **here**.", table=table), *figures)))


def test_an_article_has_the_policy_of_a_report() -> None:
    text = article_of(picture=False).decode()
    assert ("default-src &#39;none&#39;" in text, "img-src" in text, "&lt;b&gt;" in text) == (True, False, True)
    assert "img-src data:" in article_of(picture=True).decode()


# ---------------------------------------------------------------- in a browser


@needs_browser
def test_an_article_in_a_browser(open_page: Callable[..., Any]) -> None:
    tab = open_page(article_of(picture=True), viewport={"width": 375, "height": 700})
    assert tab.title() == "Squares & more: bench-mtl report"
    assert tab.locator("nav a").all_inner_texts() == ["Tables", "Figures", "Again"]
    assert tab.locator("figure svg").evaluate_all("all => all.every((one) => one.getBoundingClientRect().width > 200)")
    head = tab.locator("#table-part-1 thead th").nth(1)
    head.get_by_role("button").click()
    assert rows(tab, "part-1") == ["a", "b", "c"], "9.5 is below 10.25"
    head.get_by_role("button").press("Enter")
    assert rows(tab, "part-1") == ["b", "a", "c"], "what has no number comes last"
    assert head.get_attribute("aria-sort") == "descending"
    head.get_by_role("button").click()
    assert (rows(tab, "part-1"), head.get_attribute("aria-sort")) == (["a", "b", "c"], "none")


@needs_browser
def test_a_filter_leaves_the_rows_that_hold_its_words(shown: Any) -> None:
    name = "all-time_to_gap"
    total = len(rows(shown, name))
    box = shown.locator(f"#table-{name} input[type=search]")
    box.fill("PG ridge")
    assert set(rows(shown, name)) == {"ridge"}
    assert shown.locator(f"#table-{name} .count").inner_text() == f"3 of {total} rows"
    box.fill("")
    assert len(rows(shown, name)) == total


@needs_browser
def test_one_problem_and_one_figure_are_shown_at_a_time_and_junk_in_an_address_does_nothing(
    open_page: Callable[..., Any], texts: dict[str, str]
) -> None:
    for place in ("", "#problem-2", "#%", "#</script>", "#constructor", "#" + "x=" * 5000):
        tab = open_page(texts["report.html"], place)
        titles = tab.locator("article:visible h3")
        assert titles.all_inner_texts() == ["ridge" if place == "#problem-2" else "lasso"]
        assert tab.locator("article:visible figure:visible").count() == 1
    tab.locator("#subject").select_option("ridge")
    assert titles.all_inner_texts() == ["ridge"]
    tab.locator("#table-winners a", has_text="nothing here").first.click()
    tab.wait_for_timeout(0)
    assert titles.all_inner_texts() == ["nothing here"], "a link to a problem shows it"


@needs_browser
def test_solvers_are_switched_in_all_figures(shown: Any) -> None:
    def displays(selector: str) -> set[str]:
        return set(shown.locator(selector).evaluate_all("all => all.map((one) => getComputedStyle(one).display)"))

    button = shown.locator("button[data-of=pg]")
    button.press("Enter")
    assert (button.get_attribute("aria-pressed"), displays(".solver-pg"), displays(".solver-scs")) == ("false", {"none"}, {"inline"})
    shown.locator("article:visible .legend-pg").first.click()
    assert (button.get_attribute("aria-pressed"), displays(".solver-pg")) == ("true", {"inline"})
    shown.locator("button[data-all=off]").click()
    assert displays("article [class^=solver-]") == {"none"}
    shown.locator("button[data-all=on]").click()
    assert displays("article [class^=solver-]") == {"inline"}


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_window_and_can_be_read(long_labels: str, open_page: Callable[..., Any], width: int, scheme: str) -> None:
    tab = open_page(long_labels, viewport={"width": width, "height": 700}, color_scheme=scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    wider = "all => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => getComputedStyle(one).backgroundAttachment)"
    edges = tab.locator("nav ul, .scroll").evaluate_all(wider)
    assert len(edges) > 2 or width > 390
    assert set(edges) <= {"local, local, scroll, scroll"}, "what goes on beyond its edge has a shade there"
    contrast = """() => {
        const light = (colour) => {
            const [r, g, b] = colour.match(/[\\d.]+/g).map((v) => (v <= 10 ? v / 3294 : ((v / 255 + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ground = light(getComputedStyle(document.body).backgroundColor);
        return Math.min(...[...document.querySelectorAll("p, td, a, figcaption, .good, .bad, .mixed, .after, figure svg")].map((one) => {
            const ink = light(getComputedStyle(one).color);
            return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
        }));
    }"""
    assert tab.evaluate(contrast) >= 4.5


@needs_browser
def test_without_scripts_all_is_there(open_page: Callable[..., Any], texts: dict[str, str]) -> None:
    tab = open_page(texts["report.html"], java_script_enabled=False)
    assert tab.locator("article:visible h3").all_inner_texts() == ["lasso", "ridge", "nothing here"]
    assert tab.locator("figure svg:visible").count() == texts["report.html"].count("<figure")
    assert tab.locator("button:visible, select:visible, input:visible").count() == 0


@needs_browser
def test_labels_that_look_like_scripts_are_words(make_store: MakeStore, open_page: Callable[..., Any]) -> None:
    odd = {"problem": HOSTILE, "data": {"name": HOSTILE}, "notes": [HOSTILE], "reason": HOSTILE}
    runs = [descent(HOSTILE, info={"note": HOSTILE}, **odd), ladder("scs", **odd), {"solver": "pg", "status": "error", **odd}]
    tab = open_page(built(make_store(*runs))["report.html"])
    assert tab.title() == "hand: bench-mtl report"
    assert tab.locator("img").count() == 0
    assert tab.locator("a:not([href^='#'])").count() == 0
    assert tab.locator("#subject option").all_text_contents() == [f"{one_line(HOSTILE)} (1)"]
    assert "document.title='run'" in tab.locator("button[data-of]").first.inner_text()


@needs_browser
def test_it_can_be_printed(shown: Any) -> None:
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", shown.pdf(prefer_css_page_size=True))) <= 12
    shown.emulate_media(media="print")
    assert shown.locator("nav:visible, #choices:visible, .tools:visible").count() == 0
