"""`bench-mtl check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_mtl.cli.console import answer_json, say, warn
from bench_mtl.cli.options import A_PATH, EXIT_BAD_INPUT, EXIT_FAILED, data_dir_option, fail, json_option, plugins_option
from bench_mtl.core.errors import InputError, plural

if TYPE_CHECKING:
    from bench_mtl.runner.recertify import Recertified


@click.command()
@click.argument("folders", nargs=-1, required=True, type=A_PATH)
@click.option("--drop", is_flag=True, help="Set damaged rows aside, so that the suite runs them anew; the damaged file is kept beside.")
@click.option("--recertify", is_flag=True, help="Prove the bounds of every row again, from the points and dual points that it keeps.")
@data_dir_option
@plugins_option
@json_option
def check(folders: tuple[Path, ...], drop: bool, recertify: bool, data_dir: Path | None, plugins: Path | None) -> int:
    """Compare all that the results in FOLDERS hold with its checksums, and list what is damaged.

    Exit code 0: all is as its checksum says, and with --recertify proven again as far as rows keep proofs; 1: something is damaged (and was
    not dropped), or a row says more than its points prove; 2: bad usage, or a folder has no results; 4: a bug of bench-mtl; 130:
    interrupted.

    \b
    Examples:
      bench-mtl check results/quick
      bench-mtl check results/* --drop
      bench-mtl check results/quick --recertify
    """
    codes = {0}
    documents: list[dict[str, Any]] = []
    for folder in folders:
        if len(folders) > 1 and folder.is_file():
            say(f"{folder}: a file, not a folder: skipped")
            continue
        documents.append({"folder": folder, "error": None, "checked": None, "recertified": None})
        try:
            is_good = _is_whole(folder, documents[-1], drop=drop)
            is_good = is_good and (not recertify or _is_proven(folder, documents[-1], data_dir, plugins))
        except InputError as error:
            documents[-1]["error"] = str(error)
            codes.add(fail(str(error), EXIT_BAD_INPUT))  # the others are looked at all the same
        else:
            codes.add(0 if is_good else EXIT_FAILED)
    answer_json(lambda: {"folders": documents})
    return max(codes)


def _is_whole(folder: Path, document: dict[str, Any], *, drop: bool) -> bool:
    """Check one folder, say what is damaged, put it in its document, and return whether its results are whole in the end."""
    from bench_mtl.results import check as checking

    checked = checking.check(folder)
    document |= {"checked": checked, "set_aside": None}
    verdict = f"{len(checked.damaged)} damaged" if checked.damaged else "all as its checksum says"
    say(f"{folder}: {plural(checked.rows, 'row')}, {verdict}")
    for text in checked.damaged:
        say(f"  damaged: {text}")
    if checked.damaged and drop:
        dropped = checking.drop(folder)
        if dropped is not None:
            aside, rows = dropped
            document["set_aside"] = {"file": aside, "rows": rows}
            say(f"  {plural(rows, 'row')} set aside: the damaged file is now {aside}; the command that made these results runs them anew")
        return True
    if checked.damaged:
        warn(f"{folder} is damaged: bench-mtl check {folder} --drop sets aside what is, and keeps the rest")
    return not checked.damaged


def _is_proven(folder: Path, document: dict[str, Any], data_dir: Path | None, plugins: Path | None) -> bool:
    """Prove the rows of one folder again, say and document what became of them, and return whether none says more than its points prove."""
    from bench_mtl.data.catalogue import named_directory
    from bench_mtl.results import Store
    from bench_mtl.runner.recertify import Standing, recertify
    from bench_mtl.runner.setting import Setting

    counts = dict.fromkeys(Standing, 0)
    rows: list[Recertified] = []
    reasons: dict[str, int] = {}
    with Store.open(folder) as store:
        for row in recertify(store, Setting(1, plugins and plugins.absolute(), named_directory(data_dir))):
            counts[row.standing] += 1
            rows.append(row)
            if row.standing is Standing.FALSE:
                say(f"  false: {row.label} {row.reason}")
            elif row.standing is Standing.UNPROVABLE:
                reasons[row.reason] = reasons.get(row.reason, 0) + 1
    for reason, count in reasons.items():
        say(f"  {plural(count, 'row')} cannot be proven again: {reason}")
    document["recertified"] = {"counts": counts, "rows": rows}
    empty = f"; {counts[Standing.EMPTY]} have no bounds" if counts[Standing.EMPTY] else ""
    say(f"  {counts[Standing.PROVEN]} of {plural(sum(counts.values()), 'row')} proven again{empty}")
    return not counts[Standing.FALSE]
