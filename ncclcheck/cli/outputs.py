"""Where a report goes: standard output, the files of `--output`, and what was seen to `--save`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ncclcheck.cli.files import refuse_unwritable, write_atomically
from ncclcheck.cli.screen import is_color_wanted, screen_width, write_error, write_out
from ncclcheck.model.codec import encode_pretty
from ncclcheck.model.errors import UsageError
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.report.document import to_json
from ncclcheck.report.terminal import render

_FORMATS = {".json": "json", ".txt": "text"}


def refuse_bad_outputs(given: Mapping[str, Any]) -> None:
    """Nothing, if every `--output` and `--save` has a known suffix and a place; else UsageError, before the run."""
    for file in given.get("output") or ():
        if Path(file).suffix.lower() not in _FORMATS:
            known = " or ".join(_FORMATS)
            raise UsageError(
                f"--output {file}: the suffix {Path(file).suffix!r} is no format: name it {known}"
            )
        refuse_unwritable(file, "--output")
    if given.get("save"):
        refuse_unwritable(given["save"], "--save")
    _refuse_one_file_for_two(given)


def _refuse_one_file_for_two(given: Mapping[str, Any]) -> None:
    files = [("--output", file) for file in given.get("output") or ()]
    files += [("--save", given["save"])] if given.get("save") else []
    written: dict[str, str] = {}
    for option, file in files:
        place = os.path.abspath(file)  # noqa: PTH100 (links stay: /dev/stdout is one)
        if place in written and file != "/dev/null":
            raise UsageError(f"{option} {file}: {written[place]} writes this file too: give each its own")
        written[place] = option


def write_files(report: Report, saved: Saved | None, given: Mapping[str, Any]) -> bool:
    """The report is in every file that was asked for; False if not in every one.

    A file that cannot be written is named on standard error; the report that was made is not lost for it.
    """
    all_written = True
    verbose = int(given.get("verbose") or 0)
    files = [(file, "--output", _text(report, file, verbose)) for file in given.get("output") or ()]
    if saved is not None and given.get("save"):
        files.append((given["save"], "--save", encode_pretty(saved) + "\n"))
    for file, option, text in files:
        try:
            write_atomically(file, text, option)
        except UsageError as error:
            write_error(f"error: {error}")
            all_written = False
    return all_written


def show(report: Report, given: Mapping[str, Any]) -> None:
    """The report is on standard output, in the format asked for."""
    if given.get("format_") == "json":
        write_out(to_json(report))
    else:
        verbose = int(given.get("verbose") or 0)
        write_out(render(report, verbose=verbose, width=screen_width(), color=is_color_wanted()))


def _text(report: Report, file: str, verbose: int) -> str:
    if _FORMATS[Path(file).suffix.lower()] == "json":
        return to_json(report)
    return render(report, verbose=verbose)
