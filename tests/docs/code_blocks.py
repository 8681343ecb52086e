"""The command lines of our Markdown pages: what a reader would copy from a code block, or from `between backticks`."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parent.parent.parent
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
SCRIPTS = tuple(sorted((ROOT / "examples").glob("*.py")))  # whose docstrings say how they are started
_COMMANDS = "preflight|bench|run|isolate|matrix|soak|node|env|predict|explain|report|facts|checks|remote"
# Where a command begins beyond doubt, whatever word follows; and behind other words, such as srun and its options.
_BEGINNING = re.compile(r"(?:^|\(|-m |exec |[|;] |\$ )ncclcheck (?=[a-z-])")
_BEHIND = re.compile(rf"[ '\"]ncclcheck (?=(?:{_COMMANDS})\b)")
_INLINE = re.compile(r"(?<!`)`([^`]+)`")


class Example(Struct, frozen=True):
    """The words after `ncclcheck`, and where they stand."""

    place: str
    words: tuple[str, ...]


def examples(page: Path) -> Iterator[Example]:
    """Every command line of the page, or of the docstring of a script."""
    text = page.read_text(encoding="utf-8")
    text = ast.get_docstring(ast.parse(text)) or "" if page.suffix == ".py" else text
    name = page.name
    for number, line in _code(text):
        place = f"{name}:{number}: {line.strip()}"
        found = list(_BEGINNING.finditer(line.strip())) or list(_BEHIND.finditer(line))
        for match in found:
            rest = match.string[match.end() :]
            if match[0][0] in "'\"":
                rest = rest.partition(match[0][0])[0]  # quoted in a sentence
            yield Example(place, _words(rest))
    for inline in _INLINE.finditer(_without_code(text)):
        line = " ".join(inline[1].split())
        for match in _BEGINNING.finditer(line):  # `preflight --` names the prefix
            yield Example(f"{name}: {inline[0]}", _words(line[match.end() :].removesuffix(" --")))


def _code(text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line of code, fenced or indented; a line that ends with a backslash goes on."""
    is_fenced, begun, start = False, "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            is_fenced = not is_fenced
        elif is_fenced or line.startswith("    "):
            start = start if begun else number
            if line.endswith("\\"):
                begun += line[:-1]
                continue
            yield start, begun + line
            begun = ""


def _without_code(text: str) -> str:
    fenced = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return "\n".join(line for line in fenced.splitlines() if not line.startswith("    "))


def _words(rest: str) -> tuple[str, ...]:
    """The words of one command, up to what ends it in a shell; `...` stands for more of its kind."""
    for text in (rest, rest.replace("'", ""), rest.replace("'", "").replace('"', "")):
        lexer = shlex.shlex(text, posix=True, punctuation_chars="()|;<>&")
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:  # the other quotation mark is on the other side of `ncclcheck`
            continue
        end = next((at for at, word in enumerate(words) if set(word) <= set("()|;<>&")), len(words))
        return tuple(word for word in words[:end] if word != "...")
    raise AssertionError(f"no command line: {rest}")
