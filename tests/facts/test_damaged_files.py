"""Every file of a recorded machine deleted and damaged in turn: what it told is then missing, never another value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ncclcheck.facts.recorded import read_recorded
from ncclcheck.model.codec import encode
from tests.facts.trees import roce_machine

GARBAGE = b"\xff\x00 garbage 0x"
# Texts that a machine may write as it likes: whatever stands there is what it says.
FREE_TEXT = {
    "firmware", "board_id", "hca_type", "node_guid", "modules", "netdev", "operstate", "type", "hostname", "driver",
    "detail", "uverbs", "peer_memory", "unread",
}  # fmt: skip
# What follows from whether a thing is there at all.
FOLLOWS = {"kind", "running", "tunnel", "flags", "index", "gid_table_length"}


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value that is not missing, with where it stands; elements of a list by what they are."""
    if isinstance(value, dict) and "missing" in value:
        return
    if isinstance(value, dict):
        for name, one in value.items():
            yield from leaves(one, (*path, name))
    elif isinstance(value, list):
        for place, one in enumerate(value):
            name = str(place)
            if isinstance(one, dict):
                name = str(
                    one.get("address") or one.get("name") or one.get("device") or one.get("index", place)
                )
            yield from leaves(one, (*path, name))
    else:
        yield path, value


def facts_of(root: Path) -> dict[tuple[str, ...], Any]:
    return dict(leaves(json.loads(encode(read_recorded(root).facts))))


@pytest.mark.slow
@pytest.mark.further
def test_a_damaged_source_is_missing_and_never_another_value(tmp_path: Path) -> None:
    root = roce_machine(tmp_path / "node42").root
    whole = facts_of(root)
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink()]
    assert len(files) > 40
    wrong: list[str] = []
    unseen = 0
    for file in files:
        content = file.read_bytes()
        for damage in (None, GARBAGE):
            if damage is None:
                file.unlink()
            else:
                file.write_bytes(damage)
            told = facts_of(root)
            unseen += told == whole
            wrong += [
                f"{file.relative_to(root)} {damage!r}: {'.'.join(path)} is {value!r}, was {whole.get(path)!r}"
                for path, value in told.items()
                if value != whole.get(path) and not {*path} & FREE_TEXT and path[-1] not in FOLLOWS
            ]
            file.write_bytes(content)
    assert wrong == []
    assert unseen < len(files)  # most of the files do matter
