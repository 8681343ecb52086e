"""A recorded tree gives the facts of the machine it was recorded from, without what would name it."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ncclcheck.facts.recorded import read_recorded
from ncclcheck.model.codec import encode
from scripts.recording.recording import record
from scripts.recording.recording_tree import Recording, write_folder
from scripts.recording.redaction import Redaction
from tests.fact_builders import some
from tests.facts.test_recorded_trees import TREES
from tests.facts.trees import GPU, HCA, IPV4, ROOT_PORT, SWITCH, Tree
from tests.further import mostly_further

KEY = b"of these tests"
SCRIPT = Path(__file__).parents[2] / "scripts" / "record"


def facts_of(tree: Path, redaction: Redaction | None = None) -> Any:
    """What a tree tells, null where it tells nothing; redacted as the recording of it would be."""

    def known(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return None if "missing" in value else {key: known(one, key) for key, one in value.items()}
        if isinstance(value, list):
            return [known(one, name) for one in value]
        if redaction is not None and isinstance(value, str):
            if name in ("gid", "node_guid"):
                return redaction.gid(value) if name == "gid" else redaction.guid(value)
            if name == "hostname":
                return redaction.host(value)
        return value

    document = known(json.loads(encode(read_recorded(tree).facts)))
    return {key: one for key, one in document.items() if key != "environment"}


def made(tmp_path: Path) -> Tree:
    """A machine with a bridge, a GPU, an RDMA card with its interface, names and settings."""
    tree = Tree(tmp_path / "machine")
    tree.pci("pci0000:15", ROOT_PORT, "0x060400")
    tree.pci(f"pci0000:15/{ROOT_PORT}", "0000:16:00.0", "0x060400", config=bytes(64))
    tree.driver(tree.pci(SWITCH, GPU, "0x030200", vendor="0x10de"), "nvidia")
    card = tree.pci(SWITCH, HCA, "0x020700", current_link_speed="32.0 GT/s PCIe", current_link_width="16")
    tree.driver(card, "mlx5_core")
    tree.files(
        f"sys/devices/{card}/infiniband/mlx5_0", {"node_guid": "a088:c203:0010:0020", "fw_ver": "28.1"}
    )
    port = f"sys/devices/{card}/infiniband/mlx5_0/ports/1"
    tree.files(
        port, {"link_layer": "Ethernet", "state": "4: ACTIVE", "rate": "400 Gb/sec (4X NDR)", "lid": "0x0"}
    )
    tree.files(f"{port}/gids", {"0": IPV4, "1": "0000:0000:0000:0000:0000:0000:0000:0000"})
    tree.files(f"{port}/gid_attrs/types", {"0": "RoCE v2"})
    tree.files(f"{port}/gid_attrs/ndevs", {"0": "eth2"})
    tree.files(f"{port}/counters", {"symbol_error": "3"})
    tree.link(f"sys/devices/{card}/infiniband/mlx5_0/device", f"sys/devices/{card}")
    tree.link("sys/class/infiniband/mlx5_0", f"sys/devices/{card}/infiniband/mlx5_0")
    tree.files(
        f"sys/devices/{card}/net/eth2", {"type": "1", "mtu": "9000", "flags": "0x1003", "ifindex": "3"}
    )
    tree.files(f"sys/devices/{card}/net/eth2", {"operstate": "up", "uevent": "INTERFACE=eth2\nIFINDEX=3"})
    tree.link(f"sys/devices/{card}/net/eth2/device", f"sys/devices/{card}")
    tree.link("sys/class/net/eth2", f"sys/devices/{card}/net/eth2")
    tree.files("dev/infiniband", {"uverbs0": b""})
    tree.files("sys/module/nvidia_peermem", {"version": "570.1"})
    tree.files("proc", {"modules": "mlx5_core 1 0 - Live 0xffffffffc0a4d000", "meminfo": "MemTotal: 99 kB"})
    tree.files(
        "proc", {"mounts": "tmpfs /dev/shm tmpfs rw,size=64k 0 0\n10.9.8.7:/home/alice /home nfs rw 0 0"}
    )
    tree.files("proc/self", {
        "limits": "Max locked memory         8388608              unlimited            bytes",
        "status": "Name:\talice\nCapEff:\t0000000000004000\nCpus_allowed_list:\t0-7",
    })  # fmt: skip
    tree.files("proc/sys/kernel", {"hostname": "alpha.example.org", "osrelease": "6.8.0"})
    tree.files("etc", {"nccl.conf": "NCCL_COMM_ID=10.100.0.11:1234\nNCCL_API_TOKEN=x", "hostname": "alpha"})
    return tree


def written(tmp_path: Path, source: Path, **environ: str) -> Path:
    out = tmp_path / "out"
    recording = record(source, KEY, environ)
    assert recording.left_out == []
    write_folder(recording, out)
    return out


def test_the_facts_stay_and_the_names_go(tmp_path: Path) -> None:
    tree = made(tmp_path)
    out = written(tmp_path, tree.root)
    facts = facts_of(out)
    expected = facts_of(tree.root, Redaction(KEY))
    expected["nccl"] = facts["nccl"]
    assert facts == expected
    assert facts["rdma"]["ports"][0]["pci"] == HCA
    assert (facts["limits"]["memlock_kib"], facts["limits"]["cpus"]) == (8192, 8)
    said = b"".join(path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file())
    for secret in (
        b"alpha",
        b"example.org",
        b"alice",
        b"10.9.8.7",
        b"10.100.0.11",
        b"0010:0020",
        b"TOKEN",
        b"c0a4",
    ):
        assert secret not in said, secret


def test_settings_and_environment_are_those_that_the_program_lets_out(tmp_path: Path) -> None:
    environ = {"NCCL_DEBUG": "INFO", "NCCL_COMM_ID": "10.100.0.12:1", "API_TOKEN": "x", "USER": "alice"}
    out = written(tmp_path, made(tmp_path).root, **environ)
    facts = read_recorded(out).facts
    settings = some(some(facts.nccl).config_files[0].settings)
    environment = some(facts.environment)
    assert environment["NCCL_DEBUG"] == "INFO"
    assert set(environment) == {"NCCL_DEBUG", "NCCL_COMM_ID"}
    told = [ipaddress.ip_address(one["NCCL_COMM_ID"].split(":")[0]) for one in (settings, environment)]
    assert ipaddress.ip_address("10.100.0.11") not in told
    assert told[0] != told[1]
    assert int(told[0]) >> 3 == int(told[1]) >> 3  # 10.100.0.11 and .12 are both in 10.100.0.8/29


@pytest.mark.skipif(not TREES, reason="no recorded machines")
@pytest.mark.parametrize("source", mostly_further(TREES, 5), ids=lambda path: str(path.name))  # mark.further
def test_recorded_machines_record_the_same_again(tmp_path: Path, source: Path) -> None:
    facts, expected = facts_of(written(tmp_path, source)), facts_of(source, Redaction(KEY))
    for section in ("interfaces", "rdma", "pci", "gpus", "kernel", "limits", "rdma_counters"):
        assert facts[section] == expected[section], section


def test_this_machine_is_recorded_by_the_script_and_nothing_else_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(out)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    here, there = facts_of(Path("/"), Redaction(KEY)), facts_of(out)
    for section in ("pci", "rdma", "gpus"):
        assert there[section] == here[section]
    assert {interface["name"] for interface in there["interfaces"]} == {
        interface["name"] for interface in here["interfaces"]
    }
    assert there["kernel"] == here["kernel"]
    groups = [one["limits"]["cgroup"] or {} for one in (here, there)]
    assert [{**group, "pids_left": None} for group in groups] == [{**groups[0], "pids_left": None}] * 2
    again = subprocess.run(
        [sys.executable, str(SCRIPT), str(out)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (again.returncode, "is not empty" in again.stderr) == (2, True)


def test_links_that_lead_out_of_the_machine_are_not_followed(tmp_path: Path) -> None:
    tree = made(tmp_path)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "mtu").write_text("1500\n")
    (tree.root / "sys/class/net/evil").symlink_to(secret)
    out = written(tmp_path, tree.root)
    assert not (out / "sys/class/net/evil").exists()


def test_a_part_that_does_not_end_is_left_out_and_said(tmp_path: Path) -> None:
    tree = made(tmp_path)
    pipe = tree.root / "proc" / "cpuinfo"
    os.mkfifo(pipe)  # what is no file is not opened at all
    assert record(tree.root, KEY, {}).left_out == []
    late = record(tree.root, KEY, {}, deadline_s=0.0)
    assert all("timeout" in why for why in late.left_out)


def test_two_recordings_under_one_key_agree_and_under_two_they_do_not(tmp_path: Path) -> None:
    source, threads_before = made(tmp_path).root, threading.active_count()
    told = [
        read_recorded(_folder(record(source, key, {}), tmp_path / name)).host
        for name, key in (("a", KEY), ("b", KEY), ("c", b"other"))
    ]
    assert told[0] == told[1] != told[2]
    assert threading.active_count() - threads_before < 50


def _folder(recording: Recording, out: Path) -> Path:
    write_folder(recording, out)
    return out


def test_a_python_without_the_dependencies_is_told_which_one_to_use(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-S", str(SCRIPT), str(tmp_path / "out")],  # -S: without site-packages
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1
    assert f"is not installed for {sys.executable}" in ran.stderr
    assert ".venv/bin/python scripts/record OUT" in ran.stderr
    assert not (tmp_path / "out").exists()
