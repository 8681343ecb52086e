"""Which mount holds a path."""

from __future__ import annotations

from ncclcheck.facts.storage.mounts import MountPoint, mount_at, mount_in
from ncclcheck.model.fact import Missing

MOUNTS = (
    "23 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "40 23 0:50 / /mnt rw shared:1 - nfs4 server:/export rw,vers=4.2\n"
    "41 40 0:51 / /mnt/a\\040b rw - fuse.s3 https://key:secret@bucket.example/x rw\n"
    "broken\n"
)


def test_the_deepest_mount_above_the_path_holds_it() -> None:
    assert mount_in(MOUNTS, "/mnt/data") == MountPoint("nfs4", "server:/export")
    assert mount_in(MOUNTS, "/mntx") == MountPoint("ext4", "/dev/sda1")
    assert mount_in(MOUNTS + "42 23 0:9 / /mnt rw - tmpfs tmpfs rw\n", "/mnt") == MountPoint("tmpfs", "tmpfs")


def test_what_comes_before_a_host_is_not_told() -> None:
    assert mount_in(MOUNTS, "/mnt/a b/c") == MountPoint("fuse.s3", "https://bucket.example/x")


def test_without_mounts_it_is_missing() -> None:
    assert isinstance(mount_in("", "/mnt"), Missing)
    assert isinstance(mount_at("/proc/self"), MountPoint)
