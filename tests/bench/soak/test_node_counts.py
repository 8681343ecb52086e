"""What a node counts between two blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.bench.gathering import DOCUMENT_BYTES
from ncclcheck.bench.gpu.gpu_health import GpuLook
from ncclcheck.bench.soak import node_counts
from ncclcheck.bench.soak.node_counts import CounterReader, merged, of_gpu, packed
from ncclcheck.model.benchmarks.soak import NodeCounts
from ncclcheck.model.codec import decode
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import LinkCounters


def machine(root: Path, resent: int, steal: int, throttled: int) -> Path:
    (root / "proc/net").mkdir(parents=True, exist_ok=True)
    snmp = f"Ip: Forwarding\nIp: 1\nTcp: InSegs OutSegs RetransSegs\nTcp: 5 {100 + resent} {resent}\n"
    (root / "proc/net/snmp").write_text(snmp)
    (root / "proc/stat").write_text(f"cpu  100 0 100 {700 - steal} 0 0 0 {steal + resent} 0 0\n")
    core = root / "sys/devices/system/cpu/cpu0/thermal_throttle"
    core.mkdir(parents=True, exist_ok=True)
    (core / "core_throttle_count").write_text(f"{throttled}\n")
    return root


def test_what_grew_since_the_last_block_is_told(tmp_path: Path) -> None:
    reader = CounterReader("node01", machine(tmp_path, 3, 0, 1))
    machine(tmp_path, 10, 93, 1)
    first = reader.grown()
    assert first.host == "node01"
    assert (first.counts["tcp resent"], first.counts["tcp sent"]) == (7, 7)
    assert "cpu throttled" not in first.counts
    assert first.steal == 1.0
    machine(tmp_path, 10, 93, 4)
    second = reader.grown()
    assert second.counts["cpu throttled"] == 3
    assert "tcp resent" not in second.counts


def test_for_which_part_of_a_block_the_rank_waited_for_a_core_is_told(tmp_path: Path) -> None:
    thread = tmp_path / "proc/self/task/77"
    thread.mkdir(parents=True)
    (thread / "schedstat").write_text("5 1000 1\n")
    reader = CounterReader("node01", tmp_path)
    assert reader.grown().waited == 0.0
    (thread / "schedstat").write_text(f"5 {10**15} 1\n")
    assert reader.grown().waited == 1.0


def test_a_machine_that_tells_nothing_counts_nothing(tmp_path: Path) -> None:
    reader = CounterReader("node01", tmp_path)
    found = reader.grown()
    assert found.steal == 0.0
    assert not [name for name in found.counts if name.startswith(("tcp", "cpu"))]


def links(monkeypatch: pytest.MonkeyPatch, **counts: dict[str, Fact[int]]) -> None:
    found = tuple(LinkCounters(name, read) for name, read in counts.items())
    monkeypatch.setattr(node_counts, "read_links_again", lambda _deadline_s, **_: found)


def test_the_first_errors_of_a_link_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links(monkeypatch, eth0={"carrier_changes": 1, "rx_crc_errors": 0})
    reader = CounterReader("node01", tmp_path)
    links(monkeypatch, eth0={"carrier_changes": 1, "rx_crc_errors": 5000, "new": 7})
    assert reader.grown().counts == {"eth0 rx_crc_errors": 5000}


def test_zeros_of_this_machine_are_read() -> None:
    names = set(CounterReader("node01")._counts)
    cards = [name for name in names if name.endswith("carrier_changes")]
    assert all(f"{name.split()[0]} rx_errors" in names for name in cards)


def test_a_carrier_that_was_not_read_is_not_taken_for_a_steady_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links(monkeypatch, eth0={"carrier_changes": 1}, eth1={"carrier_changes": Missing("denied", "")})
    reader = CounterReader("node01", tmp_path)
    assert reader.grown().carriers == 1
    monkeypatch.setattr(node_counts, "read_links_again", lambda *_, **__: Missing("timeout", ""))
    assert reader.grown().carriers == 0


@pytest.mark.parametrize("sign", ["bridge", "tun_flags"])
def test_bridges_of_containers_and_tunnels_do_not_flap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign: str
) -> None:
    (tmp_path / "sys/class/net/docker0" / sign).mkdir(parents=True)
    links(monkeypatch, docker0={"carrier_changes": 1}, eth0={"carrier_changes": 1})
    reader = CounterReader("node01", tmp_path)
    links(monkeypatch, docker0={"carrier_changes": 9}, eth0={"carrier_changes": 3})
    found = reader.grown()
    assert found.counts == {"eth0 carrier_changes": 2}
    assert found.carriers == 1


def test_too_many_counters_leave_those_that_grew_most() -> None:
    counts = {f"eth{number} rx_errors": number for number in range(200)}
    data = packed(NodeCounts("node01", counts))
    assert len(data) <= DOCUMENT_BYTES
    kept = decode(data, NodeCounts).counts
    assert kept
    assert min(kept.values()) == 200 - len(kept)


def test_the_gpus_of_a_node_are_told_together() -> None:
    hot = GpuLook(("hardware thermal slowdown",), 1200, 88, nvlink_errors=5)
    parts = [
        NodeCounts("node01", {"tcp sent": 3}, carriers=2),
        of_gpu("node01", 0, GpuLook((), 1980, 60), 1970.0),
        of_gpu("node01", 1, hot, 0.0),
        of_gpu("node02", 0, GpuLook(), 0.0),
    ]
    first, second = merged(parts)
    assert first.counts == {
        "tcp sent": 3,
        "GPU 1 blocks with hardware thermal slowdown": 1,
        "GPU 1 NVLink errors": 5,
    }
    assert (first.clock_mhz, first.temperature_c, first.carriers) == (1200.0, 88, 2)
    assert second == NodeCounts("node02")


def test_a_link_that_trains_at_a_lower_rate_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links(monkeypatch, eth0={"carrier_changes": 1})
    card = tmp_path / "sys/class/net/eth0/device"
    card.mkdir(parents=True)
    (card.parent / "speed").write_text("100000\n")
    (card / "current_link_width").write_text("16\n")
    reader = CounterReader("node01", tmp_path)
    assert reader.grown().counts == {}
    (card.parent / "speed").write_text("-1\n")  # down
    assert reader.grown().counts == {}
    (card.parent / "speed").write_text("25000\n")
    (card / "current_link_width").write_text("8\n")
    assert reader.grown().counts == {"eth0 Mbit/s from 100000 to 25000": 1, "eth0 PCIe lanes from 16 to 8": 1}
    assert reader.grown().counts == {}
