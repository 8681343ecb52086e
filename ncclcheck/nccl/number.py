"""The number that NCCL reads in a numeric variable: C's strtoll with base 0, and the variable's default."""

from __future__ import annotations

import re

from msgspec import Struct

from ncclcheck.nccl import versions

_WHITE_SPACE = " \t\n\v\f\r"  # isspace(3) in the C locale
_DIGITS = re.compile(
    r"([+-]?)(?:0[xX](?P<hexadecimal>[0-9a-fA-F]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*))"
)
_MAXIMUM = 2**63 - 1
_MINIMUM = -(2**63)
WORDS_REFUSED_SINCE: versions.Version = (2, 32, 0)  # the library 2.32.3; 2.31.2 still takes 0


class Parsed(Struct, frozen=True):
    """What strtoll makes of a text. `value` is None where it does not fit into 64 bits; `rest` was not read at all.

    `is_number` is False where no digit was found; the value is then 0.
    """

    value: int | None
    rest: str
    is_number: bool
    base: int = 10


def strtoll(text: str) -> Parsed:
    """Return the result of C's strtoll with base 0: white space, a sign, then 0x (hexadecimal), 0 (octal) or decimal.

    What follows the digits stays in `rest`; without digits the value is 0 and the whole text is the rest. Binary
    literals (0b1), which glibc 2.38 reads for programs built as C23, are not read, since NCCL is not built so.
    """
    stripped = text.lstrip(_WHITE_SPACE)
    match = _DIGITS.match(stripped)
    if match is None:
        return Parsed(0, text, is_number=False)
    if match["hexadecimal"]:
        base, digits = 16, match["hexadecimal"]
    elif match["octal"]:
        base, digits = 8, match["octal"]
    else:
        base, digits = 10, match["decimal"]
    magnitude = _magnitude(digits, base)
    number = -magnitude if match[1] == "-" else magnitude
    fits = _MINIMUM <= number <= _MAXIMUM
    return Parsed(number if fits else None, stripped[match.end() :], is_number=True, base=base)


def number(text: str | None, default: int, version: str = versions.NEWEST) -> int:
    """Return the number that NCCL of `version` uses for a numeric variable with the value `text`.

    Unset, empty, or too large for 64 bits: `default`. `010` is 8, `1 # comment` is 1, `0x10` is 16. What has no digit
    in front (`true`) is 0 up to 2.31, and `default` from 2.32. NCCL src/misc/param.cc (ncclLoadParam) from 2.14 to
    2.30; the libraries 2.27.7, 2.28.9, 2.31.2 and 2.32.3.
    """
    if not text:
        return default
    parsed = strtoll(text)
    if parsed.value is None or (not parsed.is_number and versions.parse(version) >= WORDS_REFUSED_SINCE):
        return default
    return parsed.value


def _magnitude(digits: str, base: int) -> int:
    """Return the value of the digits; of very many only the first, since the value is too large either way."""
    significant = digits.lstrip("0")
    return int(significant[:100] or "0", base)
