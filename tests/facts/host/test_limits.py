"""Limits are those of this process and this host."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import psutil

from ncclcheck.facts.host.limits import (
    Mount,
    effective_capabilities,
    mem_total_kib,
    mount_of,
    port_range,
    read_limits,
    size_option_kib,
)
from ncclcheck.model.codec import decode
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Cgroup, DevShm, Limits


def test_the_numbers_are_those_the_system_gives() -> None:
    limits = read_limits()
    assert limits.mem_total_kib == psutil.virtual_memory().total // 1024
    assert limits.nofile == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert limits.cpus == len(os.sched_getaffinity(0))
    assert isinstance(limits.port_range, tuple)
    assert 0 < limits.port_range[0] < limits.port_range[1] < 65536
    assert isinstance(limits.dev_shm, DevShm | Missing)
    assert limits.nofile_hard == resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert isinstance(limits.cgroup, Cgroup | Missing)
    assert isinstance(limits.namespaces, dict)
    assert f"net:[{limits.namespaces['net']}]" == str(Path("/proc/self/ns/net").readlink())


def test_capabilities_are_the_effective_ones() -> None:
    assert effective_capabilities("CapPrm:\t00\nCapEff:\t0000000000004000\n") == ("ipc_lock",)
    assert effective_capabilities("CapEff:\t0000000000800000\n") == ("sys_nice",)
    assert effective_capabilities("CapEff:\t0000000000000000\n") == ()
    for damaged in ("", "CapEff:\tmany\n", "CapPrm:\t00\n"):
        assert isinstance(effective_capabilities(damaged), Missing)


def test_an_unlimited_limit_is_null_and_a_set_one_is_in_its_unit() -> None:
    program = (
        "import resource, sys\n"
        "from ncclcheck.facts.host.limits import read_limits\n"
        "from ncclcheck.model.codec import encode\n"
        "resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (123, 4096))\n"
        "sys.stdout.buffer.write(encode(read_limits()))"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, timeout=30, check=True
    )
    limits = decode(done.stdout, Limits)
    assert (limits.memlock_kib, limits.nofile) == (64, 123)


def test_the_deepest_mount_decides_and_the_last_one_at_a_place() -> None:
    mounts = (
        "overlay / overlay rw 0 0\nudev /dev devtmpfs rw 0 0\nbroken\nshm /dev/shm tmpfs rw,size=64k 0 0\n"
    )
    assert mount_of(mounts, "/dev/shm") == Mount("tmpfs", "rw,size=64k")
    assert mount_of(mounts, "/dev/shmem") == Mount("devtmpfs", "rw")
    assert mount_of(mounts + "x /dev/shm ext4 rw 0 0\n", "/dev/shm") == Mount("ext4", "rw")
    assert mount_of("overlay / overlay rw 0 0\n", "/dev/shm") == Mount("overlay", "rw")
    assert isinstance(mount_of("", "/dev/shm"), Missing)


def test_a_size_is_read_in_the_units_of_tmpfs_or_not_at_all() -> None:
    for option in ("size=65536k", "size=64m", "size=67108864"):
        assert size_option_kib(f"rw,nosuid,{option},inode64") == 65536
    assert size_option_kib("size=2G") == 2 << 20
    for options in (
        "rw",
        "rw,size=",
        "rw,size=50%",
        "rw,maxsize=1k",
        "rw,size=-1k",
        "rw,size=" + "9" * 50 + "k",
    ):
        assert isinstance(size_option_kib(options), Missing)


def test_what_is_no_number_is_missing() -> None:
    assert mem_total_kib("MemFree: 1 kB\nMemTotal:       2113412000 kB\n") == 2113412000
    assert port_range("32768\t60999") == (32768, 60999)
    for text in ("", "MemTotal: many kB\n", "MemTotal: 12\n", "MemTotal: -5 kB\n"):
        assert isinstance(mem_total_kib(text), Missing)
    for text in ("", "1", "1 2 3", "low high"):
        assert isinstance(port_range(text), Missing)
