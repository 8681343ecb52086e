"""Folding the names of thousands of hosts in one pass, where they differ in one number only."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBERED = re.compile(r"([A-Za-z_.-]*)([0-9]{1,9})([A-Za-z_.-]*)")


def fold_numbered(names: Sequence[str]) -> str | None:
    """Return names such as node01 to node08 as `node[01-08]`, as ClusterShell does; None for other names.

    All have one number, of one width, between the same letters.
    """
    matches = [_NUMBERED.fullmatch(name) for name in names]
    first = matches[0] if matches else None
    if first is None:
        return None
    beginning, digits, end = first.groups()
    numbers = set()
    for match in matches:
        if match is None or (match[1], len(match[2]), match[3]) != (beginning, len(digits), end):
            return None
        numbers.add(int(match[2]))
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    width = len(digits)
    parts = [f"{low:0{width}}" if low == high else f"{low:0{width}}-{high:0{width}}" for low, high in ranges]
    inside = ",".join(parts)
    return f"{beginning}{inside}{end}" if len(numbers) == 1 else f"{beginning}[{inside}]{end}"
