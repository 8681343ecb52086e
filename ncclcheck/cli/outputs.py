"""Where a report goes: standard output, the files of `--output`, and what was seen to `--save`.

What was asked for is never lost: a document whose file cannot be written goes to standard output, or, where that is to
be one document that a program reads, to standard error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from ncclcheck.cli.files import append_text, refuse_hung, refuse_unwritable, write_atomically
from ncclcheck.cli.screen import (
    is_color_wanted,
    screen_width,
    write_document_to_error,
    write_error,
    write_out,
)
from ncclcheck.facts.bounded_call import within
from ncclcheck.model.codec import encode_readable
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Missing
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.report.document import to_json
from ncclcheck.report.formats import SUFFIXES, WITH_TABLES, Format, ScreenFormat, rendered, rendered_parts
from ncclcheck.report.text.terminal import render
from ncclcheck.timeouts import USER_FILE_S

# GitHub refuses a larger step summary as a whole ("supports content up to a size of 1024k").
SUMMARY_BYTES = 1024 * 1000
METRICS_MODE = 0o644  # of a .prom file: node_exporter reads it as another user, whatever the umask of a timer
_CUT = "\n\n**The rest does not fit into a step summary (1 MiB): give `--output report.html` as well.**\n"


class Unwritten(Struct, frozen=True):
    """A document that was to be in a file and is not."""

    file: str
    format_: Format | None  # None: what was seen, for --from
    text: str


def refuse_bad_outputs(option_values: Mapping[str, Any], suffixes: Mapping[str, Format] = SUFFIXES) -> None:
    """Nothing, if every `--output` has one of the suffixes, and `--save` a place; else UsageError, before the run."""
    for file in option_values.get("output") or ():
        suffix = Path(file).suffix
        if not is_step_summary(file) and suffix.lower() not in suffixes:
            *known, last = suffixes
            why = (
                "only 'matrix' and 'bench --try' write CSV"
                if suffix.lower() in WITH_TABLES
                else f"the suffix {suffix!r} is no format"
            )
            raise UsageError(f"--output {file}: {why}: name it {', '.join(known)} or {last}")
        refuse_unwritable(file, "--output")
    if option_values.get("save"):
        refuse_unwritable(option_values["save"], "--save")
    _refuse_one_file_for_two(option_values)


def _format_of(file: str) -> Format | None:
    return "md" if is_step_summary(file) else WITH_TABLES.get(Path(file).suffix.lower())


def is_step_summary(file: str) -> bool:
    """Return True for the file that GitHub Actions shows as the summary of this step: Markdown without a suffix."""
    return bool(file) and file == os.environ.get("GITHUB_STEP_SUMMARY")


def _refuse_one_file_for_two(option_values: Mapping[str, Any]) -> None:
    """Also refused: to write over the run that this one is judged by, which would make a loss the new measure."""
    files = [("--output", file) for file in option_values.get("output") or ()]
    files += [("--save", option_values["save"])] if option_values.get("save") else []
    written: dict[str, str] = {}
    if option_values.get("baseline"):
        refuse_hung(option_values["baseline"], "--baseline")
    judge = os.path.realpath(option_values["baseline"]) if option_values.get("baseline") else None
    for option, file in files:
        if os.path.realpath(file) == judge:
            raise UsageError(f"{option} {file}: this is the --baseline, which has to stay: name another file")
        place = os.path.abspath(file)  # noqa: PTH100 (links stay: /dev/stdout is one)
        if place in written and file != "/dev/null":
            raise UsageError(f"{option} {file}: {written[place]} writes this file too: give each its own")
        written[place] = option


def write_files(
    report: Report, saved: Saved | None, option_values: Mapping[str, Any]
) -> tuple[Unwritten, ...]:
    """Write the report to every file that was asked for, and return the files that could not be written.

    A file that cannot be written is named on standard error; `show` then prints what was to be in it.
    """
    unwritten = []
    verbose = int(option_values.get("verbose") or 0)
    for file in option_values.get("output") or ():
        format_ = _format_of(file) or "json"
        if not _written(file, rendered_parts(report, format_, verbose), "--output"):
            unwritten.append(_unwritten(file, format_, rendered(report, format_, verbose), report))
    if saved is not None and option_values.get("save"):
        text = encode_readable(saved) + "\n"
        if not _written(option_values["save"], (text,), "--save"):
            unwritten.append(Unwritten(option_values["save"], None, text))
    return tuple(unwritten)


def _unwritten(file: str, format_: Format, text: str, report: Report) -> Unwritten:
    """Return what to print instead: for a page, megabytes of script, the JSON that it can be made from."""
    return Unwritten(file, "json", to_json(report)) if format_ == "html" else Unwritten(file, format_, text)


def _heading(unwritten: Unwritten) -> str:
    if unwritten.file.lower().endswith(".html"):
        how = "'ncclcheck report FILE.json --output FILE.html' makes it of this JSON"
        return f"{unwritten.file} could not be written: {how}"
    return f"{unwritten.file} could not be written: this was to be in it"


def _written(file: str, parts: Iterable[str], option: str) -> bool:
    why = within(USER_FILE_S, _why_not_written, file, parts, option)
    if isinstance(why, Missing):
        late = f"nothing was taken within {USER_FILE_S:.0f} s: a pipe that nobody reads, or a dead mount"
        why = f"{option} {file}: cannot be written: {late if why.missing == 'timeout' else why.detail}"
    if why:
        write_error(f"error: {why}")
    return not why


def _why_not_written(file: str, parts: Iterable[str], option: str) -> str:
    """Write the file; return the sentence that says why it is not written, or an empty one."""
    try:
        if is_step_summary(file):
            append_text(file, _fitting("".join(parts)), option)  # what the step has said before stays
        else:
            write_atomically(file, parts, option, METRICS_MODE if _format_of(file) == "prom" else None)
    except UsageError as error:
        return str(error)
    return ""


def _fitting(text: str) -> str:
    """As many whole lines as a step summary takes, and a sentence about the rest."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= SUMMARY_BYTES:
        return text
    whole_lines = data[: SUMMARY_BYTES - len(_CUT.encode())].rpartition(b"\n")[0]
    return whole_lines.decode("utf-8", "ignore") + _CUT


def show(report: Report, option_values: Mapping[str, Any], unwritten: Sequence[Unwritten] = ()) -> bool:
    """Print the report in the format asked for, and what no file took; return False if standard output failed.

    Where standard output is for a program (JSON, say) it stays one document, and the others follow on standard error.
    """
    format_: ScreenFormat = option_values.get("print_") or option_values.get("format_") or "text"
    if format_ == "text":
        verbose = int(option_values.get("verbose") or 0)
        text = render(report, verbose=verbose, width=screen_width(), color=is_color_wanted())
    else:
        text = ""
    lost = [unwritten_file for unwritten_file in unwritten if unwritten_file.format_ != format_]
    if format_ == "text":
        text += "".join(f"\n==> {_heading(unwritten_file)}\n{unwritten_file.text}" for unwritten_file in lost)
        lost = []
    all_shown = _shown((lambda: (text,)) if format_ == "text" else partial(rendered_parts, report, format_))
    for unwritten_file in lost:
        write_document_to_error(_heading(unwritten_file), unwritten_file.text)
    return all_shown


def _shown(parts: Callable[[], Iterable[str]]) -> bool:
    try:
        write_out(parts())
    except UsageError as error:
        write_document_to_error(f"error: {error}: this was to be on it", "".join(parts()))
        return False
    return True
