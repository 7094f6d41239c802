"""The sentences of the section of findings: how runs ended, who is fastest where, by how much, and how sure that is."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench_mtl.report.check import patterns
from bench_mtl.report.check.contests import Contest, Derived
from bench_mtl.report.check.document import Block, readable
from bench_mtl.report.check.entrants import Entrant
from bench_mtl.report.check.faults import Finding
from bench_mtl.report.check.numbers import Form, is_as_printed, is_between, shown
from bench_mtl.report.check.rows import GENERIC, ONE_SHOT, PEER, SKIPPED, SPECIALISED, STATUSES, TIMEOUT, UNKNOWN, VERIFIED

#: Ratios below it are called about equal.
ABOUT_EQUAL = 1.1

#: Characters of the findings of one problem, after which they are cut.
_LONGEST = 2_000

UNDERIVED = "no rule derives this sentence"


def head_faults(block: Block, derived: Derived) -> Iterator[Finding]:
    """Yield the faults of a paragraph that counts runs, wins or ratios."""
    text = patterns.HEAD_TITLE.sub("", " ".join(block.lines))
    for sentence in patterns.HEAD_BREAK.split(text):
        found = patterns.matched(patterns.HEAD, sentence)
        if found is None:
            yield block.fault(UNDERIVED, sentence)
            continue
        name, match = found
        for why in _HEAD_RULES[name](match, derived):
            yield block.fault(why, sentence)


def _all_verified(match: re.Match[str], derived: Derived) -> Iterator[str]:
    statuses = [run.status for run in derived.rows.runs]
    if int(match["total"]) != len(statuses) or set(statuses) != {VERIFIED}:
        yield f"there are {len(statuses)} runs, {statuses.count(VERIFIED)} of them verified"


def _run_counts(match: re.Match[str], derived: Derived) -> Iterator[str]:
    statuses = [run.status for run in derived.rows.runs]
    if int(match["total"]) != len(statuses):
        yield f"there are {len(statuses)} runs"
    said = dict(part.split(" ")[::-1] for part in match["counts"].split(", "))
    true = {status: str(statuses.count(status)) for status in STATUSES if status in statuses}
    if said != true:
        yield f"the rows have {', '.join(f'{count} {status}' for status, count in true.items())}"


def _where_failures_are(match: re.Match[str], derived: Derived) -> Iterator[str]:
    if all(run.status == VERIFIED for run in derived.rows.runs):
        yield "every run is verified"


def _no_contradiction(match: re.Match[str], derived: Derived) -> Iterator[str]:
    wrong = [enclosure for enclosure in derived.enclosures if not enclosure.agrees]
    if wrong:
        yield f"the bounds of {wrong[0].problem} contradict each other"


def _compared(match: re.Match[str], derived: Derived) -> Iterator[str]:
    ran = {(run.label, run.kind) for run in derived.rows.runs if run.status != SKIPPED}
    true = {kind: count for kind in (SPECIALISED, GENERIC, PEER, UNKNOWN) if (count := sum(other == kind for _, other in ran))}
    said = {kind: int(count) for count, kind in re.findall(r"(\d+) (\w+)", match["kinds"])}
    if said != true:
        yield f"the rows have {_counts(true)}"
    if int(match["problems"]) != len(derived.rows.by_problem):
        yield f"there are {len(derived.rows.by_problem)} problems"
    if _targets(match["targets"]) != list(derived.rows.targets):
        yield f"the targets are {', '.join(f'{target:g}' for target in derived.rows.targets)}"


def _fastest(match: re.Match[str], derived: Derived) -> Iterator[str]:
    said, rest = _parts(patterns.FASTEST_PARTS, match["parts"])
    if not patterns.GLUE.fullmatch(rest):
        yield f"{UNDERIVED}: '{rest.strip(', ')}'"
    for target in _targets(match["targets"]):
        contests = derived.to(target)
        if not contests:
            yield f"{target:g} is no target of the suite"
            continue
        true = fastest_counts(contests)
        if said != true:
            yield f"to {target:g} the rows have {_counts(true)}, not {_counts(said)}"


def fastest_counts(contests: Sequence[Contest]) -> dict[str, int]:
    """Return on how many problems a solver of each kind is fastest, nobody gets there, and solvers of one kind alone were run."""
    won = [contest for contest in contests if contest.winner is not None and not contest.is_walkover]
    counts = {
        kind: sum(contest.winner is not None and contest.winner.kind == kind for contest in won) for kind in (SPECIALISED, GENERIC, PEER)
    }
    counts["nobody"] = sum(contest.winner is None for contest in contests)
    counts["walkovers"] = sum(contest.is_walkover for contest in contests)
    return {**{name: count for name, count in counts.items() if count}, "total": len(contests)}


def _certainty(match: re.Match[str], derived: Derived) -> Iterator[str]:
    said, rest = _parts(patterns.CERTAINTY_PARTS, match["parts"])
    if not patterns.GLUE.fullmatch(rest):
        yield f"{UNDERIVED}: '{rest.strip(', ')}'"
    told = [contest for contest in derived.contests.values() if contest.ratio is not None]
    bounds = sum(contest.is_bound for contest in told)
    least = sum(contest.interval is not None and contest.interval.is_told for contest in told)
    most = sum(contest.interval is not None and contest.interval.may_be_told for contest in told)
    once = len(told) - bounds - said.get("intervals", 0)
    if int(match["total"]) != len(told):
        yield f"the rows give {len(told)} ratios"
    if said.get("bounds", 0) != bounds:
        yield f"{bounds} of the ratios are bounds"
    if not least <= said.get("intervals", 0) <= most:
        yield f"{least if least == most else f'{least} to {most}'} of the ratios have runs enough for an interval"
    if said.get("once", 0) != once:
        yield f"{once} of the ratios have no interval"


def _parts(parts: Mapping[str, re.Pattern[str]], text: str) -> tuple[dict[str, int], str]:
    """Return what a sentence counts, by name, and what of it is none of that."""
    found: dict[str, int] = {}
    for name, pattern in parts.items():
        for match in pattern.finditer(text):
            key = match["kind"] if "kind" in pattern.groupindex else name
            found[key] = found.get(key, 0) + int(match["count"])
        text = pattern.sub("", text)
    return found, text


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


_HEAD_RULES: Mapping[str, Callable[[re.Match[str], Derived], Iterator[str]]] = {
    "all verified": _all_verified,
    "run counts": _run_counts,
    "where failures are": _where_failures_are,
    "no contradiction": _no_contradiction,
    "compared": _compared,
    "fastest": _fastest,
    "certainty": _certainty,
}


def targets_counted(paragraphs: Sequence[Block]) -> list[float]:
    """Return the targets that the heads of the findings count wins to, each as often as it is."""
    sentences = (each for block in paragraphs for each in patterns.HEAD_BREAK.split(patterns.HEAD_TITLE.sub("", " ".join(block.lines))))
    matches = (patterns.HEAD["fastest"].fullmatch(sentence) for sentence in sentences)
    return [target for match in matches if match is not None for target in _targets(match["targets"])]


def missing_in_head(paragraphs: Sequence[Block], derived: Derived) -> Iterator[str]:
    """Yield what the paragraphs on success, speed and certainty must say and do not."""
    said = set()
    for block in paragraphs:
        text = " ".join(block.lines)
        titled = patterns.HEAD_TITLE.match(text)
        for sentence in patterns.HEAD_BREAK.split(patterns.HEAD_TITLE.sub("", text)):
            found = patterns.matched(patterns.HEAD, sentence)
            said.add((titled["title"] if titled else "", found[0] if found else ""))
    is_verified = all(run.status == VERIFIED for run in derived.rows.runs)
    agrees = bool(derived.enclosures) and all(enclosure.agrees for enclosure in derived.enclosures)
    wanted = [
        ("Success", "all verified" if is_verified else "run counts", True),
        ("Success", "where failures are", not is_verified),
        ("Speed", "fastest", True),
        ("How sure", "no contradiction", agrees),
        ("How sure", "certainty", any(contest.ratio is not None for contest in derived.contests.values())),
    ]
    for title, name, is_wanted in wanted:
        if is_wanted and (title, name) not in said:
            yield f"the paragraph '{title}' must have a sentence '{name}'"


def bullet_faults(block: Block, derived: Derived) -> Iterator[Finding]:
    """Yield the faults of the list of findings, a problem an entry."""
    contradicted = {enclosure.problem for enclosure in derived.enclosures if not enclosure.agrees}
    seen = []
    for line, item in block.items():
        match = patterns.BULLET.fullmatch(item)
        problem = readable(match["problem"]) if match is not None else ""
        if match is None or problem not in derived.rows.by_problem:
            yield block.fault("no problem of the rows is called so" if match else UNDERIVED, item, line)
            continue
        seen.append(problem)
        if bool(match["doubt"]) is not (problem in contradicted):
            yield block.fault(
                f"the bounds of this problem {'do' if problem in contradicted else 'do not'} contradict each other", item, line
            )
        text = readable(match["rest"])
        is_cut = len(text) > _LONGEST and text.endswith(patterns.CUT)
        for sentence in patterns.FINDING_BREAK.split(text):
            for why in _finding_faults(sentence, problem, derived, is_cut=is_cut):
                yield block.fault(why, f"{problem}: {sentence}", line)
        for why in [] if is_cut else _untold(text, problem, derived):
            yield block.fault(why, item, line)
    for problem in derived.rows.by_problem:
        if seen.count(problem) != 1:
            yield block.fault(f"{seen.count(problem)} findings of the problem {problem}")


def _untold(text: str, problem: str, derived: Derived) -> Iterator[str]:
    """Yield the targets that the findings of a problem must name and do not: each with a ratio, and the last of each winner and rival."""
    matches = [patterns.FINDING.fullmatch(sentence) for sentence in patterns.FINDING_BREAK.split(text)]
    main = {target for match in matches if match is not None for target in _targets(match["targets"])}
    also = {float(each["target"]) for match in matches if match is not None for each in patterns.ALSO.finditer(match["also"] or "")}
    contests = [derived.contests[problem, target] for target in derived.rows.targets]
    for _, alike in itertools.groupby(contests, key=_sides):
        *looser, last = alike
        untold = [contest.target for contest in looser if contest.ratio is not None and contest.target not in main | also]
        for target in untold + ([] if last.target in main else [last.target]):
            yield f"nothing is said of the target {target:g}"


def _finding_faults(sentence: str, problem: str, derived: Derived, *, is_cut: bool) -> Iterator[str]:
    if is_cut and sentence.endswith(patterns.CUT):
        # The last entry of the brackets may be cut in the middle; what stands before it is checked.
        sentence = sentence.removesuffix(patterns.CUT).rpartition("; ")[0] + ")."
    else:
        is_cut = False
    match = patterns.FINDING.fullmatch(sentence)
    found = None if match is None else patterns.matched(patterns.FINDINGS, match["body"])
    if match is None or found is None:
        yield UNDERIVED
        return
    name, body = found
    contests = []
    for target in _targets(match["targets"]):
        contest = derived.contests.get((problem, target))
        if contest is None:
            yield f"{target:g} is no target of the suite"
            continue
        contests.append(contest)
        yield from _body_faults(name, body, contest, derived, is_cut=is_cut)
    for also in patterns.ALSO.finditer(match["also"] or ""):
        other = derived.contests.get((problem, float(also["target"])))
        if other is None or not contests or _sides(other) != _sides(contests[0]):
            yield f"to {also['target']} the winner or the rival is another one"
        elif (also["sign"] == ">=") is not other.is_bound or not is_as_printed(also["ratio"], other.ratio, "ratio", also["sign"] or ""):
            yield f"to {also['target']} the rows give {shown(other.ratio, 'ratio', '>=' if other.is_bound else '')}"


def _sides(contest: Contest) -> tuple[str | None, str | None]:
    return contest.winner.label if contest.winner else None, contest.rival.label if contest.rival else None


def _body_faults(name: str, body: re.Match[str], contest: Contest, derived: Derived, *, is_cut: bool) -> Iterator[str]:
    """Yield what of a finding does not follow, for one target."""
    true = kind_of_finding(contest)
    if name != true:
        yield f"the rows give another finding: {true}{_named(contest)}"
        return
    said = body.groupdict()
    if contest.winner is not None:
        if said["winner"] != contest.winner.label:
            yield f"the winner is {contest.winner.label}"
        if said["kind"] != contest.winner.kind:
            yield f"{contest.winner.label} is a {contest.winner.kind} solver"
        if said["rivals"] != contest.rival_kinds:
            yield f"the rivals are {contest.rival_kinds} solvers"
        yield from _number_faults(said, contest)
        if name == "faster" and bool(said["wins"]) is not (contest.winner.kind in ONE_SHOT):
            yield "the winner is of the other kind"
    if "limit" in said:
        limit = _limit_of_all(contest, derived)
        if said["limit"] != (None if limit is None else f"{limit:g}"):
            yield f"the limit was {limit:g} s" if limit is not None else "no limit in common ended all of these runs"
        yield from _loser_faults(said["losers"] or "", contest, derived.labels, is_cut=is_cut)


def _limit_of_all(contest: Contest, derived: Derived) -> float | None:
    """Return the limit that ended all that the losers did, each of which had as long; None where something else may have ended one."""
    limit = derived.limit(contest.problem)
    losers = contest.entrants if contest.winner is None else contest.others
    if limit is None or not losers:
        return None
    is_ended = all(
        contest.statuses[loser.label] == TIMEOUT
        and all(attempt is not None and attempt.had is not None and attempt.had >= limit for attempt in loser.attempts)
        for loser in losers
    )
    return limit if is_ended else None


def kind_of_finding(contest: Contest) -> str:
    """Return the name of the pattern that says what the rows say."""
    if contest.winner is None:
        return "nobody"
    if contest.rival is None:
        return "unrivalled" if contest.others else "walkover"
    if contest.ratio is None:
        return "at once"
    return "level" if contest.ratio < ABOUT_EQUAL else "faster"


def _named(contest: Contest) -> str:
    return "" if contest.winner is None else f" ({contest.winner.label}{f' over {contest.rival.label}' if contest.rival else ''})"


def _number_faults(said: Mapping[str, str | None], contest: Contest) -> Iterator[str]:
    if "other" in said and contest.rival is not None and said["other"] != contest.rival.label:
        yield f"the rival is {contest.rival.label}"
    numbers: list[tuple[str, float | None, Form, str]] = [
        ("seconds", contest.seconds, "seconds", ""), ("other_seconds", contest.rival_seconds, "seconds", ""),
        ("ratio", contest.ratio, "ratio", ">=" if contest.is_bound else ""),
    ]  # fmt: skip
    for name, value, form, sign in numbers:
        if name in said and not (said[name] is None and value is None) and not is_as_printed(said[name] or "", value, form, sign):
            yield f"the rows give {shown(value, form, sign)} for {said[name] or 'nothing'}"
    if "low" in said:
        yield from interval_faults(said["low"], said["high"], contest)


def interval_faults(low: str | None, high: str | None, contest: Contest) -> Iterator[str]:
    """Yield what is wrong with the printed interval of a ratio."""
    interval = contest.interval
    if low is None or high is None:
        if interval is not None and interval.is_told:
            yield "both sides were measured more than once, and no interval is given"
        return
    if interval is None or not interval.may_be_told:
        yield "one side was measured once, so that there is no interval"
        return
    ratio = contest.ratio or 0.0
    is_in = (
        is_between(low, "ratio", interval.lowest, min(interval.low, ratio)),
        is_between(high, "ratio", max(interval.high, ratio), interval.highest),
    )
    if not all(is_in):
        yield f"the interval must hold {shown(interval.low, 'ratio')} to {shown(interval.high, 'ratio')} and no more than the runs can give"


def _loser_faults(text: str, contest: Contest, labels: Sequence[str], *, is_cut: bool) -> Iterator[str]:
    """Yield what is wrong with how the losers ended."""
    entrants = {entrant.label: entrant for entrant in contest.entrants}
    losers = [other.label for other in contest.others] if contest.winner is not None else list(entrants) or list(contest.statuses)
    names = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    pieces = re.split(rf"(?:^|; )((?:{names})(?:, (?:{names}))*): ", text)
    if pieces[0]:
        yield f"no solver of the rows is called so: '{pieces[0]}'"
        return
    seen = []
    for group, ending in zip(pieces[1::2], pieces[2::2], strict=True):
        members = re.findall(rf"(?:^|(?<=, ))(?:{names})(?=, |$)", group)
        seen += members
        strangers = [member for member in members if member not in losers]
        if strangers:
            yield f"{strangers[0]} is no loser here"
        else:
            yield from _ending_faults(ending, members, [entrants.get(member) for member in members], contest)
    if sorted(seen) != sorted(losers) and not (is_cut and set(seen) <= set(losers)):
        yield f"the losers are {', '.join(losers)}"


def _ending_faults(ending: str, labels: Sequence[str], entrants: Sequence[Entrant | None], contest: Contest) -> Iterator[str]:
    match = patterns.ENDING.fullmatch(ending)
    if match is None:
        yield f"{UNDERIVED}: '{ending}'"
        return
    for label, entrant in zip(labels, entrants, strict=True):
        reached, runs = (0, 0) if entrant is None else (entrant.reached, entrant.runs)
        tried = contest.instances if entrant is None else len(entrant.tried)
        extents = ((reached, runs) if reached else None, (tried, contest.instances) if tried < contest.instances else None)
        said = _both(match["reached"], match["runs"]), _both(match["tried"], match["instances"])
        if said != extents:
            yield f"{label} got there in {reached} of {runs} runs and was run on {tried} of {contest.instances} instances"
        if match["status"] != contest.statuses[label]:
            yield f"{label} ended: {contest.statuses[label]}"
    times = [
        entrant.attempts[0].had if entrant is not None and contest.instances == 1 and entrant.attempts[0] else None for entrant in entrants
    ]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        if match["least"] is not None:
            yield f"it is not known what time {', '.join(labels)} had in one go"
    elif match["least"] is None:
        yield f"the time that {', '.join(labels)} had is {shown(min(known), 'seconds')} s"
    elif not (
        is_as_printed(match["least"], min(known), "seconds") and is_as_printed(match["most"] or match["least"], max(known), "seconds")
    ):
        yield f"{', '.join(labels)} had {shown(min(known), 'seconds')} to {shown(max(known), 'seconds')} s in one go"


def _both(one: str | None, other: str | None) -> tuple[int, int] | None:
    return None if one is None or other is None else (int(one), int(other))


def _targets(text: str) -> list[float]:
    return [float(each) for each in re.split(r", | and ", text)]
