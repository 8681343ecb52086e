"""A manifest and its files."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from ncclcheck.facts.checkpoints.kinds.manifest import manifest
from ncclcheck.facts.checkpoints.kinds.rule import Lacks
from ncclcheck.facts.checkpoints.listing import files_of
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


def told(folder: Path, manifest_text: object) -> Lacks:
    """What the rule says of a folder with a.bin of 3 bytes, sub/c.bin and this manifest."""
    (folder / "COMPLETE").touch()
    (folder / "sub").mkdir()
    (folder / "a.bin").write_bytes(b"123")
    (folder / "sub" / "c.bin").write_bytes(b"12345")
    (folder / "manifest.json").write_text(json.dumps(manifest_text))
    return lacks(manifest, folder)


@pytest.mark.parametrize(
    "form",
    [
        {"files": ["./a.bin", "sub/", "sub/../a.bin"]},
        {"files": ["/gone/since/it/was/moved/sub/c.bin"]},
        {"files": {"a.bin": "sha256:00", "sub/c.bin": "12345"}},
        {"files": [{"name": "a.bin", "size": "3"}, {"name": "sub/c.bin", "nbytes": 5.0}]},
        {"shards": {"0": "a.bin", "1": {"file": "sub/c.bin", "size": 5}}, "num_shards": 2, "world_size": 2},
        {"files": {"rank0": ["a.bin"], "rank1": {"sub/c.bin": 5}}},
    ],
)
def test_whole_ones_in_any_form(tmp_path: Path, form: object) -> None:
    assert told(tmp_path, form) == Lacks("manifest")


@pytest.mark.parametrize(
    "form",
    [
        {"files": {"a.bin": "sha256:00", "b.bin": "sha256:00"}},
        {"shards": {"0": "a.bin", "1": "b.bin"}},
        {"shards": [["a.bin", "b.bin"]]},
        {"files": {"rank0": ["a.bin", "b.bin"]}},
        {"files": ["a.bin"], "shards": ["b.bin"]},
    ],
)
def test_a_missing_file_in_any_form(tmp_path: Path, form: object) -> None:
    assert told(tmp_path, form).missing == ("b.bin",)


@pytest.mark.parametrize("record", [{"size": "4"}, {"size": 4.0}, {"nbytes": 4}, {"file_size": 4}])
def test_another_size_in_any_form(tmp_path: Path, record: dict[str, object]) -> None:
    assert told(tmp_path, {"files": [{"name": "a.bin", **record}]}).damaged == (
        "a.bin: 3 bytes, 4 were recorded",
    )


def test_a_list_that_is_shorter_than_it_tells(tmp_path: Path) -> None:
    found = told(tmp_path, {"num_shards": 4, "shards": ["a.bin"]})
    assert found.damaged == ("manifest.json: lists 1 files of the 4 that it tells of",)
    (tmp_path / "manifest.json").write_text(json.dumps({"world_size": 4, "shards": ["a.bin"]}))
    assert why_unknown(manifest, tmp_path) == "manifest.json tells of 4 ranks, and lists 1 shards"


def test_files_outside_are_not_looked_at(tmp_path: Path) -> None:
    assert "is outside" in str(told(tmp_path, {"files": ["a.bin", "../other/b.bin"]}).unknown)


def test_a_marker_alone_says_nothing_of_files(tmp_path: Path) -> None:
    (tmp_path / "COMPLETE").touch()
    assert manifest(files_of(tmp_path, time.monotonic() + 30)) is None


def test_long_paths_cost_nothing(tmp_path: Path) -> None:
    deep = "/".join(["x"] * 400)
    began = time.process_time()
    found = told(tmp_path, {"files": [f"/{deep}/{number}" for number in range(5000)]})
    assert "is outside" in str(found.unknown)
    assert time.process_time() - began < 2
