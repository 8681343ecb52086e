"""The control groups of a recorded machine keep their limits and lose their names."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.facts.host.cgroup import read_cgroup
from ncclcheck.facts.tree import machine
from scripts.recording.recording_cgroups import record_cgroups
from scripts.recording.recording_tree import Recording, write_folder
from scripts.recording.redaction import Redaction
from tests.fact_builders import some
from tests.facts.trees import Tree
from tests.recording.test_recording import KEY

BELOW = {"cgroup.controllers": "cpu memory pids cpuset", "cgroup.type": "domain", "pids.current": "4"}


def test_limits_of_v2_stay_and_names_of_users_and_jobs_go(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "machine")
    tree.files("proc/self", {
        "cgroup": "0::/kubepods/alice job/task\n",
        "mountinfo": "25 20 0:26 /kubepods/alice\\040job /sys/fs/cgroup ro shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
        "30 20 0:40 / /home/alice rw - nfs 10.9.8.7:/home/alice rw,addr=10.9.8.7",
    })  # fmt: skip
    tree.files("sys/fs/cgroup", {**BELOW, "cpu.max": "350000 100000", "memory.max": "3221225472"})
    tree.files("sys/fs/cgroup", {"cpuset.cpus.effective": "0-3", "pids.max": "64", "memory.stat": "anon 1"})
    tree.files(
        "sys/fs/cgroup/task", {**BELOW, "cpu.max": "max 100000", "memory.max": "max", "pids.max": "max"}
    )
    tree.files("sys/fs/cgroup/task", {"cpuset.cpus.effective": "0-3"})
    out = recorded(tmp_path, tree.root)
    groups = some(read_cgroup(machine(out)))
    assert groups == read_cgroup(machine(tree.root))
    assert (groups.cpu_quota, groups.pids_left) == (3.5, 60)
    said = b"".join(path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file())
    said += "".join(map(str, out.rglob("*"))).encode()
    for secret in (b"alice", b"kubepods", b"10.9.8.7", b"anon"):
        assert secret not in said, secret


def test_limits_of_v1_stay(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "machine")
    mounts = (
        f"3{place} 31 0:3{place} / /sys/fs/cgroup/{name} rw - cgroup cgroup rw,{name}"
        for place, name in enumerate(("cpu", "pids"))
    )
    tree.files("proc/self", {"cgroup": "2:cpu:/alice\n1:pids:/alice", "mountinfo": "\n".join(mounts)})
    tree.files("sys/fs/cgroup/cpu", {"release_agent": "/home/alice/agent"})
    tree.files("sys/fs/cgroup/cpu/alice", {"cpu.cfs_quota_us": "250000", "cpu.cfs_period_us": "100000"})
    tree.files("sys/fs/cgroup/pids", {"release_agent": ""})
    tree.files("sys/fs/cgroup/pids/alice", {"pids.max": "100", "pids.current": "40"})
    out = recorded(tmp_path, tree.root)
    groups = some(read_cgroup(machine(out)))
    assert groups == read_cgroup(machine(tree.root))
    assert (groups.cpu_quota, groups.pids_left) == (2.5, 60)
    assert "alice" not in "".join(path.read_text() for path in out.rglob("*") if path.is_file())


def recorded(tmp_path: Path, source: Path) -> Path:
    recording = Recording(source, Redaction(KEY))
    record_cgroups(recording)
    write_folder(recording, tmp_path / "out")
    return tmp_path / "out"
