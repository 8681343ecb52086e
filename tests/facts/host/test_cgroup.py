"""Control groups as containers, batch systems and plain hosts have them, in trees made here."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.facts.host.cgroup import cpus_in, read_cgroup
from ncclcheck.facts.tree import machine
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Cgroup

V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
CONTROLLERS = "cpuset cpu io memory pids\n"


def tree(root: Path, groups: str, mounts: str, files: dict[str, str]) -> Cgroup | Missing:
    """The facts of a machine with these files below /sys/fs/cgroup."""
    for name, text in {"proc/self/cgroup": groups, "proc/self/mountinfo": mounts}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_cgroup(machine(root))


def group(prefix: str = "", **limits: str) -> dict[str, str]:
    """The files of a v2 group that is no root."""
    healthy = {
        "cgroup.controllers": CONTROLLERS,
        "cgroup.type": "domain\n",
        "cpu.max": "max 100000\n",
        "cpuset.cpus.effective": "0-95\n",
        "memory.max": "max\n",
        "pids.max": "max\n",
        "pids.current": "12\n",
    }
    healthy |= {name.replace("__", "."): text for name, text in limits.items()}
    return {f"{prefix}{name}": text for name, text in healthy.items()}


def test_a_container_with_v2_and_a_namespace_of_its_own(tmp_path: Path) -> None:
    files = group(cpu__max="250000 100000\n", memory__max="1073741824\n", pids__max="100\n")
    found = tree(tmp_path, "0::/\n", V2_MOUNT, files)
    assert found == Cgroup("v2", 2.5, 96, 1 << 30, 100, 88)


def test_the_tightest_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    root = {"cgroup.controllers": CONTROLLERS, "cpuset.cpus.effective": "0-127\n"}
    files = {
        **root,
        **group("slurm/", cpu__max="400000 100000\n", pids__max="50\n", pids__current="45\n"),
        **group("slurm/job_1/", cpu__max="800000 100000\n", cpuset__cpus__effective="0-7,64-71\n"),
    }
    found = tree(tmp_path, "0::/slurm/job_1\n", V2_MOUNT, files)
    assert found == Cgroup("v2", 4.0, 16, None, 50, 5)


def test_a_controller_that_is_not_handed_down_sets_no_limit(tmp_path: Path) -> None:
    files = {
        "cgroup.controllers": CONTROLLERS,
        "cpuset.cpus.effective": "0-3\n",
        "a/cgroup.controllers": "memory pids\n",
        "a/cgroup.type": "domain\n",
        "a/memory.max": "4096\n",
        "a/pids.max": "max\n",
        "a/pids.current": "1\n",
    }
    assert tree(tmp_path, "0::/a\n", V2_MOUNT, files) == Cgroup("v2", None, 4, 4096, None, None)


V1_MOUNTS = "".join(
    f"{number} 31 0:{number} {root} /sys/fs/cgroup/{names} rw - cgroup cgroup rw,{names}\n"
    for number, (names, root) in enumerate(
        [
            ("cpu,cpuacct", "/docker/ab"),
            ("cpuset", "/docker/ab"),
            ("memory", "/docker/ab"),
            ("pids", "/docker/ab"),
        ],
        32,
    )
)
V1_GROUPS = "5:cpu,cpuacct:/docker/ab\n4:cpuset:/docker/ab\n3:memory:/docker/ab\n2:pids:/docker/ab\n"
V1_FILES = {
    "cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
    "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    "cpuset/cpuset.cpus": "0,2\n",
    "memory/memory.limit_in_bytes": "9223372036854771712\n",
    "pids/pids.max": "64\n",
    "pids/pids.current": "60\n",
}


def test_a_container_with_v1_that_sees_the_hosts_paths(tmp_path: Path) -> None:
    assert tree(tmp_path, V1_GROUPS, V1_MOUNTS, V1_FILES) == Cgroup("v1", 1.5, 2, None, 64, 4)


def test_a_negative_quota_of_v1_is_none_and_its_root_has_no_pids_max(tmp_path: Path) -> None:
    mounts = V1_MOUNTS.replace("/docker/ab", "/")
    groups = V1_GROUPS.replace("/docker/ab", "/")
    files = {**V1_FILES, "cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "pids/release_agent": "\n"}
    del files["pids/pids.max"]
    assert tree(tmp_path, groups, mounts, files) == Cgroup("v1", None, 2, None, None, None)


def test_above_a_group_of_v1_is_its_root_which_has_no_pids_max(tmp_path: Path) -> None:
    mounts = V1_MOUNTS.replace("/docker/ab", "/")
    groups = V1_GROUPS.replace("/docker/ab", "/ab")
    files = {name.replace("/", "/ab/", 1): text for name, text in V1_FILES.items()}
    files |= {
        "cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "cpuset/cpuset.cpus": "0-7\n",
        "pids/release_agent": "\n",
    }
    files |= {"memory/memory.limit_in_bytes": "9223372036854771712\n"}
    assert tree(tmp_path, groups, mounts, files) == Cgroup("v1", 1.5, 2, None, 64, 4)


def test_v1_and_v2_side_by_side(tmp_path: Path) -> None:
    cpu = V1_MOUNTS.splitlines(keepends=True)[0].replace("/docker/ab", "/")
    files = {
        "cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        **group("unified/"),
    }
    mounts = cpu + V2_MOUNT.replace(" /sys/fs/cgroup ", " /sys/fs/cgroup/unified ")
    found = tree(tmp_path, "5:cpu,cpuacct:/\n0::/\n", mounts, files)
    assert found == Cgroup("hybrid", None, 96, None, None, None)


@pytest.mark.parametrize(
    ("file", "field"),
    [
        ("cpu.max", "cpu_quota"),
        ("cpuset.cpus.effective", "cpuset_cpus"),
        ("memory.max", "memory_max_bytes"),
        ("pids.max", "pids_max"),
        ("pids.current", "pids_left"),
    ],
)
@pytest.mark.parametrize("text", [None, "", "many\n", "-\n"])
def test_a_file_that_is_gone_or_damaged_is_missing_and_never_no_limit(
    tmp_path: Path, file: str, field: str, text: str | None
) -> None:
    files = group(pids__max="100\n")
    if text is None:
        del files[file]
    else:
        files[file] = text
    found = tree(tmp_path, "0::/\n", V2_MOUNT, files)
    assert isinstance(found, Cgroup)
    assert isinstance(getattr(found, field), Missing)


@pytest.mark.parametrize("gone", ["proc/self/cgroup", "proc/self/mountinfo"])
def test_without_the_files_of_the_process_nothing_is_known(tmp_path: Path, gone: str) -> None:
    tree(tmp_path, "0::/\n", V2_MOUNT, group())
    (tmp_path / gone).unlink()
    assert isinstance(read_cgroup(machine(tmp_path)), Missing)


def test_a_group_that_is_not_there_is_missing(tmp_path: Path) -> None:
    found = tree(tmp_path, "0::/gone\n", V2_MOUNT, group())
    assert isinstance(found, Cgroup)
    assert isinstance(found.cpu_quota, Missing)


def test_an_unmounted_hierarchy_is_missing(tmp_path: Path) -> None:
    assert isinstance(tree(tmp_path, "0::/\n", "", {}), Missing)


def test_a_list_of_cpus() -> None:
    assert cpus_in("0-3,8,10-11") == 7
    for text in ("", "a", "1-", "0-3,"):
        assert isinstance(cpus_in(text), Missing)
