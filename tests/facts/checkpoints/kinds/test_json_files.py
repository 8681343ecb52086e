"""JSON within bounds."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ncclcheck.facts.checkpoints.kinds.index import index
from ncclcheck.facts.checkpoints.kinds.json_files import JSON_BYTES, MOST_VALUES
from ncclcheck.facts.checkpoints.kinds.manifest import manifest
from ncclcheck.facts.checkpoints.kinds.rule import Rule
from tests.facts.checkpoints.reading import why_unknown


@pytest.mark.parametrize(
    ("rule", "name"), [(index, "model.safetensors.index.json"), (manifest, "manifest.json")]
)
def test_json_of_endless_values_costs_neither_time_nor_memory(
    tmp_path: Path, rule: Rule, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decode(data: bytes) -> object:
        raise AssertionError(f"{len(data)} bytes were decoded")

    monkeypatch.setattr(msgspec.json, "decode", decode)
    for values in (b"[],", b"1,", b'{"a":'):
        (tmp_path / name).write_bytes(b"[" + values * MOST_VALUES + b"[]]")
        assert "4,000,000 values" in why_unknown(rule, tmp_path)


def test_json_that_is_too_long_is_not_called_damaged(tmp_path: Path) -> None:
    with (tmp_path / "model.safetensors.index.json").open("wb") as file:
        file.truncate(JSON_BYTES + 1)
    assert "longer than 64 MiB" in why_unknown(index, tmp_path)
