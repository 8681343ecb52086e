"""The dynamic section of real shared libraries."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ncclcheck.facts.software.elf import Dynamic, mentions, read_dynamic
from ncclcheck.model.fact import Missing
from tests.facts.compiled import needs_compiler, shared_library


def dynamic(path: Path) -> Dynamic:
    found = read_dynamic(path)
    assert isinstance(found, Dynamic), found
    return found


@needs_compiler
def test_name_needs_and_search_path_are_read(tmp_path: Path) -> None:
    shared_library(tmp_path / "libone.so.2", "int one(void) { return 1; }", "-Wl,-soname,libone.so.2")
    way = [
        str(tmp_path / "libone.so.2"),
        "-Wl,-z,origin",
        "-Wl,-rpath,$ORIGIN/../a:/b",
        "-Wl,--disable-new-dtags",
    ]
    path = tmp_path / "libtwo.so"
    shared_library(path, "int one(void); int two(void) { return one(); }", *way)
    found = dynamic(path)
    assert "libone.so.2" in found.needed
    assert (found.rpath, found.runpath) == (("$ORIGIN/../a", "/b"), ())
    assert found.machine == dynamic(Path(sys.executable).resolve()).machine
    assert dynamic(tmp_path / "libone.so.2").soname == "libone.so.2"
    assert mentions(path, found, "two")
    assert not mentions(path, found, "thre")


@needs_compiler
def test_the_newer_tag_is_told_from_the_older(tmp_path: Path) -> None:
    path = tmp_path / "libone.so"
    shared_library(path, "int one;", "-Wl,-rpath,/a", "-Wl,--enable-new-dtags")
    assert (dynamic(path).rpath, dynamic(path).runpath) == ((), ("/a",))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "error"),
        (b"<html>404</html>", "error"),
        (b"\x7fELF\x02\x01", "error"),
        (b"\x7fELF\x01\x01" + bytes(80), "unsupported"),
        (b"\x7fELF\x02\x01" + bytes(80), "unsupported"),
    ],
)
def test_what_is_no_library_is_damaged_or_of_another_kind(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "libnccl.so.2"
    path.write_bytes(content)
    found = read_dynamic(path)
    assert isinstance(found, Missing)
    assert (found.missing, str(path) in found.detail) == (kind, True)


@needs_compiler
def test_a_library_cut_off_anywhere_never_raises(tmp_path: Path) -> None:
    whole = Path(shared_library(tmp_path / "whole.so", "int one;")).read_bytes()
    part = tmp_path / "part.so"
    for length in range(1, len(whole), 97):
        part.write_bytes(whole[:length])
        assert isinstance(read_dynamic(part), Missing | Dynamic)
    part.write_bytes(whole[: len(whole) // 2])
    assert "is cut short" in str(read_dynamic(part))


def test_a_fifo_holds_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "libnccl.so.2")
    found = read_dynamic(tmp_path / "libnccl.so.2")
    assert isinstance(found, Missing)
    assert found.missing == "unsupported"


def test_no_file_is_absent(tmp_path: Path) -> None:
    found = read_dynamic(tmp_path / "nothing.so")
    assert isinstance(found, Missing)
    assert found.missing == "absent"
