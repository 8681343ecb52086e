"""Limits are those of this process and this host."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import psutil

from ncclcheck.facts.limits import filesystem_type, read_limits
from ncclcheck.model.codec import decode
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import DevShm, Limits


def test_the_numbers_are_those_the_system_gives() -> None:
    limits = read_limits()
    assert limits.mem_total_kib == psutil.virtual_memory().total // 1024
    assert limits.nofile == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert limits.cpus == len(os.sched_getaffinity(0))
    assert isinstance(limits.port_range, tuple)
    assert 0 < limits.port_range[0] < limits.port_range[1] < 65536
    assert isinstance(limits.dev_shm, DevShm | Missing)


def test_an_unlimited_limit_is_null_and_a_set_one_is_in_its_unit() -> None:
    program = (
        "import resource, sys\n"
        "from ncclcheck.facts.limits import read_limits\n"
        "from ncclcheck.model.codec import encode\n"
        "resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (123, 4096))\n"
        "sys.stdout.buffer.write(encode(read_limits()))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, timeout=30, check=True
    )
    limits = decode(done.stdout, Limits)
    assert (limits.memlock_kib, limits.nofile) == (64, 123)


def test_the_deepest_mount_decides_and_the_last_one_at_a_place() -> None:
    mounts = "overlay / overlay rw 0 0\nudev /dev devtmpfs rw 0 0\nshm /dev/shm tmpfs rw 0 0\n"
    assert filesystem_type(mounts, "/dev/shm") == "tmpfs"
    assert filesystem_type(mounts, "/dev/shmem") == "devtmpfs"
    assert filesystem_type(mounts + "x /dev/shm ext4 rw 0 0\n", "/dev/shm") == "ext4"
    assert filesystem_type("overlay / overlay rw 0 0\n", "/dev/shm") == "overlay"
    assert isinstance(filesystem_type("", "/dev/shm"), Missing)
