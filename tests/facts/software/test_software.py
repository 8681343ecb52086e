"""Versions are read from the parts themselves, and torch is never loaded for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ncclcheck.facts.software.software import constants, pinned_nccl, read_driver, read_os, read_software
from ncclcheck.model.fact import Missing


@pytest.mark.slow
def test_torch_is_described_as_it_would_describe_itself_and_is_not_loaded() -> None:
    ours = (
        "import sys\n"
        "from ncclcheck.facts.software.software import read_software\n"
        "software = read_software('2.28.9')\n"
        "assert 'torch' not in sys.modules\n"
        "print(software.torch, software.nccl)"
    )
    theirs = "import torch; print(torch.__version__, '2.28.9')"
    root = Path(__file__).parents[3]
    said = [
        subprocess.run(
            [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=120, check=True
        ).stdout
        for program in (ours, theirs)
    ]
    assert said[0] == said[1]


def test_a_cpu_torch_has_no_cuda_and_no_nccl() -> None:
    software = read_software(Missing("absent", "none"))
    if not (isinstance(software.torch, str) and software.torch.endswith("+cpu")):
        pytest.skip("the torch here is not a CPU wheel")
    assert isinstance(software.torch_cuda, Missing)
    assert isinstance(software.torch_nccl, Missing)
    assert software.torch_nccl.missing == "absent"


def test_version_constants_are_read_in_both_styles_of_torch() -> None:
    old = "__version__ = '2.1.0+cu121'\ndebug = False\ncuda = '12.1'\nhip = None\n"
    new = "from typing import Optional\n__version__ = '2.9.0'\ncuda: Optional[str] = '12.8'\n"
    assert constants(old) == {"__version__": "2.1.0+cu121", "cuda": "12.1", "hip": None}
    assert constants(new) == {"__version__": "2.9.0", "cuda": "12.8"}
    assert isinstance(constants("cuda = ("), Missing)


def test_the_nccl_that_a_torch_wheel_pins() -> None:
    lines = [
        "Requires-Dist: nvidia-cublas-cu12==12.8.4.1; platform_system == 'Linux'",
        'Requires-Dist: nvidia-nccl-cu12==2.27.5; platform_system == "Linux"',
    ]
    assert pinned_nccl(lines) == "2.27.5"
    assert (
        pinned_nccl(["Requires-Dist: nvidia-nccl-cu12 (==2.19.3) ; platform_system == 'Linux'"]) == "2.19.3"
    )
    assert pinned_nccl(["Requires-Dist: nvidia-nccl-cu13==2.28.9"]) == "2.28.9"
    assert pinned_nccl(lines[:1]) is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n"
            "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n",
            "535.104.05",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.42.02  Release Build  (dvs-builder)\n",
            "555.42.02",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  570.86.15  Release Build\n", "570.86.15"),
    ],
)
def test_the_driver_version_of_both_kinds_of_kernel_module(tmp_path: Path, text: str, version: str) -> None:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text(text)
    assert read_driver(tmp_path) == version


def test_the_driver_is_absent_without_the_module_and_an_error_when_not_understood(tmp_path: Path) -> None:
    absent = read_driver(tmp_path)
    assert isinstance(absent, Missing)
    assert absent.missing == "absent"
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    (tmp_path / "sys/module/nvidia/version").write_text("550.54.14\n")
    assert read_driver(tmp_path) == "550.54.14"
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text("nothing of use")
    odd = read_driver(tmp_path)
    assert isinstance(odd, Missing)
    assert odd.missing == "error"


def test_the_name_of_the_system(tmp_path: Path) -> None:
    assert isinstance(read_os(tmp_path), Missing)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.4 LTS"\n')
    assert read_os(tmp_path) == "Ubuntu 22.04.4 LTS"
