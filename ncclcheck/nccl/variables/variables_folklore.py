"""Names that people set and that nobody reads, each with what does what they hoped for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from ncclcheck.model.formats.tables import load_table
from ncclcheck.nccl.variables.variables import TABLE


class FolkloreHint(Struct, frozen=True, forbid_unknown_fields=True):
    """What to set instead of some names. `names` are exact, `pattern` is for a whole name and is tried after all names.

    `renamed_to`: the value is right, and only the name is wrong.
    """

    text: str
    names: tuple[str, ...] = ()
    pattern: str = ""
    renamed_to: str = ""


_ADVICE = load_table(
    "ncclcheck.nccl.variables", "folklore.toml", dict[Literal["advice"], tuple[FolkloreHint, ...]]
)["advice"]
FOLKLORE: Mapping[str, str] = {name: advice.text for advice in _ADVICE for name in advice.names}
RENAMED: Mapping[str, str] = {
    name: advice.renamed_to for advice in _ADVICE if advice.renamed_to for name in advice.names
}
_PATTERNS = tuple((re.compile(advice.pattern), advice.text) for advice in _ADVICE if advice.pattern)
_SLIPS_OF_NCCL = re.compile(r"^(NCLL|NCC|NCL|NCCLL|NNCL|NCCCL|NCCK|CNCL|NNCCL)_")


def folklore(name: str) -> str | None:
    """Return the setting that does what the user of this name wants; None where it is no such name."""
    if name in FOLKLORE:
        return FOLKLORE[name]
    return next((advice for pattern, advice in _PATTERNS if pattern.fullmatch(name)), None)


def in_the_right_spelling(name: str) -> str | None:
    """Return the known name that differs only in case, blanks, dashes, `export` or a slip in NCCL; else None.

    Names of variables are exact on Linux: nobody reads nccl_debug.
    """
    plain = re.sub(r"[-. ]", "_", re.sub(r"^export\s+", "", name.strip()))
    for spelt in (plain.upper(), _SLIPS_OF_NCCL.sub("NCCL_", plain.upper())):
        if spelt != name and spelt in TABLE:
            return spelt
    return None


@lru_cache(maxsize=1024)  # every node of a job has the same slips
def did_you_mean(name: str, most_changes: int = 3) -> str | None:
    """Return the known name nearest to a misspelt `name`, by insertions, deletions, changes and swaps of letters.

    At most `most_changes`, and at most one in five letters. Words in another order count as one change.
    """
    limit = min(most_changes, max(1, len(name) // 5))
    near = [(distance, known) for known in TABLE if (distance := _distance(name, known, limit)) <= limit]
    return min(near)[1] if near else None


def _distance(name: str, known: str, limit: int) -> int:
    if abs(len(name) - len(known)) > limit:
        return limit + 1
    if name != known and sorted(name.split("_")) == sorted(known.split("_")):
        return 1
    letters, known_letters = set(name), set(known)
    if (
        max(len(letters - known_letters), len(known_letters - letters)) > limit
    ):  # each has to be changed, at least
        return limit + 1
    return _edit_distance(name, known)


def _edit_distance(name: str, version: str) -> int:
    """Optimal string alignment: how many letters have to be added, dropped, changed or swapped with their neighbour."""
    rows: list[list[int]] = [list(range(len(version) + 1))]
    for row, letter in enumerate(name, 1):
        line = [row]
        for column, against in enumerate(version, 1):
            best = min(rows[-1][column] + 1, line[-1] + 1, rows[-1][column - 1] + (letter != against))
            if row > 1 and column > 1 and letter == version[column - 2] and name[row - 2] == against:
                best = min(best, rows[-2][column - 2] + 1)
            line.append(best)
        rows.append(line)
    return rows[-1][-1]
