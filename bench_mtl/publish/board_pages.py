"""The pages of leader boards: one of all families, and one of each with its standings, instances and the virtual best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bench_mtl.core.errors import plural
from bench_mtl.publish.boards import KINDS, Board, counts, standings
from bench_mtl.publish.paths import BOARDS, address, instance_path, linked, suite_path
from bench_mtl.publish.sources import Source, latest, site_page
from bench_mtl.report.columns import BLANK, enumerated, format_ratio, format_seconds, format_target, share
from bench_mtl.report.document import Part
from bench_mtl.report.tables.winners import ABOUT_EQUAL

if TYPE_CHECKING:
    import pandas as pd

READING = f"""\
- A solver *reaches the target* where the gap was proven to be at most the target in a run; *(3 of 4)* says in how many, if not all, and its
  time is of these. Everything else is a failure, whatever it claimed.
- On every instance the fastest solver of each kind is chosen by its first run and measured by the later ones; the fastest of these wins.
  Solvers within {100 * (ABOUT_EQUAL - 1):.0f} % of it are *among the fastest*; where one is of the other side, they are *about equal*.
  Without a specialised solver and one of the other side, generic or a peer, *one side* ran *alone*, which is no win.
- A solver is not beaten where it was not run: one that was run on few instances may be ranked above one that was run on all.
- The *mean ratio* is exp(mean(log(r + 1))) - 1 over the ratios r of a solver's time to the winner's. It is of solvers that were run on all
  instances and reached the target wherever another did.
- An instance of several suites counts as that one measured it that ran most solvers on it, of several the one that was run last. Options
  that a label does not usually have are named; the tolerances that a generic solver was asked for are not.
"""

_READ = Part("How to read this", READING, name="reading")


def board_pages(boards: Sequence[Board], sources: Sequence[Source]) -> dict[str, bytes]:
    """Return the pages of all boards by path; `sources` are the results that they are of."""
    titles = {source.slug: source.title for source in sources}
    rows = [{"Problem": board.family, "Machine": board.machine, "Target": format_target(board.target), **counts(board)} for board in boards]
    head = "Who is fastest to a proven gap, by family of problems and target, counted over single instances."
    addresses = [f"{board.path}#{_anchor(board)}" for board in boards]
    table = _table(rows) if len(sources[0].machines) > 1 else _table(rows).drop(columns="Machine", errors="ignore")
    parts = [Part("Boards", table=table, name="boards", addresses=addresses)] if rows else []
    pages = {BOARDS: site_page(BOARDS, "Leader boards", [head], [*parts, _READ], latest(sources))}
    for path in dict.fromkeys(board.path for board in boards):
        of_family = [board for board in boards if board.path == path]
        used = {suite for board in of_family for suite in board.entries["suite"]}
        shown = [source for source in sources if source.slug in used]
        named = enumerated([linked(source.title, suite_path(source.slug), path) for source in shown])
        head = f"Who is fastest, instance by instance. From {named}." if shown else "No instance can be counted."
        parts = [part for board in of_family for part in _board(board, titles)]
        pages[path] = site_page(path, f"Leaders: {of_family[0].family}", [head], [*parts, _READ], shown or sources)
    return pages


def _anchor(board: Board) -> str:
    return "-".join(["to", format_target(board.target), *board.machine.split()])


def _table(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Return rows as a table of texts."""
    import pandas as pd

    return pd.DataFrame(rows).astype(str)


def _board(board: Board, titles: Mapping[str, str]) -> Iterator[Part]:
    """Yield a board: its counts, and its tables."""
    anchor = _anchor(board)
    (_, total), *of = counts(board).items()
    parts = [f"{title[:1].lower()}{title[1:]} {count}" for title, count in of if count]
    sentences = [f"{plural(total, 'instance')}: {', '.join(parts)}." if parts else "There is no instance to count."]
    if board.repeated:
        sentences.append(f"Not counted: {plural(board.repeated, 'further measurement')} of instances that several suites hold.")
    if board.contradicted:
        left_out = plural(board.contradicted, "instance")
        sentences.append(f"**Left out: {left_out} on which proven bounds contradict each other; see the suite's report.**")
    title = ", ".join(filter(None, [f"To {format_target(board.target)}", board.machine]))
    yield Part(title, " ".join(sentences), name=anchor)
    if not parts:
        return
    table = standings(board)
    table["mean_ratio"] = [format_ratio(mean) if mean == mean else BLANK for mean in table["mean_ratio"]]
    table = table.set_axis([str(name).replace("_", " ").capitalize() for name in table], axis=1).astype(str)
    about = "Each number counts instances, but for the mean ratio. Those are first that fail on the smallest share."
    yield Part("Solvers", about, table=table, name=f"standings-{anchor}", level=3)
    contests = [entries for _, entries in board.entries.groupby("contest", sort=False)]
    addresses = [address(instance_path(*entries[["suite", "instance"]].iloc[0]), board.path) for entries in contests]
    about = "The fastest solver of every kind; *fails*: none of that kind reached the target; *not run*: none was run."
    table = _table([_contest(entries, titles) for entries in contests])
    yield Part("Instances", table=table, after=about, name=f"instances-{anchor}", level=3, addresses=addresses)


def _contest(entries: pd.DataFrame, titles: Mapping[str, str]) -> dict[str, str]:
    """Return the row of an instance: the winner, and the fastest of every kind."""
    first = entries.iloc[0]
    label = first["problem"] if entries["seed"].isna().any() else f"{first['problem']}, seed {first['seed']:.0f}"
    winner = _leader(entries, "is_winner", "is_level") or "nobody reaches the target"
    row = {"Instance": label, "Suite": titles[first["suite"]], "Fastest": winner if first["is_contested"] else "one side alone was run"}
    for kind in KINDS:
        of_kind = entries[entries["kind"] == kind]
        row[kind.capitalize()] = _leader(of_kind, "is_best", "is_level_in_kind") or ("fails" if len(of_kind) else "not run")
    return row


def _leader(entries: pd.DataFrame, chosen: str, level: str) -> str:
    """Return the best of some entries with its seconds, and those that are about as fast; nothing where nobody got there."""
    best, also = entries[entries[chosen]], ", ".join(entries.loc[entries[level], "solver"])
    named = [
        f"{solver}, {format_seconds(seconds)} s{share(reached, runs)}"
        for solver, seconds, reached, runs in best[["solver", "seconds", "reached", "runs"]].itertuples(index=False)
    ]
    return "".join(named) + (f" (about as fast: {also})" if also else "")
