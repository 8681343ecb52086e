"""Text of other machines in Markdown: shown as it is, whatever it contains.

Rules: GitHub Flavored Markdown (https://github.github.com/gfm/): 2.4 backslash escapes, 6.3 code spans, 4.10 tables (a
pipe ends a cell even inside a code span), 6.9 autolinks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ncclcheck.report.text.plain import OLD_COMMAND, plain, without_commands

# Characters with a meaning inside a line; `$` opens a formula on GitHub and GitLab.
_INLINE = re.compile(r"[\\`*\[\]~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_BLOCK = re.compile(r"^([#+=-]|\d{1,9}(?=[.)])|:(?=:))")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}
# What would become a link or call a person by name: an empty comment in it, and it does not.
_LINKS = (("@", "@<!-- -->"), ("://", ":<!-- -->//"))
_WWW = re.compile(r"(?i)\b(www)\.")


def md(text: str) -> str:
    """`text` on one line, so that Markdown shows exactly these characters."""
    safe = plain(text).strip()
    safe = "".join(_ENTITIES.get(letter, letter) for letter in safe)
    safe = _INLINE.sub(lambda match: f"\\{match[0]}", safe)
    for link, broken in _LINKS:
        safe = safe.replace(link, broken)
    return _WWW.sub(r"\1<!-- -->.", safe)


def paragraph(text: str) -> str:
    """`md` of what begins a line, where it could also begin a heading, a list, a rule or a command of GitHub."""
    return _BLOCK.sub(lambda match: _escaped_marker(match[1]), md(text))


def _escaped_marker(marker: str) -> str:
    return f"&#{ord(marker[0])};{marker[1:]}" if marker[0].isdigit() else f"\\{marker}"


def code(text: str) -> str:
    """`text` as a code span, where it can be one also in a table."""
    safe = plain(text).strip()
    if not safe or "|" in safe or OLD_COMMAND in safe:
        return md(safe)
    fence = "`" * (_longest_run(safe) + 1)
    space = " " if safe[0] == "`" or safe[-1] == "`" else ""
    return f"{fence}{space}{safe}{space}{fence}"


def block(lines: Iterable[str], language: str = "sh") -> str:
    """Return the lines as a code block, one line each."""
    safe = [without_commands(plain(line)) for line in lines]
    fence = "`" * max(3, *(_longest_run(text_line) + 1 for text_line in safe), 3)
    return "\n".join([f"{fence}{language}", *safe, fence, ""])


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: int = 0) -> str:
    """Return a table of cells that are Markdown already; the last `right` columns are aligned to the right."""
    rule = ["---"] * (len(header) - right) + ["---:"] * right
    lines = [header, rule, *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def folded(summary: str, content: str) -> str:
    """`content` behind a line to click on; `summary` is Markdown already."""
    return f"<details><summary>{summary}</summary>\n\n{content.rstrip()}\n\n</details>\n"
