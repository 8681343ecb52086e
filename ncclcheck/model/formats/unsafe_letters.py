"""Characters that steer a terminal or hide text: which they are, and JSON without them."""

from __future__ import annotations

import re
import unicodedata

# Cc: ESC and the other controls; Cf: bidi overrides and zero-width joiners; Cs: halves of surrogate pairs, which no
# encoder takes; Zl, Zp: line breaks. What Unicode calls them (DerivedGeneralCategory.txt).
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_NOT_PLAIN = re.compile(r"[^\n -~]")
_DELETE = "\x7f"  # the one control of ASCII that JSON does not require to be escaped


def is_unsafe(letter: str) -> bool:
    """Return whether the character is a control, invisible, or no character at all."""
    return unicodedata.category(letter) in _UNSAFE


def safe_json(text: str) -> str:
    r"""Return JSON that parses to the same value, with `\u` escapes for such characters in its strings (RFC 8259, 7).

    Its line breaks stay: strict JSON has none in a string.
    """
    if text.isascii() and _DELETE not in text:
        return text
    return _NOT_PLAIN.sub(lambda found: _escaped(found[0]) if is_unsafe(found[0]) else found[0], text)


def _escaped(letter: str) -> str:
    pairs = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pairs[start : start + 2].hex()}" for start in range(0, len(pairs), 2))
