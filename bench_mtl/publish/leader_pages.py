"""The leader boards as pages: one of all families, and one for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_mtl.core.errors import plural
from bench_mtl.publish.layout import LEADERS, address, family_path, instance_path, links, site_page, suite_path
from bench_mtl.publish.leaders import KINDS, RATIO_SHIFT, Block, Board, Contest, Entry
from bench_mtl.publish.names import slug
from bench_mtl.publish.sources import Source, inline_alarms, provenance_of
from bench_mtl.report.columns import BLANK, enumerated, escaped, format_ratio, format_seconds, format_target
from bench_mtl.report.render.shell import Markdown
from bench_mtl.report.render.tables import Cell, Column, Table
from bench_mtl.report.tables.winners import ABOUT_EQUAL
from bench_mtl.report.words import machine_words
from bench_mtl.results.frames import SPECIALISED
from bench_mtl.results.loading import machine_name

if TYPE_CHECKING:
    from markupsafe import Markup

VIRTUAL_BEST = "virtual best"

READING = f"""\
- **Gets there**: the gap to the optimum was *proven* to be at most the target, in every run of the solver on the instance. What was not
  proven is a failure, whatever the solver claimed.
- **Fastest**: on every instance the fastest solver of each kind is chosen by its first run and measured by the later ones, where there are
  any; the fastest of these is the winner. It is counted as *fastest* where no other solver is within
  {100 * (ABOUT_EQUAL - 1):.0f} % of its time, and otherwise all that are within are *about as fast*. Only instances count on which a
  specialised solver and one of the other side, generic or a peer, were run.
- **Of its kind**: the same among the solvers of one kind, on the instances that at least two of them were run on.
- **Run on**: a solver is not beaten where it was not run. One that was run on few instances may so stand above one that was run on all: the
  ratios to the virtual best compare only solvers that were run on the same instances.
- **Virtual best**: on every instance the winner's time: nobody has it who must choose one solver beforehand. The mean is
  exp(mean(log(r + {RATIO_SHIFT:g}))) - {RATIO_SHIFT:g} over the ratios r of a solver's time to it, on instances that all solvers of the
  table were run on; a ratio is below 1 where first runs, by which the winner is chosen, misled. A solver that failed on any of these has no
  mean. Solvers stand in the order of their failures, then of their means.
- Every number is of the options, limits and versions of its suite. An instance that several suites hold counts once to a target: as the
  suite measured it that ran most solvers on it, of several the one that was run last. Options other than those that a label usually has are
  named; the tolerances that a generic solver was asked for are not.
"""


@dataclass(frozen=True)
class _Part:
    """A board as the template draws it."""

    name: str
    title: str
    words: Markup
    tables: Sequence[Table]


def family_slugs(boards: Sequence[Board]) -> dict[str, str]:
    """Return the names of the files of all families."""
    found: dict[str, str] = {}
    for board in boards:
        if board.family not in found:
            found[board.family] = slug(board.family, found.values())
    return found


def leader_pages(boards: Sequence[Board], sources: Sequence[Source], machines: Sequence[Mapping[str, object]]) -> dict[str, bytes]:
    """Return the pages of all boards by path.

    Parameters
    ----------
    boards : of all families, those of a family together
    sources : the results that they are of
    machines : in the order of their places
    """
    md, slugs = Markdown(), family_slugs(boards)
    pages = {LEADERS: _overview_page(boards, slugs, sources, machines, md)}
    for family, name in slugs.items():
        pages[family_path(name)] = _family_page(family, name, [board for board in boards if board.family == family], sources, machines, md)
    return pages


def counts_sentence(board: Board) -> str:
    """Return which kind of solver is fastest on how many instances, in a sentence."""
    parts = []
    for count in board.kinds:
        if count.fastest:
            parts.append(f"a {count.kind} solver is fastest on {count.fastest}")
        if count.level:
            rivals = "a generic solver or a peer" if count.kind == SPECIALISED else "a specialised one"
            parts.append(f"a {count.kind} solver is about as fast as {rivals} on {count.level}")
    parts += [f"no solver gets there on {board.nobody}"] if board.nobody else []
    parts += [f"solvers of one side alone were run on {board.alone}, which is no win"] if board.alone else []
    return f"Of {plural(len(board.contests), 'instance')} {enumerated(parts)}." if parts else "There is no instance to count."


def _overview_page(
    boards: Sequence[Board], slugs: Mapping[str, str], sources: Sequence[Source], machines: Sequence[Mapping[str, object]], md: Markdown
) -> bytes:
    """Return the page of all families: a row for every board."""
    several = len(machines) > 1
    titles = ["Problem", *(["Machine"] if several else []), "Target", "Instances"]
    titles += [*(f"Fastest: {kind}" for kind in KINDS), "About equal", "Nobody", "One side alone"]
    rows = [
        [
            Cell(board.family, address=address(f"{family_path(slugs[board.family])}#{_anchor(board, several=several)}", LEADERS)),
            *([Cell(machine_name(board.machine))] if several else []),
            Cell(format_target(board.target)),
            *map(_number, _overview_counts(board)),
        ]
        for board in boards
    ]
    columns = [Column(title, title not in ("Problem", "Machine")) for title in titles]
    table = Table("boards", "Leader boards", md(""), columns, rows)
    head = md(
        "Who is fastest to a proven gap, by family of problems and target, counted over single instances. *About equal*: the winner and a "
        f"solver of the other side are within {100 * (ABOUT_EQUAL - 1):.0f} %. *One side alone*: there was nobody to win against."
    )
    latest = [source for source in sources if source.is_latest]
    provenance = md(_provenance(latest, machines, None))
    return site_page(
        "leaders.html", "Leader boards", links(LEADERS)[:1], head, provenance, {"overview": table}, alarms=inline_alarms(latest)
    )


def _overview_counts(board: Board) -> tuple[int, ...]:
    """Return all instances, and how they divide."""
    level = sum(each.level for each in board.kinds)
    return len(board.contests), *(each.fastest for each in board.kinds), level, board.nobody, board.alone


def _family_page(
    family: str,
    name: str,
    boards: Sequence[Board],
    sources: Sequence[Source],
    machines: Sequence[Mapping[str, object]],
    md: Markdown,
) -> bytes:
    """Return the page of one family: a part for every machine and target."""
    page, several = family_path(name), len(machines) > 1
    titles = {source.slug: source.title for source in sources}
    parts = []
    for board in boards:
        where, anchor = f", {machine_name(board.machine)}" if several else "", _anchor(board, several=several)
        tables = [*_standings(board, anchor, md), *_blocks(board, anchor, titles, md), *_instances(board, anchor, titles, page, md)]
        parts.append(_Part(anchor, f"To {format_target(board.target)}{where}", md(_words(board)), tables))
    used = {contest.suite for board in boards for contest in board.contests}
    shown = [source for source in sources if source.slug in used]
    named = enumerated([f"[{escaped(source.title)}]({address(suite_path(source.slug), page)})" for source in shown])
    head = md(f"Who is fastest on {escaped(family)}, instance by instance. From {named}." if shown else "No instance can be counted.")
    provenance = md(_provenance(shown or sources, machines, family if shown else None))
    parts_of_page = {"boards": parts, "reading": md(READING)}
    alarms = inline_alarms(shown)
    return site_page("family.html", f"Leaders: {family}", links(page), head, provenance, parts_of_page, alarms=alarms)


def _provenance(sources: Sequence[Source], machines: Sequence[Mapping[str, object]], family: str | None) -> str:
    """Return what the times of a family, or of all, depend on."""
    lines = provenance_of(sources, family)
    if len(machines) > 1:
        used = sorted({place for source in sources for place in source.machine_of.values()})
        lines["Machine"] = "; ".join(f"{machine_name(place)}: {escaped(machine_words(machines[place]))}" for place in used)
    kept = ("Machine", "Run", "Versions", "Libraries", "Threads")
    return "\n".join(f"- {title}: {lines[title]}" for title in kept if title in lines)


def _anchor(board: Board, *, several: bool) -> str:
    return f"to-{format_target(board.target)}" + (f"-{board.machine + 1}" if several else "")


def _words(board: Board) -> str:
    sentences = [counts_sentence(board)]
    if board.repeated:
        sentences.append(f"Not counted: {plural(board.repeated, 'further measurement')} of instances that several suites hold.")
    if board.contradicted:
        sentences.append(
            f"**Left out: {plural(board.contradicted, 'instance')} on which proven bounds contradict each other; see the suite's report.**"
        )
    return " ".join(sentences)


def _standings(board: Board, anchor: str, md: Markdown) -> list[Table]:
    """Return the table of all solvers."""
    if not board.contests:
        return []
    titles = ("Run on", "Gets there", "Fails", "Fastest", "About as fast", "Fastest of its kind", "About as fast, of its kind")
    columns = [Column("Solver"), Column("Kind"), *(Column(title, numeric=True) for title in titles)]
    rows = [
        [
            Cell(each.solver),
            Cell(each.kind),
            *map(_number, (each.run_on, each.there, each.run_on - each.there)),
            *map(_number, (each.fastest, each.level, each.fastest_of_kind, each.level_of_kind)),
        ]
        for each in board.standings
    ]
    about = md(
        f"Numbers of instances, of {len(board.contests)} in all. Those that fail on the smallest share of what they were run on come first."
    )
    return [Table(f"standings-{anchor}", "Solvers", about, columns, rows)]


def _blocks(board: Board, anchor: str, titles: Mapping[str, str], md: Markdown) -> list[Table]:
    """Return the table of the ratios to the virtual best; none where no two solvers were run on the same instances."""
    rows = [row for block in board.blocks for row in _block_rows(block, titles)]
    if not rows:
        return []
    heads = ("On", "Solver", "Kind", "Gets there", "Fails", "Mean ratio to the virtual best")
    columns = [Column(title, title in heads[3:]) for title in heads]
    left_out = [f"{escaped(_block_title(block, titles))}: {escaped(', '.join(block.others))}" for block in board.blocks if block.others]
    about = (
        "Only instances on which some solver gets there, and only solvers that were run on all instances of their part. "
        "A solver that fails on one of them has no mean."
    )
    if all(block.suite is not None for block in board.blocks):
        about += f" No two solvers were run on all {len(board.contests)} instances, so that there are only parts, by suite."
    about += f"\n\nRun on some instances alone, and not compared: {'; '.join(left_out)}." if left_out else ""
    return [Table(f"virtual-best-{anchor}", "Against the virtual best", md(about), columns, rows)]


def _block_title(block: Block, titles: Mapping[str, str]) -> str:
    return "all" if block.suite is None else titles[block.suite]


def _block_rows(block: Block, titles: Mapping[str, str]) -> list[list[Cell]]:
    """Return the virtual best of a block, with its time, and the solvers below it."""
    title = f"{_block_title(block, titles)} ({plural(block.instances, 'instance')})"
    mean = Cell(f"1 ({format_seconds(block.seconds)} s)")
    rows = [[Cell(title), Cell(VIRTUAL_BEST), Cell(BLANK), _number(block.solved), _number(block.instances - block.solved), mean]]
    for each in block.ratios:
        words = f"fails on {each.failed} of {block.solved}" if each.mean is None else format_ratio(each.mean)
        counts = map(_number, (each.there, block.instances - each.there))
        rows.append([Cell(title), Cell(each.solver), Cell(each.kind), *counts, Cell(words)])
    return rows


def _instances(board: Board, anchor: str, titles: Mapping[str, str], page: str, md: Markdown) -> list[Table]:
    """Return the table of all instances: the fastest solver of every kind."""
    if not board.contests:
        return []
    heads = ("Instance", "Suite", "Fastest", "Seconds", *(title for kind in KINDS for title in (kind.capitalize(), "Its seconds")))
    columns = [Column(title, title.endswith("econds")) for title in heads]
    rows = [_instance_row(contest, titles, page) for contest in board.contests]
    about = md(
        "The fastest solver of every kind; *fails*: none of that kind got there; *not run*: none was run. In brackets those that are about "
        "as fast."
    )
    return [Table(f"instances-{anchor}", "Instances", about, columns, rows)]


def _instance_row(contest: Contest, titles: Mapping[str, str], page: str) -> list[Cell]:
    seed = "" if contest.seed is None else f", seed {contest.seed}"
    own = address(instance_path(contest.suite, contest.instance), page)
    cells = [Cell(f"{contest.problem}{seed}", address=own), Cell(titles[contest.suite], address=address(suite_path(contest.suite), page))]
    winner = contest.winner
    if not contest.is_contested:
        cells += [Cell("one side alone was run", "quiet"), Cell(BLANK)]
    elif winner is None:
        cells += [Cell("nobody gets there", "bad"), Cell(BLANK)]
    else:
        cells += [Cell(_with_level(winner, contest.level_with(winner))), _seconds(winner)]
    for kind in KINDS:
        best = contest.best(kind)
        if best is not None:
            level = tuple(entry for entry in contest.level_with(best) if entry.kind == kind)
            cells += [Cell(_with_level(best, level)), _seconds(best)]
        else:
            cells += [Cell("fails", "bad") if contest.was_run(kind) else Cell("not run", "quiet"), Cell(BLANK)]
    return cells


def _with_level(best: Entry, level: Sequence[Entry]) -> str:
    return best.solver + (f" ({', '.join(entry.solver for entry in level)})" if level else "")


def _seconds(entry: Entry) -> Cell:
    return Cell(format_seconds(entry.seconds or 0.0))


def _number(value: float) -> Cell:
    return Cell(f"{value:g}")
