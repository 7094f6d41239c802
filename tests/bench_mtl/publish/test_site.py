"""Whole sites: that all links lead somewhere, that the same rows give the same bytes, and what is never overwritten."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from shown_results import Page, fill, run

from bench_mtl.core.errors import InputError
from bench_mtl.publish import publish, writing
from bench_mtl.publish.names import key_name, slug

RUNS = (
    run("pg", 1.0, 2.0, seed=0),
    run("pg", 1.0, 3.0, seed=1),
    run("scs", 2.0, None, kind="generic", seed=0, reason="time limit"),
    run("scs", 2.0, 9.0, kind="generic", seed=1),
    run("celer", 2.0, 9.0, kind="peer", seed=1),
    run("pg", 1.0, 2.0, family="l1_ball_glm", problem="ball"),
    run("qp", None, None, kind="generic", family="l1_ball_glm", problem="ball", status="skipped", reason="does not fit"),
)

OTHERS = (run("admm", 0.5, 1.0, problem="another", data={"name": "digits"}), run("scs", 2.0, 9.0, kind="generic", problem="another"))

#: Words that would run, or break what they are put in, if they were not taken for text.
HOSTILE = "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">'`${1}`&lt;|[a](javascript:alert(1))"
#: And some that cannot be seen, but that a terminal or a browser obeys.
HIDDEN = "\x1b[2J\u202e\u2028"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Results of three suites, the first of which was run twice."""
    place = tmp_path_factory.mktemp("results")
    later = [{**one, "seconds": tuple(value and 2 * value for value in one["seconds"])} for one in RUNS]
    return [
        fill(place / "a", *RUNS),
        fill(place / "b", *later, started="2026-03-04T00:00:00", commit="def"),
        fill(place / "c", *OTHERS, name="others"),
    ]


@pytest.fixture(scope="module")
def site(folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of these."""
    out = tmp_path_factory.mktemp("site") / "site"
    published = publish(folders, out)
    assert (published.suites, published.instances, published.families, published.rendered) == (3, 8, 2, 3)
    assert published.contradictions == ()
    return out


def pages(site: Path) -> Iterator[tuple[Path, Page]]:
    found = sorted(site.rglob("*.html"))
    assert found
    return ((path, Page(path.read_bytes())) for path in found)


def content(site: Path) -> dict[str, bytes]:
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in sorted(site.rglob("*")) if path.is_file()}


def require_whole(site: Path) -> None:
    """Hold every link of every page to a file, and to a place in it."""
    seen = {path.resolve(): page for path, page in pages(site)}
    for path, page in seen.items():
        for link in page.links:
            file, _, place = link.partition("#")
            target = (path.parent / unquote(file)).resolve() if file else path
            assert target.is_file(), f"{path.name} links to {link}"
            assert not place or unquote(place) in seen[target].places, f"{path.name} links to {link}"


def test_all_links_lead_somewhere_and_every_page_is_reached(site: Path) -> None:
    require_whole(site)
    reached, waiting = set[Path](), [site.resolve() / "index.html"]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            if path.suffix == ".html":
                links = {link.partition("#")[0] for link in Page(path.read_bytes()).links} - {""}
                waiting += [(path.parent / link).resolve() for link in links]
    assert reached == {path.resolve() for path in site.rglob("*") if path.is_file() and path.name != writing.MARK}


def test_every_page_has_its_title_and_machine_on_top_and_versions(site: Path) -> None:
    for path, page in pages(site):
        top = page.text[:3000]
        assert "quick one, 4 cores, 16.0 GiB" in top, path
        assert "bench mtl 0.1.0" in page.text, path
        assert "h1" in page.elements, path
        text = path.read_text()
        assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
        assert "prefers-color-scheme: dark" in text
        assert "default-src &#39;none&#39;; script-src" in text, "its policy lets no request out"


def test_no_page_asks_for_anything_outside_it(site: Path) -> None:
    for path, page in pages(site):
        assert page.acting == [], path
        assert not {"img", "link", "iframe", "object", "embed", "base"} & set(page.elements), path


def test_the_index_says_what_each_suite_is(site: Path) -> None:
    page = Page((site / "index.html").read_bytes())
    for words in ("hand (2026-01-02)", "hand (2026-03-04)", "others", "synthetic_l1inf", "digits", "7, 5 of them verified", "l1_ball_glm"):
        assert words in page.text, words
    assert "a specialised solver is fastest" in page.text
    assert page.links.count("history/hand.html") == 2


def test_the_same_rows_give_the_same_bytes(site: Path, folders: list[Path], tmp_path: Path) -> None:
    publish(folders, tmp_path / "again", jobs=2)
    assert content(tmp_path / "again") == content(site)


def test_what_has_not_changed_is_kept(site: Path, folders: list[Path], tmp_path: Path) -> None:
    out, before = shutil.copytree(site, tmp_path / "site"), content(site)
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    assert publish(folders, out).rendered == 0
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == times
    (out / "suites" / "others.html").write_text("by hand")
    assert publish(folders, out).rendered == 1
    assert content(out) == before
    changed = fill(shutil.copytree(folders[2], tmp_path / "c"), run("admm", 1.0, 2.0, problem="another", seed=2), name="others")
    assert publish([*folders[:2], changed], out).rendered == 1
    after = content(out)
    assert {path for path in before if path.startswith("suites/hand") and after[path] != before[path]} == set()
    assert after["suites/others.html"] != before["suites/others.html"]
    require_whole(out)


def test_what_the_new_site_has_not_is_deleted(site: Path, folders: list[Path], tmp_path: Path) -> None:
    out = shutil.copytree(site, tmp_path / "site")
    (out / ".nojekyll").write_text("")
    assert publish([folders[2]], out).rendered == 0
    assert not (out / "suites" / "hand").exists()
    assert not (out / "history").exists()
    assert not (out / "leaders" / "l1_ball_glm.html").exists()
    assert (out / ".nojekyll").exists(), "names that begin with a dot are somebody else's"
    require_whole(out)


SMALL = {"index.html": b"index", "suites/a.html": b"a", "suites/a/rows.csv": b"rows"}


def small_site(out: Path, files: dict[str, bytes] = SMALL) -> Path:
    writing.write_site(out, files, {}, writing.earlier_site(out))
    return out


def test_a_folder_that_holds_something_else_is_refused(folders: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "site"
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"holds thesis\.tex, and is no earlier site"):
        publish(folders, out)
    assert content(out) == {"thesis.tex": b"years of work"}
    (out / "thesis.tex").unlink()
    before = content(small_site(out))
    (out / "suites" / "notes.html").write_text("mine")
    with pytest.raises(InputError, match=r"holds suites/notes\.html, which is not of an earlier site"):
        publish(folders, out)
    assert content(out) == {**before, "suites/notes.html": b"mine"}
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not a folder"):
        publish(folders, tmp_path / "file")
    with pytest.raises(InputError, match="is a folder of results"):
        publish(folders, folders[2])


@pytest.mark.parametrize("said", ["{}", "[]", "null", "no JSON", '{"made by": "somebody", "files": {}, "suites": {}}', "{" * 10_000])
def test_a_mark_that_is_none_is_refused(said: str, folders: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "site"
    out.mkdir()
    (out / writing.MARK).write_text(said)
    with pytest.raises(InputError, match="is not the mark of an earlier site"):
        publish(folders, out)


def test_a_mark_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    out, mine = small_site(tmp_path / "site"), tmp_path / "mine.html"
    mine.write_text("mine")
    mark = json.loads((out / writing.MARK).read_text())
    mark["files"] |= {"../mine.html": "0", str(mine): "0", "suites/../../mine.html": "0"}
    (out / writing.MARK).write_text(json.dumps(mark))
    small_site(out, {"index.html": b"new"})
    assert set(content(out)) == {"index.html", writing.MARK}
    assert mine.read_text() == "mine"


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    out, elsewhere = small_site(tmp_path / "site"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (out / "history").symlink_to(elsewhere)
    with pytest.raises(InputError, match="holds history, which is not of an earlier site"):
        small_site(out, {**SMALL, "history/a.html": b"history"})
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("after", range(4))
def test_a_build_that_was_killed_can_be_made_again(after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, replace, done = small_site(tmp_path / "site"), os.replace, list[Any]()
    new = {"index.html": b"new", "suites/b.html": b"b"}

    def dying(source: Any, target: Any) -> None:
        if len(done) == after:
            raise KeyboardInterrupt
        done.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", dying)
    with pytest.raises(KeyboardInterrupt):
        small_site(out, new)
    monkeypatch.setattr(os, "replace", replace)
    (out / "index.html.part").write_text("left behind")
    assert content(small_site(out, new)) == content(small_site(tmp_path / "other", new))


def test_words_of_others_are_text(tmp_path: Path) -> None:
    words = HOSTILE + HIDDEN
    runs = [run("pg" + words, 1.0, 2.0, problem=words, notes=[words], options={words: words}, data={"name": words})]
    runs += [run("scs", 2.0, None, kind="generic", problem=words, reason=words, data={"name": words}, family=words)]
    folder = fill(tmp_path / "results", *runs, name=words, description=words, text=words, processor=words, commit=words)
    publish([folder, fill(tmp_path / "more", *runs, name=words, processor=words, commit="x")], tmp_path / "site", title=HOSTILE)
    require_whole(tmp_path / "site")
    for path, page in pages(tmp_path / "site"):
        assert page.acting == [], path
        assert "img" not in page.elements, path
        expected = 0 if path.parent.parent.name == "suites" else 1
        assert path.read_text().count("<script>") == expected, path
        assert page.elements.count("script") == path.read_text().count("</script>"), path
    for path, text in content(tmp_path / "site").items():
        assert not set(HIDDEN[:1] + HIDDEN[-2:]) & set(text.decode()), path


def test_names_of_files_are_harmless() -> None:
    assert slug("Größe ../../etc/passwd") == "groe-etc-passwd"
    assert slug("\u65e5\u672c") == "unnamed"
    assert slug("l1inf_hinge", ["l1inf_hinge"]) == "l1inf_hinge-2"
    assert key_name("0123456789abcdef") == "0123456789abcdef"
    assert len(key_name("../x")) == 16


def test_what_is_no_results_folder(folders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        publish([tmp_path / "nowhere"], tmp_path / "site")
    with pytest.raises(InputError, match="no results in"):
        publish([tmp_path], tmp_path / "site")
    with pytest.raises(InputError, match="give the folder that it is in"):
        publish([folders[0] / "results.sqlite"], tmp_path / "site")
    (tmp_path / "README.md").write_text("")
    (tmp_path / "cells").mkdir()
    fill(tmp_path / "one", *OTHERS)
    assert publish([tmp_path, tmp_path / "one", tmp_path / "README.md"], tmp_path / "site").left_out == ("cells", "README.md")
