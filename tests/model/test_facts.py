"""A facts document written by hand may leave out what follows from the rest."""

from __future__ import annotations

import pytest

from ncclcheck.model.codec import decode, encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import (
    Interface,
    InterfaceKind,
    NodeFacts,
)
from ncclcheck.model.saved import FactsDocument

_INTERFACE = {
    "name": "eth0", "kind": "physical", "type": 1, "mtu": 9000, "operstate": "up", "flags": ["up", "broadcast"],
    "addresses": [{"family": "inet", "address": "10.0.0.1", "prefix_length": 24, "label": "eth0"}],
    "speed_mbps": 100000, "pci": "0000:18:00.0", "driver": "mlx5_core", "master": None, "lower": [], "is_vf": False,
}  # fmt: skip
_PORT = {
    "device": "mlx5_0", "port": 1, "link_layer": "Ethernet", "state": "ACTIVE", "phys_state": "LinkUp",
    "rate_gbps": 400.0, "width": "4X", "speed": "NDR", "lid": 0, "active_mtu": {"missing": "unsupported"},
    "pci": "0000:18:00.0", "numa_node": 0, "firmware": "28.39.1002", "board_id": "MT_0000000838",
    "hca_type": "MT4129", "node_guid": "a088:c203:0010:0020", "driver": "mlx5_core", "uverbs": "uverbs0",
    "gids": [{"index": 3, "gid": "0000:0000:0000:0000:0000:ffff:0a64:000b", "type": "RoCE v2", "netdev": "eth0"}],
}  # fmt: skip
_DEVICE = {
    "address": "0000:18:00.0", "vendor": "0x15b3", "device": "0x1021", "class": "0x020700", "numa_node": 0,
    "driver": "mlx5_core", "link_speed_gt_s": 32.0, "link_width": 16, "max_link_speed_gt_s": 32.0,
    "max_link_width": 16, "acs_redirect": {"missing": "unsupported", "detail": "asked of bridges only"},
}  # fmt: skip


def test_the_facts_of_the_contract_are_a_document() -> None:
    document = {
        "schema_version": "1",
        "host": "node01",
        "facts": {
            "interfaces": [_INTERFACE],
            "rdma": {"ports": [_PORT], "device_files": ["uverbs0"], "peer_memory": []},
            "pci": {"devices": [_DEVICE]},
            "kernel": {"modules": ["nvidia"]},
            "paths": {"missing": "absent"},
            "weather": {"a section that this version": "does not know"},
            "limits": {
                "mem_total_kib": 1024,
                "dev_shm": {"type": "tmpfs", "size_kib": {"missing": "absent"}},
            },
        },
    }
    facts = decode(encode(document), FactsDocument).facts
    assert not isinstance(facts.interfaces, Missing)
    assert (facts.interfaces[0].index, facts.interfaces[0].running) == (0, True)
    assert not isinstance(facts.rdma, Missing)
    assert isinstance(facts.rdma.verbs_library, Missing)
    assert not isinstance(facts.limits, Missing)
    assert isinstance(facts.limits.nofile, Missing)
    assert isinstance(facts.software, Missing)
    assert decode(encode(facts), NodeFacts) == facts


@pytest.mark.parametrize(
    ("flags", "operstate", "told", "running"),
    [
        (["up"], "up", None, True),
        (["up"], "unknown", None, True),
        (["up"], "dormant", None, False),
        (["up"], "down", None, False),
        ([], "up", None, False),
        (["up", "running"], {"missing": "absent"}, None, True),
        (["up"], {"missing": "absent"}, None, False),
        (["up"], "up", False, False),
        (["up"], "down", True, True),
    ],
)
def test_running_follows_from_flags_and_state_where_it_is_left_out(
    flags: list[str], operstate: object, told: bool | None, running: bool
) -> None:
    document = {**_INTERFACE, "flags": flags, "operstate": operstate}
    if told is not None:
        document["running"] = told
    assert decode(encode(document), Interface).running is running


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("physical", True),
        ("ipoib", True),
        ("bond", True),
        ("vlan", True),
        ("loopback", False),
        ("bridge", False),
        ("virtual", False),
    ],
)
def test_a_network_card_is_behind_some_kinds_of_interfaces(kind: InterfaceKind, expected: bool) -> None:
    absent = Missing("absent", "")
    assert Interface("eth0", kind, 1, 1500, "up", (), (), absent, absent, absent).is_hardware is expected
