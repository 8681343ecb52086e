"""A recorded machine as a whole: what it tells, what it cannot tell, and what a hostile one cannot do."""

from __future__ import annotations

import os
import platform
import socket
import time
from pathlib import Path

import pytest

from ncclcheck.facts.recorded import read_recorded
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Cgroup, DevShm, Interface, NcclConfigFile, NodeFacts
from tests.facts.trees import GPU, HCA, Tree, roce_machine

SHM = "sysfs /sys sysfs rw 0 0\ntmpfs /dev/shm tmpfs rw,nosuid,nodev,size=65536k,inode64 0 0"
_NOT_IN_A_TREE = {"launch", "routes", "environment", "software", "code", "master"}


def interfaces(root: Path) -> dict[str, Interface]:
    found = read_recorded(root).facts.interfaces
    assert not isinstance(found, Missing)
    return {interface.name: interface for interface in found}


def test_a_whole_machine(tmp_path: Path) -> None:
    tree = roce_machine(tmp_path)
    tree.files("proc", {"meminfo": "MemTotal:       2113412000 kB\nMemFree: 1 kB", "mounts": SHM})
    tree.files("proc/sys/kernel", {"hostname": "gpu-17"})
    recorded = read_recorded(tmp_path)
    facts = recorded.facts
    assert recorded.host == "gpu-17"
    assert not isinstance(facts.interfaces, Missing)
    assert [
        (interface.index, interface.name, interface.kind, interface.mtu, interface.running)
        for interface in facts.interfaces
    ] == [
        (1, "lo", "loopback", 65536, True),
        (3, "ens24np0", "physical", 9000, True),
        (7, "ens24np0.100", "vlan", 9000, True),
    ]
    card, vlan = facts.interfaces[1:]
    assert (card.pci, card.driver, card.speed_mbps, card.addresses) == (HCA, "mlx5_core", 400_000, ())
    assert card.flags == ("up", "broadcast", "multicast", "running")
    assert vlan.lower == ("ens24np0",)
    assert isinstance(vlan.pci, Missing)
    assert not isinstance(facts.gpus, Missing)
    assert [(gpu.index, gpu.pci) for gpu in facts.gpus] == [(0, GPU)]
    assert isinstance(facts.gpus[0].name, Missing)
    assert not isinstance(facts.limits, Missing)
    assert facts.limits.mem_total_kib == 2113412000
    assert facts.limits.dev_shm == DevShm("tmpfs", 65536)
    assert isinstance(facts.limits.nofile, Missing)
    assert decode(encode(facts), NodeFacts) == facts


LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max processes             4096                 unlimited            processes
Max open files            1024                 1048576              files
Max locked memory         67108864             unlimited            bytes"""


def test_the_limits_of_the_process_that_was_recorded(tmp_path: Path) -> None:
    tree = roce_machine(tmp_path)
    tree.files("proc/self", {
        "limits": LIMITS,
        "status": "Name:\tbash\nCapEff:\t0000000000004000\nCpus_allowed_list:\t0-3,8",
        "cgroup": "0::/user.slice/job",
        "mountinfo": "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
    })  # fmt: skip
    for group, files in {
        "sys/fs/cgroup": {"cgroup.controllers": "cpu memory pids cpuset"},
        "sys/fs/cgroup/user.slice": {"memory.max": "max", "cpu.max": "150000 100000", "pids.max": "max"},
        "sys/fs/cgroup/user.slice/job": {
            "memory.max": "3221225472",
            "cpu.max": "max 100000",
            "pids.max": "64",
        },
    }.items():
        below = {"cgroup.controllers": "cpu memory pids cpuset", "cgroup.type": "domain", "pids.current": "4"}
        tree.files(group, {**(below if group != "sys/fs/cgroup" else {}), **files})
        if group != "sys/fs/cgroup":
            tree.files(group, {"cpuset.cpus.effective": "0-3"})
    tree.files("sys/fs/cgroup", {"cpuset.cpus.effective": "0-63"})
    limits = read_recorded(tmp_path).facts.limits
    assert not isinstance(limits, Missing)
    assert (limits.nofile, limits.nofile_hard, limits.nproc) == (1024, 1048576, 4096)
    assert (limits.memlock_kib, limits.cpus, limits.capabilities) == (65536, 5, ("ipc_lock",))
    assert limits.cgroup == Cgroup("v2", 1.5, 4, 3221225472, 64, 60)
    tree.files("proc/self", {"limits": LIMITS.replace("67108864  ", "unlimited ").replace("1024 ", "many ")})
    limits = read_recorded(tmp_path).facts.limits
    assert not isinstance(limits, Missing)
    assert (limits.memlock_kib, isinstance(limits.nofile, Missing)) == (None, True)


def test_what_only_a_running_machine_tells_is_missing(tmp_path: Path) -> None:
    facts = read_recorded(roce_machine(tmp_path).root).facts
    assert all(isinstance(getattr(facts, name), Missing) for name in _NOT_IN_A_TREE)
    assert not isinstance(facts.rdma, Missing)
    assert isinstance(facts.rdma.unusable_files, Missing)
    assert isinstance(facts.rdma.verbs_library, Missing)


def test_an_empty_folder_is_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    root = tmp_path / "node42"
    root.mkdir()
    recorded = read_recorded(root)
    assert recorded.host == "node42"
    for section in ("interfaces", "pci", "gpus", "names", "nccl"):
        assert isinstance(getattr(recorded.facts, section), Missing)
    text = encode(recorded.facts).decode()
    for own in (f'"{socket.gethostname()}"', platform.release(), str(tmp_path)):
        assert own not in text


@pytest.mark.parametrize(
    ("files", "host"),
    [
        ({"etc/hostname": "etc-name"}, "etc-name"),
        ({"etc/hostname": "etc-name", "proc/sys/kernel/hostname": "kernel-name"}, "kernel-name"),
        ({"etc/hostname": "\x1b[31mred\x07"}, "[31mred"),
        ({"etc/hostname": "one\ntwo"}, "one"),
        ({"etc/hostname": b"\xff\xfe\0\0"}, "\ufffd\ufffd"),
        ({"etc/hostname": b"\x01\x02"}, "root"),
        ({"etc/hostname": ""}, "root"),
    ],
)
def test_the_host_is_named_as_the_tree_says_or_after_its_folder(
    tmp_path: Path, files: dict[str, str | bytes], host: str
) -> None:
    Tree(tmp_path / "root").files("", files)
    assert read_recorded(tmp_path / "root").host == host


@pytest.mark.parametrize(
    ("flags", "operstate", "running"),
    [
        ("0x1003", "up", True),
        ("0x1003", "unknown", True),
        ("0x1003", "dormant", False),
        ("0x1003", "lowerlayerdown", False),
        ("0x1002", "up", False),
        ("Invalid argument", "up", False),
    ],
)
def test_running_is_no_flag_of_the_file_but_follows_from_the_state(
    tmp_path: Path, flags: str, operstate: str, running: bool
) -> None:
    Tree(tmp_path).interface("eth0", 2, flags=flags, operstate=operstate)
    eth0 = interfaces(tmp_path)["eth0"]
    assert eth0.running is running
    assert ("running" in eth0.flags) is running


def test_what_an_interface_does_not_tell_is_missing(tmp_path: Path) -> None:
    Tree(tmp_path).files("sys/class/net/eth0", {"address": "00:11:22:33:44:55"})
    eth0 = interfaces(tmp_path)["eth0"]
    for fact in (eth0.type, eth0.mtu, eth0.operstate, eth0.speed_mbps, eth0.pci, eth0.driver):
        assert isinstance(fact, Missing)
    assert (eth0.index, eth0.running, eth0.flags) == (0, False, ())


def test_interfaces_are_in_the_order_of_their_indexes_and_those_without_come_last(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for name, index in (("a", 10), ("b", 9), ("c", 2)):
        tree.interface(name, index)
    tree.files("sys/class/net", {"eth10/mtu": "1500", "eth9/mtu": "1500", "bonding_masters": "bond0"})
    assert list(interfaces(tmp_path)) == ["c", "b", "a", "eth9", "eth10"]


@pytest.mark.parametrize(
    ("mounts", "shm"),
    [
        (SHM, DevShm("tmpfs", 65536)),
        ("tmpfs /dev/shm tmpfs rw 0 0", "tmpfs"),
        ("udev /dev devtmpfs rw,size=62640356k 0 0", DevShm("devtmpfs", 62640356)),
        ("overlay / overlay rw 0 0", "overlay"),
        ("broken", None),
    ],
)
def test_dev_shm_is_what_the_mounts_say(tmp_path: Path, mounts: str, shm: DevShm | str | None) -> None:
    Tree(tmp_path).files("proc", {"mounts": mounts})
    limits = read_recorded(tmp_path).facts.limits
    assert not isinstance(limits, Missing)
    if isinstance(shm, DevShm):
        assert limits.dev_shm == shm
    elif shm is None:
        assert isinstance(limits.dev_shm, Missing)
    else:
        assert isinstance(limits.dev_shm, DevShm)
        assert limits.dev_shm.type == shm
        assert isinstance(limits.dev_shm.size_kib, Missing)


def test_mounts_may_be_a_link_to_those_of_a_process(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.files("proc/4711", {"mounts": SHM})
    (tmp_path / "proc/self").symlink_to("4711")
    limits = read_recorded(tmp_path).facts.limits
    assert not isinstance(limits, Missing)
    assert limits.dev_shm == DevShm("tmpfs", 65536)


def test_the_machines_own_nccl_settings_are_read_and_its_secrets_are_not(tmp_path: Path) -> None:
    Tree(tmp_path).files("etc", {"nccl.conf": "NCCL_IB_HCA=mlx5_0\nMY_TOKEN=hunter2\nNCCL_IB_HCA=mlx5_1"})
    nccl = read_recorded(tmp_path).facts.nccl
    assert not isinstance(nccl, Missing)
    assert nccl.config_files == (NcclConfigFile("/etc/nccl.conf", {"NCCL_IB_HCA": "mlx5_0"}),)
    assert isinstance(nccl.asked, Missing)


def test_a_hostile_tree_neither_hangs_nor_leaks(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    Tree(secret).files("", {"hunter2": "hunter2", "mtu": "31337", "ibdev": "hunter2", "version": "hunter2"})
    root = tmp_path / "root"
    tree = roce_machine(root)
    for place in ("sys/class/net/stolen", "sys/class/infiniband/stolen", "sys/module/stolen", "etc"):
        (root / place).symlink_to("../" * place.count("/") + "../secret")
    (root / "sys/class/infiniband_verbs/uverbs9").symlink_to(secret)
    (root / "proc/modules").unlink()
    (root / "proc/modules").symlink_to("../../secret/hunter2")
    for place in ("proc/mounts", "proc/meminfo", "sys/class/net/pipe", "dev/infiniband/uverbs1"):
        os.mkfifo(root / place)
    tree.files("sys/class/net/pipes", {"x": "1"})
    for name in ("mtu", "operstate", "flags", "type", "ifindex", "speed", "uevent"):
        os.mkfifo(root / "sys/class/net/pipes" / name)
    (root / "proc/version").mkdir()
    (root / "sys/class/net/zero").symlink_to("/dev/zero")
    with (root / "sys/devices/virtual/net/lo/mtu").open("wb") as file:
        file.truncate(1 << 40)
    began = time.monotonic()
    facts = read_recorded(root).facts
    assert time.monotonic() - began < 10
    text = encode(facts).decode()
    assert "hunter2" not in text
    assert "31337" not in text
    told = interfaces(root)
    assert set(told) == {"lo", "ens24np0", "ens24np0.100", "pipes"}
    assert isinstance(told["pipes"].mtu, Missing)
    assert isinstance(told["lo"].mtu, Missing)
    assert not isinstance(facts.rdma, Missing)
    assert facts.rdma.device_files == ("uverbs0", "uverbs1")


def test_the_root_may_be_a_link_and_has_to_be_a_folder(tmp_path: Path) -> None:
    roce_machine(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    assert encode(read_recorded(tmp_path / "link")) == encode(read_recorded(tmp_path / "real"))
    with pytest.raises(OSError, match="directory"):
        read_recorded(tmp_path / "nothing")
