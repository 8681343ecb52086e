"""Modules, release and the kind of NVIDIA module, each on its own."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from ncclcheck.facts.host.kernel import read_kernel
from ncclcheck.model.fact import Missing
from tests.facts.trees import Tree


def test_modules_are_those_loaded_and_those_built_in(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.files("proc", {"modules": "nvidia-uvm 1 0 - Live 0x0\nmlx5_core 2 1 mlx5_ib, Live 0x0\n"})
    tree.files("sys/module/ib_core/parameters", {"x": "1"})
    assert read_kernel(tmp_path).modules == ("ib_core", "mlx5_core", "nvidia_uvm")


def test_either_source_is_enough_and_none_is_missing(tmp_path: Path) -> None:
    assert isinstance(read_kernel(tmp_path).modules, Missing)
    tree = Tree(tmp_path)
    tree.files("proc", {"modules": b""})
    assert read_kernel(tmp_path).modules == ()
    (tmp_path / "proc/modules").unlink()
    (tmp_path / "sys/module/efa").mkdir(parents=True)
    assert read_kernel(tmp_path).modules == ("efa",)


def test_the_release_is_in_either_of_two_files(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert isinstance(read_kernel(tmp_path).release, Missing)
    tree.files("proc", {"version": "Linux version 6.8.0-45-generic (buildd@host) (gcc) #45 SMP"})
    assert read_kernel(tmp_path).release == "6.8.0-45-generic"
    tree.files("proc/sys/kernel", {"osrelease": "5.15.0"})
    assert read_kernel(tmp_path).release == "5.15.0"


@pytest.mark.parametrize(
    ("words", "is_open"),
    [
        ("NVIDIA UNIX Open Kernel Module for x86_64  555.42.02  Release Build", True),
        ("NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023", False),
    ],
)
def test_the_open_module_says_so(tmp_path: Path, words: str, is_open: bool) -> None:
    assert isinstance(read_kernel(tmp_path).nvidia_open, Missing)
    Tree(tmp_path).files("proc/driver/nvidia", {"version": f"NVRM version: {words}\nGCC version: gcc 11.4.0"})
    assert read_kernel(tmp_path).nvidia_open is is_open


def test_the_cpu_of_a_virtual_machine_says_that_a_hypervisor_runs_it(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert isinstance(read_kernel(tmp_path).virtual_machine, Missing)
    tree.files("proc", {"cpuinfo": "model name\t: Xeon\nflags\t\t: fpu sse2 hypervisor lm\n"})
    assert read_kernel(tmp_path).virtual_machine is True
    tree.files("proc", {"cpuinfo": "flags\t\t: fpu sse2\nvmx flags\t: hypervisor\n"})
    assert read_kernel(tmp_path).virtual_machine is False
    tree.files("proc", {"cpuinfo": "processor\t: 0\nFeatures\t: fp asimd\n"})
    arm = read_kernel(tmp_path).virtual_machine
    assert isinstance(arm, Missing)
    assert arm.missing == "unsupported"


def test_this_machine_has_a_release() -> None:
    assert read_kernel(Path("/")).release == platform.release()
