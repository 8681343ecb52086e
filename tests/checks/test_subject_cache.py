"""Values that are worked out once for a Snapshot."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster


def test_it_works_once_for_each_snapshot_and_argument() -> None:
    calls = []

    @once_per_subject
    def hosts(snapshot: Snapshot, beginning: str) -> tuple[str, ...]:
        calls.append(beginning)
        return tuple(node.host for node in snapshot.nodes if node.host.startswith(beginning))

    first = cluster(2)
    smaller = replace(first, nodes=first.nodes[:1])
    assert [hosts(first, "n"), hosts(first, "n"), hosts(first, "x")] == [
        ("node01", "node02"),
        ("node01", "node02"),
        (),
    ]
    assert hosts(smaller, "n") == ("node01",)
    assert hosts(first, "n") == ("node01", "node02")
    assert calls == ["n", "x", "n"]
