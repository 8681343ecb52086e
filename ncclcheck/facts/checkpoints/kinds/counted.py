"""Sets of files whose names tell how many they are: `-00001-of-00003`, `world_size_4_rank_0`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.facts.checkpoints.file_ends import SAVED
from ncclcheck.facts.checkpoints.kinds.rule import MOST_NEEDED, Lacks, Rule
from ncclcheck.facts.checkpoints.listing import Files

# Hugging Face: model-00001-of-00003.safetensors, from 1 on; others count from 0
_OF = re.compile(r"(?P<before>.*-)(?P<number>\d{1,9})(?P<after>-of-(?P<count>\d{1,9})\.[^/]*)", re.ASCII)
# verl and others with a file per rank of FSDP: model_world_size_8_rank_0.pt
_RANK = re.compile(
    r"(?P<before>.*world_size_(?P<count>\d{1,9})_rank_)(?P<number>\d{1,9})(?P<after>\.[^/]*)", re.ASCII
)


def counted(files: Files) -> Lacks | None:
    """Find the missing files. Such names alone make no checkpoint of a kind: it speaks only where one is missing."""
    missing = (*_absent(files, _OF), *_absent(files, _RANK))
    return Lacks("file", missing=missing, unknown=files.cut) if missing else None


def _absent(files: Files, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the names that are not there of each set that has a file with `number` of `count` in its name."""
    sets: dict[tuple[str, int, str], list[str]] = {}
    for name in files.sizes:
        if name.endswith(SAVED) and (found := pattern.fullmatch(name)):
            sets.setdefault((found["before"], int(found["count"]), found["after"]), []).append(
                found["number"]
            )
    for (before, count, after), written in sets.items():
        numbers = set(map(int, written))
        if count > MOST_NEEDED or max(numbers) > count:
            continue
        first, width = 0, 1  # ranks
        if pattern is _OF:
            first, width = 0 if 0 in numbers else 1, min(map(len, written))
        for number in range(first, first + count):
            if number not in numbers:
                yield f"{before}{number:0{width}d}{after}"


RULES: tuple[Rule, ...] = (counted,)
