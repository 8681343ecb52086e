"""NC707 path-differs."""

from __future__ import annotations

import zlib
from typing import Any

from msgspec.structs import replace

from ncclcheck.model.facts import Manifest, PathFact
from ncclcheck.model.formats.name_sketch import NameSketch
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, with_facts
from tests.checks.running import finding, run
from tests.fact_builders import FILES, GONE, manifest, path_fact


def seen(nodes: int = 3, **changes: Any) -> Snapshot:
    return with_facts(
        everywhere(cluster(nodes), paths=(path_fact(),)), "node02", paths=(path_fact(**changes),)
    )


def holding(files: dict[str, int], nodes: int = 3, **changes: Any) -> Snapshot:
    return seen(nodes, manifest=manifest(files, **changes))


def test_a_missing_and_a_further_file_are_named() -> None:
    files = {name: size for name, size in FILES.items() if name != "shard-03.bin"} | {"old.bin": 1}
    found = finding("path-differs", holding(files))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "8 files on node02 (without shard-03.bin, with old.bin), 8 on node01 and node03" in found.summary


def test_another_size_is_named() -> None:
    results = run("path-differs", holding({**FILES, "shard-05.bin": 17}))
    assert [one.hosts for one in results.findings] == [("node02",), ("node02",)]
    assert "shard-05.bin has a different size on node02" in results.findings[0].summary
    assert "a different content" in results.findings[1].summary


def test_of_two_nodes_nobody_is_called_right() -> None:
    found = finding("path-differs", holding({}, nodes=2))
    assert found.hosts == ("node01", "node02")
    assert "(no majority)" in found.summary


def test_names_beyond_the_sample_of_one_side_are_not_called_missing() -> None:
    """Of a large folder only the names with the smallest hashes are known."""
    whole = manifest()
    least = sorted(whole.sample, key=lambda entry: entry.name_hash)[:3]
    part: Manifest = replace(whole, sample=tuple(least), largest_hash=least[-1].name_hash, names_checksum=1)
    found = finding("path-differs", seen(manifest=part))
    assert "without" not in found.summary


def test_other_kinds_of_things_and_filesystems() -> None:
    assert finding("path-differs", seen(kind="file")).severity == "error"
    found = finding("path-differs", seen(filesystem="ext4"))
    assert (found.severity, found.hosts) == ("warning", ("node02",))


def test_what_could_not_be_listed_is_not_passed() -> None:
    for damaged in (seen(manifest=GONE), holding(FILES, complete=False), seen(filesystem=GONE)):
        result = run("path-differs", damaged)
        assert (result.outcome, "node02" in result.reason) == ("unknown", True)


def test_a_single_missing_file_of_many_is_named_though_no_sample_has_it() -> None:
    names = [f"shard-{number:06d}.bin" for number in range(3000)]

    def listed(kept: list[str]) -> PathFact:
        sketch = NameSketch()
        for name in kept:
            sketch.add(name.encode(), zlib.crc32(name.encode()))
        checksum = sum(zlib.crc32(name.encode()) + 1 for name in kept)
        return path_fact(manifest=Manifest(len(kept), checksum, True, (), -1, sketch.cells()))

    snapshot = everywhere(cluster(3), paths=(listed(names),))
    gone = [name for name in names if name != "shard-001234.bin"]
    found = finding("path-differs", with_facts(snapshot, "node02", paths=(listed(gone),)))
    assert found.hosts == ("node02",)
    assert "2999 files on node02 (without shard-001234.bin), 3000 on node01 and node03" in found.summary
