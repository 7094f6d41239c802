"""The report of a suite as a document: what was asked, who won, how fast, what was run, what failed and why, then the details."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bench_mtl.core.errors import plural
from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.core.types import Status
from bench_mtl.report import registry, words
from bench_mtl.report.columns import display, escaped, format_target, paragraphs
from bench_mtl.report.document import Document, Part
from bench_mtl.report.figures.gallery import Entry
from bench_mtl.report.registry import TABLES, printed
from bench_mtl.report.tables import summary
from bench_mtl.report.tables.winners import OUTCOME
from bench_mtl.results.frames import all_skipped
from bench_mtl.results.loading import Results

if TYPE_CHECKING:
    import pandas as pd

FAILED = "What failed and why"

#: Tables that have places of their own: near the head, and after all problems. The others, or all rows of these, are on the page alone.
_FIRST = ("winners", "not_verified", "speed_ups")
_LAST = ("measures", "scaling", "workers", "communication", "times", "tolerances", "objectives")

_EVERY = "Tables to sort and filter, of every problem and every target."
_TIGHTEST = (
    "The tables are to the tightest target; `bench-mtl report FOLDER` writes all targets, as CSV files and under Details of the HTML page."
)


def suite_document(
    results: Results, tables: Mapping[str, pd.DataFrame], entries: Sequence[Entry], *, every_table: bool = False
) -> Document:
    """Return the report of a suite, from its `report_tables` and figures.

    `every_table` says whether the tables that text has a part of, or leaves to files, follow at the end.
    """

    def figures(*kinds: str, of: str = "") -> list[Part]:
        return [Part(figure=entry, subject=of) for entry in entries if entry.kind in kinds and (not of or entry.subject == of)]

    unverified = tables["not_verified"]
    lines = words.tracebacks(results.runs, results.places)
    command = words.command_line(results.name, results.text, results.runs["data"].unique())
    provenance = "\n".join(f"- {title}: {line}" for title, line in words.provenance_lines(results.environments, results.runs).items())
    parts = [
        _answers(results, tables),
        *figures("seconds"),
        Part("What was run", f"{paragraphs(results.description)}\n\n{words.where(results)}", name="run"),
        *_table("winners", tables),
        *_failures(results, tables, unverified[unverified["status"] != Status.SKIPPED]),
        *_table("speed_ups", tables, figures("speed_ups", "spread")),
        Part("Problems", name="problems"),
        *(part for place, problem in enumerate(results.runs["problem_label"].unique(), start=1)
          for part in _problem(place, str(problem), results, tables, figures("gap", "measure", "trade_off", of=str(problem)))),
        *_across_problems(tables, figures("profile", "front")),
        Part("Details", _EVERY if every_table else "", name="details"),
        *(part for name in _LAST for part in _table(name, tables, figures("scaling") if name == "scaling" else (), level=3)),
        *skipped(unverified),
        *(_other_tables(tables) if every_table else ()),
        *([Part(words.RAISED, words.verbatim(lines, "text"), name="raised", level=3)] if lines else ()),
        Part("How to read this", words.reading(results.runs["kind"]), name="reading"),
        Part("Known limitations", words.limitations(results.runs), name="limitations"),
        Part("Environment", f"{provenance}\n\n{words.environment(results.environments)}", name="environment"),
        Part("Suite", f"Made by:\n\n{words.verbatim(command, 'sh')}\n\n{words.verbatim(results.text, 'toml')}", name="suite"),
    ]  # fmt: skip
    solvers = dict(zip(results.runs["solver_label"].map(str), results.runs["kind"].map(str), strict=True))
    return Document(one_line(results.name, LONGEST_LABEL), _introduction(results, tables), tuple(parts), solvers)


def _introduction(results: Results, tables: Mapping[str, pd.DataFrame]) -> str:
    """Return the title, contradictions before all else, what was asked, and what a reader must know before the winners: that times are of
    an older clock, that this is an excerpt, that cases are missing, that solvers could reach their judge."""
    alarms = [f"> **{escaped(sentence)}**" for sentence in words.contradictions(tables["enclosures"])]
    notices = [words.clock(results.runs), escaped(results.view.sentence), words.not_asked(results), words.unfinished(results.missing)]
    notices.append(words.inline(results.environments))
    head = [f"# {escaped(results.name)}", *alarms, words.asked(results)]
    return "\n\n".join([*head, *(f"> {sentence}" for sentence in notices if sentence)])


def _answers(results: Results, tables: Mapping[str, pd.DataFrame]) -> Part:
    """Return who wins: a sentence and a short table of the tightest target to which anybody gets on half of the problems; below them the
    other targets, how sure that is, and what disturbed runs or tells them apart."""
    winners, enclosures = tables["winners"], tables["enclosures"]
    reached = winners["winner"].notna().groupby(winners["target"]).mean()
    target = min(reached.index[reached >= 0.5], default=min(reached.index, default=0.0))
    outcome = winners[winners["target"] == target]
    alone = outcome["walkover"].astype(bool) & (outcome["rivals"] == "")
    outcome = outcome.assign(rivals=outcome["rivals"].mask(alone, "no rival run"))
    first, others = words.headlines(winners), list[str]()
    if len(first) > len(words.headlines(outcome)):
        first, others = words.headlines(outcome), words.headlines(winners[winners["target"] != target])
    agree = "No run's bounds contradict another's." if len(enclosures) and enclosures["agrees"].all() else ""
    sure = " ".join(filter(None, [*others, agree, words.certainty(winners)]))
    different = words.machines(results.machines) or words.environments_differ(results.environments)
    notices = [f"> {sentence}" for sentence in (words.disturbed(results.runs), different) if sentence]
    table = display(outcome, registry.with_machine(OUTCOME)).rename(columns={"Winner": f"Winner to {format_target(target)}"})
    after = "\n\n".join(filter(None, [sure, *notices]))
    return Part("What came out", " ".join(first), table=table if len(outcome) else None, after=after, name="answers")


def skipped(not_verified: pd.DataFrame) -> Iterator[Part]:
    """Yield the pairs of problem and solver that do not fit, a line a reason; nothing where there are none."""
    table = summary.skipped(not_verified)
    if len(table):
        yield Part("Skipped", "Pairs that do not fit, by the reason.", table=display(table, summary.SKIPPED), name="skipped", level=3)


def _failures(results: Results, tables: Mapping[str, pd.DataFrame], failed: pd.DataFrame) -> Iterator[Part]:
    """Yield how runs ended: how often how, of each solver that failed, and every run that failed with its reason."""
    statuses = tables["statuses"]
    some = statuses[statuses["tried"] > statuses[Status.VERIFIED]]
    some = some.loc[:, (some != 0).any()]  # a status that no run has says nothing
    who = "\n".join(f"- **{escaped(problem)}**: {escaped(sentence)}" for problem, sentence in words.failures(tables["winners"]))
    yield Part(FAILED, f"{words.run_counts(results.runs)}\n\n{who}", table=printed("statuses", some) if len(some) else None, name="failed")
    yield from _table("not_verified", {"not_verified": failed}, level=3)
    curves = results.traced[[Status(status).is_failure for status in results.traced["status"]]]
    if len(curves):
        yield Part(
            words=f"Of the runs for curves, which count for nothing else: {words.run_counts(curves)}",
            table=printed("not_verified", summary.not_verified(curves, results.places)),
        )


def _problem(place: int, problem: str, results: Results, tables: Mapping[str, pd.DataFrame], figures: Sequence[Part]) -> Iterator[Part]:
    """Yield what is said of one problem: what it is, what every solver came to, what is proven of its optimum, and its figures."""
    runs = results.runs[results.runs["problem_label"] == problem]
    rows, bounds = (tables[name].loc[tables[name]["problem"] == problem] for name in ("summary", "enclosures"))
    is_skipped = all_skipped(rows["status"])
    ran, skipped = rows[~is_skipped], escaped(", ".join(rows.loc[is_skipped, "solver"].unique()))
    table = printed("summary", ran, "problem") if len(ran) else None
    note = f"Skipped, for they do not fit: {skipped}." if skipped else ""
    after = "\n\n".join(filter(None, [note, words.solver_notes(runs), words.enclosure_sentences(bounds)]))
    yield Part(problem, words.facts(runs), name=f"problem-{place}", level=3, subject=problem)
    yield from figures
    yield Part(table=table, after=after, subject=problem)


def _across_problems(tables: Mapping[str, pd.DataFrame], figures: Sequence[Part]) -> list[Part]:
    """Return what the report says of groups of several problems, to the tightest target."""
    last = tables["winners"]["target"].min()
    read = {name: tables[name][(tables[name]["target"] == last) & (tables[name]["instances"] > 1)] for name in ("means", "comparisons")}
    parts = [*figures, *(part for name in read for part in _table(name, read, level=3))]
    about = "" if all(table.empty for table in read.values()) else _TIGHTEST
    return [Part("Across problems", about, name="across"), *parts] if parts else []


def _other_tables(tables: Mapping[str, pd.DataFrame]) -> Iterator[Part]:
    """Yield the tables that are nowhere else as a whole, in the order of `TABLES`."""
    for name in TABLES:
        if name in tables and name not in (*_FIRST, *_LAST):
            table = tables[name][~all_skipped(tables[name]["status"])] if name == "summary" else tables[name]
            yield from _table(name, {name: table}, level=3, address=f"all-{name}")


def _table(
    name: str, tables: Mapping[str, pd.DataFrame], figures: Sequence[Part] = (), *, level: int = 2, address: str = ""
) -> Iterator[Part]:
    """Yield a table with figures above and its explanation below it, the first `registry.MOST_ROWS` rows; nothing where it has none."""
    table = tables.get(name)
    if table is None or table.empty:
        return
    title, about = TABLES[name].title, TABLES[name].explanation
    left_out = len(table) - registry.MOST_ROWS
    where = "in the CSV file of this table, which `bench-mtl report FOLDER` writes"
    rest = f"*{plural(left_out, 'more row')} {where}.*\n\n" if left_out > 0 else ""
    if figures:
        yield Part(title, name=f"about-{name}", level=level)
        yield from figures
        title = ""
    shown = printed(name, table.head(registry.MOST_ROWS))
    yield Part(title, table=shown, after=rest + about, name=address or name, level=level)
