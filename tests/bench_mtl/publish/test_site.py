"""Whole sites: that all links lead somewhere, that pages say what rows do, and what is never overwritten."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from shown_results import Page, fill, run

from bench_mtl.core.errors import InputError
from bench_mtl.publish import publish
from bench_mtl.publish.pages import history_page
from bench_mtl.publish.paths import instance_name, slug
from bench_mtl.publish.site import MARK, in_place_of
from bench_mtl.publish.sources import read_sources, versions_of
from bench_mtl.results.loading import read_results

RUNS = (
    run("pg", 1.0, 2.0, seed=0, notes=["a note"]),
    run("pg", 1.0, 3.0, seed=1),
    run("scs", 2.0, None, kind="generic", seed=0, reason="time limit"),
    run("scs", 2.0, 9.0, kind="generic", seed=1),
    run("celer", 2.0, 9.0, kind="peer", seed=1),
    run("pg", 1.0, 2.0, family="l1_ball_glm", problem="ball"),
    run("qp", None, None, kind="generic", family="l1_ball_glm", problem="ball", status="crashed", reason="signal 9"),
)
OTHERS = (run("admm", 0.5, 1.0, problem="another", data={"name": "digits"}), run("scs", 2.0, 9.0, kind="generic", problem="another"))

#: Words that would run, or break what they are put in, if they were not taken for text.
HOSTILE = "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">'`${1}`&lt;|[a](javascript:alert(1))"
#: And some that cannot be seen, but that a terminal or a browser obeys.
HIDDEN = "\x1b[2J\u202e\u2028"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Results of three suites, the first of which was run twice, and then on another machine."""
    place = tmp_path_factory.mktemp("results")
    later = [{**one, "seconds": tuple(value and 2 * value for value in one["seconds"])} for one in RUNS]
    return [
        fill(place / "a", *RUNS),
        fill(place / "b", *later, started="2026-03-04T00:00:00", commit="def"),
        fill(place / "c", *OTHERS, name="others", isolation="inline"),
        fill(place / "d", *RUNS, started="2026-04-04T00:00:00", processor="slow one"),
    ]


@pytest.fixture(scope="module")
def site(folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of these."""
    out = tmp_path_factory.mktemp("site") / "site"
    published = publish(folders, out)
    assert (published.suites, published.instances, published.families, published.contradictions) == (4, 11, 2, ())
    return out


def pages(site: Path) -> dict[Path, Page]:
    return {path.resolve(): Page(path.read_bytes()) for path in sorted(site.rglob("*.html"))}


def content(site: Path) -> dict[str, bytes]:
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in sorted(site.rglob("*")) if path.is_file()}


def require_whole(site: Path) -> None:
    """Hold every link of every page to a file, and to a place in it, every file to a link, and every page to doing nothing."""
    seen, reached = pages(site), {(site / "index.html").resolve(), (site / MARK).resolve()}
    for path, page in seen.items():
        for link in page.links:
            file, _, place = link.partition("#")
            target = (path.parent / unquote(file)).resolve() if file else path
            assert target.is_file(), f"{path.name} links to {link}"
            assert not place or unquote(place) in seen[target].places, f"{path.name} links to {link}"
            reached.add(target)
        assert page.acting == [], path
        assert not {"img", "link", "iframe", "object", "embed", "base"} & set(page.elements), path
        assert page.elements.count("script") == path.read_text().count("<script>") == path.read_text().count("</script>") == 1, path
        assert "default-src &#39;none&#39;; script-src" in path.read_text(), "its policy lets no request out"
    assert reached == {path.resolve() for path in site.rglob("*") if path.is_file()}


def test_every_page_is_reached_and_says_where_its_numbers_are_from(site: Path) -> None:
    require_whole(site)
    for path, page in pages(site).items():
        assert "quick one, 4 cores, 16.0 GiB" in page.text or "slow one" in page.text, path
        assert "bench mtl 0.1.0" in page.text, path
        is_inline = "others" in path.as_posix() or path.name in ("index.html", "leaders.html", "l1inf_hinge.html")
        assert ("(isolation inline)" in page.text) == is_inline, path


def test_an_instance_is_one_seed_and_its_downloads_are_its_rows(site: Path, folders: list[Path]) -> None:
    runs = read_results(folders[0]).runs
    key = runs["instance_key"][0]
    page = Page((site / f"suites/hand/{key}.html").read_bytes())
    for words in ("lasso, seed 0", "n = 7 examples in all, d = 3, m = 2", "radius = 1.0", "a note", "time limit"):
        assert words in page.text, words
    assert "the optimum lies between 0.9999500000 (by pg) and 1.000000000 (by pg)" in page.text
    assert "seed 1" not in page.text
    rows = list(csv.DictReader(io.StringIO((site / f"suites/hand/{key}.csv").read_text())))
    told = json.loads((site / f"suites/hand/{key}.json").read_text())
    assert told["enclosure"] == {"dual": 1 - 0.5e-4, "dual_solver": "pg", "primal": 1.0, "primal_solver": "pg", "agrees": True}
    of_key = runs[runs["instance_key"] == key].to_dict("records")
    for row, one, stored in zip(rows, told["runs"], of_key, strict=True):
        for name in ("primal", "dual", "relative_gap", "solve_seconds"):
            assert float(row[name]) == one[name] == stored[name]
        assert one["data"] == json.loads(row["data"]) == {"name": "synthetic_l1inf"}
        assert one["wall_seconds"] is None


def test_contradictions_and_nothing_proven_are_told(tmp_path: Path) -> None:
    runs = [run("pg", 1.0, 2.0), run("scs", 1.0, 2.0, kind="generic", optimum=0.5), run("scs", None, None, kind="generic", problem="b")]
    assert publish([fill(tmp_path / "a", *runs)], tmp_path / "site").contradictions == ("hand",)
    texts = [page.text for path, page in pages(tmp_path / "site").items() if path.parent.name == "hand"]
    assert [sum(words in text for text in texts) for words in ("CONTRADICTION on lasso", "No run has proven anything of it.")] == [1, 1]
    assert "Proven bounds contradict each other in hand" in Page((tmp_path / "site/index.html").read_bytes()).text


def test_the_history_has_ratios_of_the_cases_that_all_results_have(tmp_path: Path, site: Path) -> None:
    text = Page((site / "history/hand.html").read_bytes()).text
    assert "Not compared: they were made under different conditions: processor (quick one in A, slow one in B)." in text
    folders = []
    for day, seeds in ((3, 6), (1, 6), (2, 5)):
        runs = [run("pg", day, 2.0 * day, seed=seed) for seed in range(seeds)]
        folders.append(fill(tmp_path / f"{day}", *runs, started=f"2026-01-{day:02d}T00:00:00"))
    (versions,) = versions_of(read_sources(folders))
    text = Page(history_page(versions)).text.partition("Results hand")[2]  # after the list of parts
    for old, new, ratio in (("hand (2026-01-01)", "hand-2 (2026-01-02)", "2.00"), ("hand (2026-01-01)", "hand-3 (2026-01-03)", "3.00")):
        step = text.partition(f"From {old} to {new} ")[2].partition("From ")[0]
        assert "5 pairs compared" in step, "one instance is not in all of them"
        assert ratio in step


def test_the_same_rows_give_the_same_bytes_and_an_earlier_site_is_replaced(folders: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "site"
    publish([folders[2]], out)
    before = content(out)
    (out / ".git").mkdir()
    (out / ".git" / "config").write_text("mine")
    publish([folders[2]], out)
    assert content(out) == {".git/config": b"mine", **before}, "names that begin with a dot are somebody else's"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_folder_that_holds_something_else_is_refused(folders: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "site"
    with in_place_of(out) as new:
        (new / "index.html").write_text("earlier")
    mark = (out / MARK).read_text()
    (out / "thesis.tex").write_text("years of work")
    (out / "link").symlink_to(tmp_path)
    for foreign in ("link", r"thesis\.tex"):
        with pytest.raises(InputError, match=f"holds {foreign}, which is not of an earlier site"):
            publish(folders, out)
        (out / foreign.replace("\\", "")).rename(tmp_path / foreign)
    for wrong in ("{}", "null", "no JSON", mark.replace("bench-mtl", "somebody"), "{" * 10_000):
        (out / MARK).write_text(wrong)
        with pytest.raises(InputError, match=r"holds index\.html, which"):
            publish(folders, out)
    assert (out / "index.html").read_text() == "earlier"
    with pytest.raises(InputError, match="is not a folder"):
        publish(folders, out / MARK)
    with pytest.raises(InputError, match="is a folder of results"):
        publish(folders, folders[2])


class Killed(BaseException):
    """What a signal does: nothing that comes after it runs."""


@pytest.mark.parametrize("after", range(4))
def test_a_build_that_is_killed_leaves_the_earlier_site_and_can_be_made_again(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, calls = tmp_path / "site", list[Any]()

    def build(words: str) -> None:
        with in_place_of(out) as new:
            (new / f"{words}.html").write_text(words)

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def mortal(*arguments: Any, **more: Any) -> Any:
            calls.append(arguments)
            if len(calls) > after + 1:  # the first takes away what an earlier build has left
                raise Killed
            return call(*arguments, **more)

        return mortal

    build("old")
    (out / ".nojekyll").write_text("")
    before = content(out)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dying(Path.rename))
        patch.setattr(shutil, "rmtree", dying(shutil.rmtree))
        with pytest.raises(Killed):
            build("new")
    places = [content(place) for place in (out, tmp_path / ".site.build" / "old") if place.exists()]
    assert before in places or "new.html" in places[0]
    build("new")
    assert set(content(out)) == {".nojekyll", "new.html", MARK}
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_of_two_builds_of_one_site_the_second_fails_and_the_first_is_whole(folders: list[Path], tmp_path: Path) -> None:
    with in_place_of(tmp_path / "site") as new:
        with pytest.raises(InputError, match=r"\.site\.build: wait for its end"):
            publish(folders, tmp_path / "site")
        (new / "index.html").write_text("first")
    assert set(content(tmp_path)) == {"site/index.html", f"site/{MARK}"}


def test_words_of_others_are_text(tmp_path: Path) -> None:
    words = HOSTILE + HIDDEN
    runs = [run("pg" + words, 1.0, 2.0, problem=words, notes=[words], options={words: words}, data={"name": words})]
    runs += [run("scs", 2.0, None, kind="generic", problem=words, reason=words, data={"name": words}, family=words)]
    folder = fill(tmp_path / "results", *runs, name=words, description=words, text=words, processor=words, commit=words)
    publish([folder, fill(tmp_path / "more", *runs, name=words, processor=words, commit="x")], tmp_path / "site", title=HOSTILE)
    require_whole(tmp_path / "site")
    for path, text in content(tmp_path / "site").items():
        assert not set(HIDDEN[:1] + HIDDEN[-2:]) & set(text.decode()), path


def test_names_of_files_are_harmless() -> None:
    names = [slug("Größe ../../etc/passwd"), slug("\u65e5\u672c"), slug("l1inf_hinge", ["l1inf_hinge"]), instance_name("0123456789abcdef")]
    assert names == ["groe-etc-passwd", "unnamed", "l1inf_hinge-2", "0123456789abcdef"]
    assert len(instance_name("../x")) == 16


def test_what_is_no_results_folder(folders: list[Path], tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "nowhere", "does not exist"),
        (tmp_path, "no results in"),
        (folders[0] / "results.sqlite", "give the folder"),
    ):
        with pytest.raises(InputError, match=reason):
            publish([path], tmp_path / "site")
    (tmp_path / "README.md").write_text("")
    (tmp_path / "cells").mkdir()
    fill(tmp_path / "one", *OTHERS)
    assert publish([tmp_path, tmp_path / "one", tmp_path / "README.md"], tmp_path / "site").left_out == ("cells", "README.md")
