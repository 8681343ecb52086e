"""Tiny shared libraries for tests, built with the C compiler of the machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

COMPILER = shutil.which("gcc") or shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler to build tiny shared libraries")


def shared_library(path: Path, source: str, *flags: str) -> str:
    """The shared library at `path`, built from C source; its folder is made."""
    assert COMPILER is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [COMPILER, "-shared", "-fPIC", "-o", str(path), "-x", "c", "-", "-x", "none", *flags]
    subprocess.run(command, input=source.encode(), check=True, timeout=60)
    return str(path)


def nccl_library(path: Path, number: int) -> str:
    """An NCCL library that knows its version and no more."""
    source = f"int ncclGetVersion(int *version) {{ *version = {number}; return 0; }}"
    return shared_library(path, source, "-Wl,-soname,libnccl.so.2")
