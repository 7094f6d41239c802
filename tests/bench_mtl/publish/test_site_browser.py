"""Sites in a browser, from disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from shown_results import fill, run

from bench_mtl.publish import publish

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (make system installs it)")

RUNS = (
    run("pg", 1.0, 2.0),
    run("a_solver_with_a_name_that_goes_on_and_on_and_on", 2.0, 9.0, kind="generic"),
    run("celer", 1.0, 3.0, kind="peer"),
)

OTHERS = (run("admm", 0.5, 1.0, problem="another", family="portfolio", data={"name": "digits"}),)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    folders = [fill(place / "a", *RUNS), fill(place / "b", *RUNS, commit="def"), fill(place / "c", *OTHERS, name="others")]
    publish(folders, place / "site")
    return place / "site"


@pytest.fixture(scope="module")  # it leaves an event loop behind, which other tests must not find
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, headless=True, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any, site: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page from disk, and holds it to no error and no request but for the file."""
    watched = []

    def opened(path: str, **context: Any) -> Any:
        tab = browser.new_context(**context).new_page()
        said: list[str] = []
        asked: list[str] = []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto((site / path).as_uri())
        watched.append((tab, said, asked, (site / path).as_uri()))
        return tab

    yield opened
    for tab, said, asked, address in watched:
        assert said == []
        assert [each.partition("#")[0] for each in asked] == [address]
        tab.context.close()


def shown(tab: Any) -> list[str]:
    return [card.locator("h2").inner_text() for card in tab.locator(".suite-card:visible").all()]


def test_suites_can_be_searched_and_chosen(open_page: Callable[..., Any]) -> None:
    tab = open_page("index.html")
    assert len(shown(tab)) == 3
    tab.fill("#find input", "another DIGITS nowhere")
    assert shown(tab) == []
    tab.fill("#find input", "DIGITS")
    assert shown(tab) == ["others"]
    tab.click("#find button")
    tab.wait_for_timeout(50)
    assert len(shown(tab)) == 3
    for of, option in (("problem", "portfolio"), ("solver", "admm"), ("data", "digits")):
        tab.select_option(f"#find select[data-of={of}]", option)
        assert shown(tab) == ["others"]
        assert tab.locator("#find .count").inner_text() == "1 of 3 shown"
        tab.select_option(f"#find select[data-of={of}]", "")
    tab.press("#find input", "Enter")
    assert len(shown(tab)) == 3


def test_without_scripts_the_index_is_a_list(open_page: Callable[..., Any]) -> None:
    tab = open_page("index.html", java_script_enabled=False)
    assert len(shown(tab)) == 3
    assert not tab.locator("#find").is_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_the_window(open_page: Callable[..., Any], site: Path, width: int) -> None:
    for path in sorted(each.relative_to(site).as_posix() for each in site.rglob("*.html") if each.parent.name != "suites"):
        tab = open_page(path, viewport={"width": width, "height": 800})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, path


def test_light_and_dark_follow_the_system(open_page: Callable[..., Any]) -> None:
    colours = [
        open_page("leaders.html", color_scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    ]
    assert colours == ["rgb(255, 255, 255)", "rgb(18, 22, 28)"]


def test_boards_can_be_sorted(open_page: Callable[..., Any]) -> None:
    tab = open_page("leaders/l1inf_hinge.html")
    table = tab.locator("#table-standings-to-1e-4")
    first = "#table-standings-to-1e-4 tbody td:first-child"
    assert tab.locator(first).first.inner_text() == "pg"
    table.locator("th button").first.click()
    assert tab.locator(first).first.inner_text().startswith("a_solver")
