"""Sets of files that are numbered: `-00001-of-00003` and `world_size_4_rank_0` tell how many, `rank_0` does not."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import count

from ncclcheck.facts.checkpoints.kinds.rule import MOST_NEEDED, Lacks, Rule, unknown_reason
from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.model.job.checkpoint_names import RANK, SAVED

# Hugging Face: model-00001-of-00003.safetensors, from 1 on; others count from 0
_OF = re.compile(r"(?P<before>.*-)(?P<number>\d{1,9})(?P<after>-of-(?P<count>\d{1,9})\.[^/]*)", re.ASCII)
# verl and others with a file per rank of FSDP: model_world_size_8_rank_0.pt
_RANK = re.compile(
    r"(?P<before>.*world_size_(?P<count>\d{1,9})_rank_)(?P<number>\d{1,9})(?P<after>\.[^/]*)", re.ASCII
)
_COUNTED_OTHERWISE = re.compile(r"world_size_\d+_rank_|(?:mp|pp|expp)_rank_")


def counted(files: Files) -> Lacks | None:
    """Find the missing files. Such names alone make no checkpoint of a kind: it speaks only where one is missing."""
    missing = (*_absent(files, _OF), *_absent(files, _RANK))
    return Lacks("file", missing=missing) if missing else None


def _absent(files: Files, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the names that are not there of each set that has a file with `number` of `count` in its name."""
    sets: dict[tuple[str, int, str], list[str]] = {}
    for name in files.sizes:
        if name.endswith(SAVED) and (found := pattern.fullmatch(name)):
            sets.setdefault((found["before"], int(found["count"]), found["after"]), []).append(
                found["number"]
            )
    for (before, most, after), written in sets.items():
        numbers = set(map(int, written))
        if most > MOST_NEEDED or max(numbers) > most:
            continue
        first, width = 0, 1  # ranks
        if pattern is _OF:
            first, width = 0 if 0 in numbers else 1, min(map(len, written))
        for number in range(first, first + most):
            if number not in numbers:
                yield f"{before}{number:0{width}d}{after}"


def ranks(files: Files) -> Lacks | None:
    """Doubt files of ranks with a hole in their numbers, where nothing says how many there are.

    A node may have those of its own ranks, or a file of every n-th rank only: numbers at equal distances have no hole.
    """
    sets: dict[tuple[str, str], set[int]] = {}
    for name in files.sizes:
        found = RANK.fullmatch(name)
        if found and name.endswith(SAVED) and not _COUNTED_OTHERWISE.search(name):
            sets.setdefault((found["before"], found["after"]), set()).add(int(found["number"]))
    for (before, after), numbers in sorted(sets.items()):
        distance = math.gcd(*(number - min(numbers) for number in numbers))
        missing = (max(numbers) - min(numbers)) // (distance or 1) + 1 - len(numbers)
        if missing:
            gone = next(number for number in count(min(numbers), distance) if number not in numbers)
            why = f"{before}{gone}{after} is not there, though there are {len(numbers)} others up to {max(numbers)}"
            return Lacks("file", unknown=unknown_reason(why))
    return None


RULES: tuple[Rule, ...] = (counted, ranks)
