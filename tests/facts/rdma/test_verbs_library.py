"""libibverbs is found as a job's own loader would find it: present, absent, broken, or hanging."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ncclcheck.facts.rdma.verbs_library import find_verbs_library
from ncclcheck.model.fact import Missing

COMPILER = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler to build a library with")


def library(folder: Path, source: str, name: str = "libibverbs.so.1", *flags: str) -> dict[str, str]:
    """Build a library into a folder; returns an environment whose loader looks there first."""
    assert COMPILER is not None
    (folder / "source.c").write_text(source)
    command = [COMPILER, "-shared", "-fPIC", "-o", str(folder / name), str(folder / "source.c"), *flags]
    subprocess.run(command, check=True, timeout=60)
    return {**os.environ, "LD_LIBRARY_PATH": str(folder)}


@needs_compiler
@pytest.mark.parametrize("name", ["libibverbs.so", "libibverbs.so.1"])
def test_the_library_of_the_jobs_own_path_is_found(tmp_path: Path, name: str) -> None:
    environ = library(tmp_path, "void *ibv_get_device_list(int *n) { return 0; }", name)
    assert find_verbs_library(environ, 20.0) == str(tmp_path / name)


@needs_compiler
def test_a_library_that_needs_a_missing_one_is_broken_and_not_absent(tmp_path: Path) -> None:
    library(tmp_path, "int needed(void) { return 1; }", "libneeded-by-it.so")
    environ = library(
        tmp_path,
        "int needed(void); void *ibv_get_device_list(int *n) { needed(); return 0; }",
        "libibverbs.so",
        f"-L{tmp_path}",
        "-lneeded-by-it",
    )
    shutil.copy(tmp_path / "libibverbs.so", tmp_path / "libibverbs.so.1")
    (tmp_path / "libneeded-by-it.so").unlink()
    found = find_verbs_library(environ, 20.0)
    assert isinstance(found, Missing)
    assert found.missing == "error"
    assert "libneeded-by-it.so" in found.detail


@pytest.mark.slow
@needs_compiler
def test_a_library_that_hangs_while_it_is_loaded_is_late(tmp_path: Path) -> None:
    source = "#include <unistd.h>\n__attribute__((constructor)) static void hang(void) { for (;;) pause(); }"
    found = find_verbs_library(library(tmp_path, source, "libibverbs.so"), 1.0)
    assert isinstance(found, Missing)
    assert found.missing == "timeout"


def test_text_in_the_place_of_libraries_is_an_error(tmp_path: Path) -> None:
    for name in ("libibverbs.so", "libibverbs.so.1"):
        (tmp_path / name).write_text("no library")
    found = find_verbs_library({**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}, 20.0)
    assert isinstance(found, Missing)
    assert found.missing == "error"
    assert "libibverbs.so" in found.detail


def test_this_machine_has_one_or_not() -> None:
    found = find_verbs_library(os.environ, 20.0)
    assert isinstance(found, str) or found.missing == "absent"
