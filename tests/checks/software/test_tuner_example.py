"""NC518 tuner-example."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import TunerPlugin
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, node, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import some

SLUG = "tuner-example"


def with_tuners(snapshot: Snapshot, host: str, tuners: Fact[tuple[TunerPlugin, ...]]) -> Snapshot:
    return with_facts(snapshot, host, nccl=replace(some(node(snapshot, host).facts.nccl), tuners=tuners))


def tuner(name: str, *apis: int) -> TunerPlugin:
    return TunerPlugin("libnccl-tuner.so", "/opt/lib/libnccl-tuner.so", apis, name)


def test_the_example_is_named_where_it_is_loaded() -> None:
    found = finding(SLUG, with_tuners(cluster(4), "node03", (tuner("Example", 4, 5),)))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "/opt/lib/libnccl-tuner.so (Example)" in found.summary
    assert "one channel" in found.summary
    assert finding(SLUG, with_tuners(cluster(1), "node01", (tuner("Basic", 5),))).severity == "warning"


def test_another_tuner_and_the_old_example_are_silent() -> None:
    assert is_silent(SLUG, with_tuners(cluster(2), "node02", (tuner("AWS OFI", 3),)))
    assert is_silent(SLUG, with_tuners(cluster(2), "node02", (tuner("Example", 2),)))


def test_without_a_tuner_it_is_silent_and_unread_it_is_unknown() -> None:
    absent = TunerPlugin("libnccl-tuner.so", Missing("absent", "no such file"))
    assert is_silent(SLUG, with_tuners(cluster(1), "node01", (absent,)))
    late = Missing("timeout", "late")
    assert run(SLUG, with_tuners(cluster(2), "node02", late)).outcome == "unknown"
