"""A manifest and its files."""

from __future__ import annotations

import json
from pathlib import Path

from ncclcheck.facts.checkpoints.kinds.manifest import manifest
from tests.facts.checkpoints.reading import lacks, why_unknown


def test_the_forms_of_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "COMPLETE").touch()
    (tmp_path / "a.bin").write_bytes(b"123")
    forms = [
        ["a.bin", "b.bin"],
        [{"path": "a.bin", "bytes": 3}, {"path": "b.bin", "bytes": 3}],
        {"files": {"a.bin": 3, "b.bin": 4}},
        {"shards": {"a.bin": {"size": 3}, "b.bin": {"size": 4}}, "version": 2},
        {"a.bin": 3, "b.bin": 3, "version": 2},
    ]
    for form in forms:
        (tmp_path / "manifest.json").write_text(json.dumps(form))
        found = lacks(manifest, tmp_path)
        assert (found.missing, found.damaged) == (("b.bin",), ()), form
    (tmp_path / "manifest.json").write_text(json.dumps({"files": {"a.bin": 4}}))
    assert lacks(manifest, tmp_path).damaged == ("a.bin: 3 bytes, 4 were recorded",)


def test_a_manifest_that_lists_nothing_is_not_called_complete(tmp_path: Path) -> None:
    (tmp_path / "COMPLETE").touch()
    (tmp_path / "manifest.json").write_text("{}")
    assert why_unknown(manifest, tmp_path)
