"""Builds the stand-in for libnvidia-ml.so.1 and gives the environment in which the loader finds it."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

SOURCE = Path(__file__).with_name("nvml_stand_in.c")


def stand_in(behaviour: str = "", *, old_driver: bool = False) -> dict[str, str]:
    """The environment of a machine whose NVML behaves so: see nvml_stand_in.c for the words."""
    folder = _built("-DOLD_DRIVER" if old_driver else "-DNEW_DRIVER")
    return {**os.environ, "LD_LIBRARY_PATH": folder, "NVML_STAND_IN": behaviour}


@cache
def _built(flag: str) -> str:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build a stand-in for libnvidia-ml.so.1")
    folder = mkdtemp(prefix="nvml-stand-in-")
    library = f"{folder}/libnvidia-ml.so.1"
    command = [compiler, "-shared", "-fPIC", "-Wall", "-Werror", flag, "-o", library, str(SOURCE)]
    subprocess.run(command, check=True, timeout=60)
    return folder
