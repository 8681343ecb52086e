"""What a buffer of a collective holds: one table of numbers, from a place that depends on rank, part and iteration.

`bench/data.py` fills and compares the buffers, and says why the table is as it is.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

SOURCE_STEP = 67  # where the data of a rank begin after those of the rank before it
PART_STEP = 131  # where one part of a buffer begins after the part before it
Kind: TypeAlias = Literal["moved", "summand", "total"]


class Content(Struct, frozen=True):
    """What a buffer holds: `parts` equal parts, each the table from `start`, `step` further on with each part."""

    kind: Kind
    start: int = 0
    parts: int = 1
    step: int = 0
