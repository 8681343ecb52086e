"""Every machine recorded beside the project is read as its own description says, and nothing of this one is in it."""

from __future__ import annotations

import json
import platform
import socket
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ncclcheck.facts.recorded import read_recorded
from ncclcheck.model.codec import encode
from tests.facts.link_files import with_links
from tests.further import mostly_further

SYSROOTS = Path(__file__).parents[3] / "shared" / "sysroots"
TREES = sorted(path.parent for path in SYSROOTS.glob("*/expected.json"))
# NCCL, transport/net_ib.cc of 2.21, 2.22 and 2.28: the peer-memory files that each looks for.
OLD_MODULES = ("/sys/kernel/mm/memory_peers/nv_mem/version", "/sys/kernel/mm/memory_peers/nv_mem_nc/version")
PEER_MEMORY = {
    "nccl_2.21": (*OLD_MODULES, "/sys/kernel/mm/memory_peers/nvidia-peermem/version"),
    "nccl_2.22": OLD_MODULES,
    "nccl_2.28": (*OLD_MODULES, "/sys/module/nvidia_peermem/version"),
}

pytestmark = pytest.mark.skipif(not TREES, reason=f"no recorded machines in {SYSROOTS}")
each_tree = pytest.mark.parametrize("tree", TREES, ids=lambda path: str(path.name))


@cache
def expected(tree: Path) -> dict[str, Any]:
    """What a right reading of the tree gives."""
    found = json.loads((tree / "expected.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@cache
def facts(tree: Path) -> dict[str, Any]:
    """The facts as `ncclcheck facts --root` prints them, null in the place of what is missing."""
    document = known(json.loads(encode(read_recorded(tree).facts)))
    assert isinstance(document, dict)
    return document


def known(value: Any) -> Any:
    if isinstance(value, dict):
        return None if "missing" in value else {name: known(one) for name, one in value.items()}
    return [known(one) for one in value] if isinstance(value, list) else value


def same(told: Any, wanted: Any) -> bool:
    """Equal, where `any_of` lists the alternatives and lists have no order."""
    if isinstance(wanted, dict) and set(wanted) == {"any_of"}:
        return any(same(told, one) for one in wanted["any_of"])
    if isinstance(wanted, dict):
        return isinstance(told, dict) and all(same(told.get(name), one) for name, one in wanted.items())
    if isinstance(wanted, list):
        left = list(told or [])
        for one in wanted:
            match = next((index for index, each in enumerate(left) if same(each, one)), None)
            if match is None:
                return False
            left.pop(match)
        return not left
    return type(told) is type(wanted) and bool(told == wanted)


def links(device: dict[str, Any]) -> dict[str, Any]:
    return {name: device[name] for name in device if name.startswith(("link_", "max_link_"))}


@each_tree
def test_rdma_ports(tree: Path) -> None:
    ports = facts(tree)["rdma"]["ports"]
    assert len(ports) == len(expected(tree)["rdma_ports"])
    for port, wanted in zip(
        sorted(ports, key=lambda one: (one["device"], one["port"])),
        sorted(expected(tree)["rdma_ports"], key=lambda rdma_port: (rdma_port["device"], rdma_port["port"])),
        strict=True,
    ):
        for name in wanted:
            assert same(port[name], wanted[name]), (wanted["device"], name, port[name], wanted[name])


@each_tree
def test_interfaces(tree: Path) -> None:
    by_name = {fact["name"]: fact for fact in facts(tree)["interfaces"] or []}
    assert set(by_name) == {interface["name"] for interface in expected(tree)["interfaces"]}
    for wanted in expected(tree)["interfaces"]:
        told = by_name[wanted["name"]]
        for name in wanted:
            assert same(told[name], wanted[name]), (wanted["name"], name, told[name], wanted[name])


@each_tree
def test_gpus(tree: Path) -> None:
    bus = facts(tree)["pci"] or {"devices": []}
    by_address = {device["address"]: device for device in bus["devices"]}
    assert {fact["pci"] for fact in facts(tree)["gpus"] or []} == {
        gpu["pci"] for gpu in expected(tree)["gpus"]
    }
    for wanted in expected(tree)["gpus"]:
        told = {**by_address[wanted["pci"]], "pci": wanted["pci"]}
        assert same(told, wanted), (told, wanted)


@each_tree
def test_links_of_rdma_devices(tree: Path) -> None:
    bus = facts(tree)["pci"] or {"devices": []}
    by_address = {device["address"]: device for device in bus["devices"]}
    found = {
        port["device"]: {"device": port["device"], "pci": port["pci"], **links(by_address[port["pci"]])}
        for port in facts(tree)["rdma"]["ports"]
        if port["pci"] in by_address
    }
    assert same(list(found.values()), expected(tree)["nic_links"]), found


@each_tree
def test_acs(tree: Path) -> None:
    bus = facts(tree)["pci"] or {"devices": []}
    told = {
        device["address"]: device["acs_redirect"]
        for device in bus["devices"]
        if device["acs_redirect"] is not None
    }
    assert told == expected(tree)["acs_redirect"]


@each_tree
def test_modules(tree: Path) -> None:
    modules, wanted = facts(tree)["kernel"]["modules"], expected(tree)["modules"]
    assert (modules is None) == (wanted is None)
    assert {name: name in modules for name in wanted or ()} == (wanted or {})


@each_tree
def test_peer_memory(tree: Path) -> None:
    paths, wanted = facts(tree)["rdma"]["peer_memory"], expected(tree)["peer_memory"]
    assert (paths is None) == (wanted is None)
    for version, is_found in (wanted or {}).items():
        assert bool(set(paths) & set(PEER_MEMORY[version])) == is_found, version


@each_tree
def test_device_files(tree: Path) -> None:
    assert facts(tree)["rdma"]["device_files"] == expected(tree)["uverbs_device_files"]


@each_tree
def test_memory_and_dev_shm(tree: Path) -> None:
    limits = facts(tree)["limits"]
    assert same({name: limits[name] for name in ("mem_total_kib", "dev_shm")}, expected(tree)["host"])


@each_tree
def test_a_port_whose_place_on_the_bus_is_told_has_the_bridges_above_it(tree: Path) -> None:
    bus = facts(tree)["pci"] or {"devices": []}
    listed = {one["address"] for one in bus["devices"]}
    for device in bus["devices"]:
        assert set(device["upstream"]) <= listed
        assert device["address"] not in device["upstream"]


@pytest.mark.parametrize("tree", mostly_further(TREES, 4), ids=lambda path: str(path.name))  # mark.further
def test_links_and_files_that_stand_for_links_are_read_alike(tree: Path, tmp_path: Path) -> None:
    copy = with_links(tree, tmp_path / tree.name)
    assert encode(read_recorded(copy)) == encode(read_recorded(tree))


@each_tree
def test_nothing_of_this_machine_is_in_it(tree: Path) -> None:
    recorded = read_recorded(tree)
    assert recorded.host == tree.name
    text = encode(recorded.facts).decode()
    assert f'"{socket.gethostname()}"' not in text
    assert platform.release() not in text
    assert str(tree.parent) not in text
