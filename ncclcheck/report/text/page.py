"""Lines of a page as data, and their drawing by rich: the one place where text of other machines is made harmless."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import TYPE_CHECKING

from msgspec import Struct

from ncclcheck.report.text.plain import plain, without_commands

if TYPE_CHECKING:
    from rich.text import Text

VERDICT_STYLE = {"pass": "bold green", "fail": "bold red", "unknown": "bold yellow", "error": "bold red"}
_NARROWEST = 20


class Span(Struct, frozen=True):
    """Some text in a rich style; the style repeats what the words say and may be left out."""

    text: str
    style: str = ""


class Line(Struct, frozen=True):
    """One line. `wrap` False: commands, tables and the last line, which stay whole to be copied and matched."""

    spans: tuple[Span, ...]
    indent: int = 0
    wrap: bool = True


def line(*spans: Span | str, indent: int = 0, wrap: bool = True) -> Line:
    """Return a line of `spans`, of which a bare string has no style."""
    return Line(tuple(Span(span) if isinstance(span, str) else span for span in spans), indent, wrap)


BLANK = line()


def draw(lines: Iterable[Line], *, width: int | None, color: bool) -> str:
    """Return the page as text: wrapped between words at `width` columns (None: never), with ANSI colours if `color`.

    Nothing of the environment has a say, so the same lines give the same text everywhere.
    """
    # rich takes some 50 ms to import, which --help need not pay.
    from rich.console import Console

    out = StringIO()
    console = Console(
        file=out,
        width=width or 80,
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    for page_line in lines:
        for text in _wrapped(page_line, width):
            console.print(text, soft_wrap=True)
    return out.getvalue()


def draw_plain(lines: Iterable[Line]) -> str:
    """Return the page as text without colours, never wrapped, to embed it in another document."""
    drawn = (
        f"{' ' * page_line.indent}{without_commands(plain(''.join(span.text for span in page_line.spans)))}"
        for page_line in lines
    )
    return "".join(f"{text.rstrip()}\n" for text in drawn)


def _wrapped(page_line: Line, width: int | None) -> Iterator[Text]:
    from rich.text import Text

    margin = " " * page_line.indent
    text = Text.assemble(*((plain(span.text), span.style) for span in page_line.spans))
    offsets = (
        _breaks(text.plain, max(width - page_line.indent, _NARROWEST)) if width and page_line.wrap else []
    )
    for part in text.divide(offsets):
        part.rstrip()
        shown = without_commands(part.plain)
        if shown != part.plain:
            part = Text(shown)
        yield Text(margin) + part if part else part


def _breaks(text: str, width: int) -> list[int]:
    """Where to break so that lines fit.

    A word longer than the line stays whole, unlike in rich's own wrapping: paths and names can still be copied.
    """
    from rich.cells import cell_len

    offsets, used = [], 0
    for match in re.finditer(r"\S+\s*", text):
        if used and used + cell_len(match[0].rstrip()) > width:
            offsets.append(match.start())
            used = 0
        used += cell_len(match[0])
    return offsets
