"""Texts that a line must contain for a regular expression to match: a quick way to know that it does not.

What `explain` looks at closely is derived from its patterns here, so that no list of words has to be kept beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

SHORTEST = 3  # shorter texts are in nearly every line
RARE_ENOUGH = 12  # letters; of texts as rare as that, fewer are better
MOST_TEXTS = 16  # of one alternative
_GROUP_HEAD = re.compile(r"^\?(?::|P<\w+>)")
_LOOKAROUNDS = ("?!", "?<!", "?=", "?<=")
_ZERO_WIDTH = ("^", "$", r"\b", r"\B", r"\A", r"\Z")
_PLAIN_CLASS = re.compile(r"\[(?![\^\]])[\w ,.:;!?/+*`'-]{1,4}\]")
_PLAIN = re.compile(r"[\w !#%&',/:;<=>@`~-]+(?![?*+{])")
_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]|[^()\[\\]+")  # of a pattern with groups
_SIGNS = re.compile(r"[^\w\s-]")
_QUANTIFIER = re.compile(r"(?P<repeat>[?*+]|\{(?P<least>\d*)(?:,\d*)?\})[?+]?")
Texts = tuple[str, ...]


@cache
def required(pattern: str) -> Texts:
    """Return texts in lower case of which every line that `pattern` matches contains one.

    The answer is empty where an alternative of the pattern can match without a text of at least SHORTEST letters.
    """
    found: list[str] = []
    for alternative in alternatives(pattern):
        texts = max(_candidates(alternative), key=_worth, default=())
        if not texts:
            return ()
        found += texts
    return _without_longer(found)


def needles(patterns: Iterable[str]) -> str:
    """Return one expression that finds a text which a line needs to match one of the patterns, in lower case."""
    return _as_tree(sorted(_without_longer(needed_by(patterns))))


def needed_by(patterns: Iterable[str]) -> list[str]:
    """Return the texts of which a line, in lower case, needs one to match one of the patterns; some contain another.

    Raises ValueError for a pattern that can match without such a text: every line would have to be looked at.
    """
    texts: list[str] = []
    for pattern in patterns:
        needed = required(pattern)
        if not needed:
            raise ValueError(f"no text of {SHORTEST} letters is in every line that matches {pattern}")
        texts += needed
    return texts


def _without_longer(texts: Iterable[str]) -> Texts:
    """Leave out texts that contain another: a line with the longer one has the shorter one."""
    distinct = tuple(dict.fromkeys(texts))
    listed = "\n" + "\n".join(distinct) + "\n"
    longer: set[str] = set()
    for text in distinct:
        position = listed.find(text)
        while position >= 0:
            end = listed.index("\n", position)
            found = listed[listed.rindex("\n", 0, position + 1) + 1 : end]
            if found != text:
                longer.add(found)
            position = listed.find(text, end)
    return tuple(text for text in distinct if text not in longer)


def _as_tree(texts: Iterable[str]) -> str:
    """Return an expression that branches at each letter: it tries a few letters where a plain list tries all texts."""
    branches: dict[str, list[str]] = {}
    for text in texts:
        if not text:
            return ""
        branches.setdefault(text[0], []).append(text[1:])
    parts = [re.escape(letter) + _as_tree(rest) for letter, rest in branches.items()]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


@cache
def alternatives(pattern: str) -> Texts:
    """Split the pattern at its outermost `|`, which are not in a group or class."""
    if "|" not in pattern:
        return (pattern,)
    parts, start, position = [], 0, 0
    while position < len(pattern):
        end = _end_of_atom(pattern, position)
        if pattern[position] == "|":
            parts.append(pattern[start:position])
            start = end
        position = end
    return (*parts, pattern[start:])


def _worth(texts: Texts) -> tuple[int, int, int]:
    """Rate the texts: rare ones are better than common ones, then few are better than many."""
    rarity = min(map(_rarity, texts))
    return min(rarity, RARE_ENOUGH), -len(texts), rarity


def _rarity(text: str) -> int:
    """Count the letters, and signs such as `(` and `#` three times: no word has them."""
    return len(text) + 2 * len(_SIGNS.findall(text))


def _candidates(alternative: str) -> Iterator[Texts]:
    """Yield sets of texts: whatever the alternative matches contains one text of each set."""
    run: Texts = ("",)
    for atom, quantifier in _atoms(alternative):
        texts, goes_on = _exact(atom, quantifier)
        if texts is None or len(run) * len(texts) > MOST_TEXTS:
            yield from _useful(run)
            run = ("",)
            if texts is None:
                if not _may_be_absent(quantifier):
                    yield from _useful(required(_inside(atom)) if _is_group(atom) else ())
                continue
        if len(texts) > 1:
            yield from _useful(run)
        run = tuple(dict.fromkeys(before + text for before in run for text in texts))
        if not goes_on:  # it may be repeated here, so what follows need not stand right behind it
            yield from _useful(run)
            run = texts
    yield from _useful(run)


def _useful(texts: Texts) -> Iterator[Texts]:
    if texts and min(map(len, texts)) >= SHORTEST:
        yield texts


def _exact(atom: str, quantifier: str) -> tuple[Texts | None, bool]:
    """Return all texts that the atom can be, or None, and whether what follows it stands right behind them."""
    texts = _expanded(atom)
    if texts is None or not quantifier:
        return texts, True
    if quantifier == "?":
        return (*texts, ""), True
    least = _least(quantifier)
    if least == 0 or len(texts) > 1:
        return None, True
    return (texts[0] * least,), quantifier == f"{{{least}}}"


def _expanded(atom: str) -> Texts | None:
    """Return all texts in lower case that the atom matches, once; None where they are too many to list."""
    if atom in _ZERO_WIDTH or atom[1:].startswith(_LOOKAROUNDS):
        return ("",)
    if _is_group(atom):
        return _expanded_group(_inside(atom))
    if atom[0] == "[":
        return tuple(dict.fromkeys(atom[1:-1].lower())) if _is_plain_class(atom) else None
    if atom[0] == "\\":
        return None if atom[1].isalnum() else (atom[1].lower(),)
    return None if atom == "." else (atom.lower(),)


def _expanded_group(inside: str) -> Texts | None:
    found: list[str] = []
    for alternative in alternatives(inside):
        run: Texts = ("",)
        for atom, quantifier in _atoms(alternative):
            texts, goes_on = _exact(atom, quantifier)
            if texts is None or not goes_on or len(run) * len(texts) > MOST_TEXTS:
                return None
            run = tuple(before + text for before in run for text in texts)
        found += run
    return tuple(dict.fromkeys(found)) if len(found) <= MOST_TEXTS else None


def _is_plain_class(atom: str) -> bool:
    """Return True for a class of a few characters without a range."""
    return bool(_PLAIN_CLASS.fullmatch(atom)) and "-" not in atom[2:-2]


def _is_group(atom: str) -> bool:
    return atom[0] == "(" and not atom[1:].startswith(_LOOKAROUNDS)


def _inside(group: str) -> str:
    return _GROUP_HEAD.sub("", group[1:-1], count=1)


def _least(quantifier: str) -> int:
    """Return how often the quantified atom occurs at least."""
    match = _QUANTIFIER.fullmatch(quantifier)
    if match is None or match["repeat"] in ("?", "*"):
        return 0
    return 1 if match["repeat"] == "+" else int(match["least"] or 0)


def _may_be_absent(quantifier: str) -> bool:
    return bool(quantifier) and _least(quantifier) == 0


def _atoms(alternative: str) -> Iterator[tuple[str, str]]:
    """Yield each run of plain letters, each class and each group of the alternative with its quantifier.

    A group that is only there for its name is not a group here: its own atoms are yielded.
    """
    position = 0
    while position < len(alternative):
        plain = _PLAIN.match(alternative, position)
        if plain is not None:
            yield plain[0], ""
            position = plain.end()
            continue
        end = _end_of_atom(alternative, position)
        atom = alternative[position:end]
        match = _QUANTIFIER.match(alternative, end)
        if match is None and _is_group(atom) and len(alternatives(_inside(atom))) == 1:
            yield from _atoms(_inside(atom))
        else:
            yield atom, match["repeat"] if match else ""
        position = match.end() if match else end


def _end_of_atom(pattern: str, start: int) -> int:
    """Return the place after the character, class or group that begins at `start`."""
    if pattern[start] not in "([":
        return start + (2 if pattern[start] == "\\" else 1)
    depth, position = 0, start
    while position < len(pattern):
        part = _PART.match(pattern, position)
        if part is None:
            break
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        position = part.end()
        if depth == 0:
            break
    return position
