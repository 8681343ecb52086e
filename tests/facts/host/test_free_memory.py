"""What may be taken is the least that the machine and every control group above this process leave."""

from __future__ import annotations

from pathlib import Path

import psutil

from ncclcheck.facts.host.free_memory import free_bytes


def tree(root: Path, *limits: tuple[str, str, str]) -> tuple[Path, Path]:
    """A /proc and a /sys/fs/cgroup where this process is in /slice/job; `limits`: group, memory.max, memory.current."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text("0::/slice/job\n")
    for group, most, used in limits:
        folder = root / "cgroup" / group
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.max").write_text(most + "\n")
        (folder / "memory.current").write_text(used + "\n")
    return root / "proc", root / "cgroup"


def test_the_narrowest_group_counts(tmp_path: Path) -> None:
    places = tree(tmp_path, ("slice/job", "max", "500"), ("slice", "3000", "1000"))
    assert free_bytes(*places) == 2000


def test_a_full_group_leaves_nothing(tmp_path: Path) -> None:
    assert free_bytes(*tree(tmp_path, ("slice/job", "3000", "4000"))) == 0


def test_without_control_groups_it_is_what_the_machine_has(tmp_path: Path) -> None:
    assert 0 < free_bytes(tmp_path, tmp_path) <= psutil.virtual_memory().total


def test_files_that_the_kernel_can_drop_do_not_count_as_used(tmp_path: Path) -> None:
    places = tree(tmp_path, ("slice/job", "3000", "2900"))
    (tmp_path / "cgroup/slice/job/memory.stat").write_text("anon 100\ninactive_file 2500\n")
    assert free_bytes(*places) == 2600


def test_groups_of_the_first_version_count_too(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("9:name=systemd:/\n4:cpu,cpuacct:/other\n3:memory:/job/1\n")
    folder = tmp_path / "cgroup/memory/job"
    (folder / "1").mkdir(parents=True)
    (folder / "1/memory.limit_in_bytes").write_text("9223372036854771712\n")
    (folder / "1/memory.usage_in_bytes").write_text("4096\n")
    (folder / "memory.limit_in_bytes").write_text("10000\n")
    (folder / "memory.usage_in_bytes").write_text("4000\n")
    (folder / "memory.stat").write_text("cache 3000\ntotal_inactive_file 1000\n")
    assert free_bytes(tmp_path / "proc", tmp_path / "cgroup") == 7000
