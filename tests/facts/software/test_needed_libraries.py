"""Shared libraries that are needed and not there, found as the loader finds them; compared with the loader itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ncclcheck.facts.child import ChildResult
from ncclcheck.facts.image.image_verbs import own_machine
from ncclcheck.facts.software.elf import Dynamic
from ncclcheck.facts.software.needed_libraries import (
    LoaderSearch,
    cache_of,
    find,
    loader_cache,
    needed_libraries,
)
from ncclcheck.model.image import AbsentLibrary, Examined
from tests.facts.compiled import needs_compiler, shared_library

EMPTY = "int {}(void) {{ return 0; }}"


def library(folder: Path, name: str, *needed: str, flags: tuple[str, ...] = ()) -> Path:
    """lib{name}.so in the folder, which needs other libraries of the same folder."""
    links = [str(folder / f"lib{one}.so") for one in needed]
    wanted = ("-Wl,--no-as-needed", f"-Wl,-soname,lib{name}.so", *links, *flags)
    return Path(shared_library(folder / f"lib{name}.so", EMPTY.format(name.replace("-", "_")), *wanted))


def search(**environ: str) -> LoaderSearch:
    return LoaderSearch(environ, loader_cache())


def lacking(path: Path, where: LoaderSearch) -> list[str]:
    return [
        absent_library.name
        for absent_library in needed_libraries([Examined("NCCL", str(path))], where).absent
    ]


@needs_compiler
def test_every_missing_library_is_named_however_deep(tmp_path: Path) -> None:
    for name in ("deep", "gone"):
        library(tmp_path, name)
    library(tmp_path, "middle", "deep", "gone")
    top = library(tmp_path, "top", "middle")
    (tmp_path / "libgone.so").unlink()
    (tmp_path / "libdeep.so").unlink()
    here = search(LD_LIBRARY_PATH=str(tmp_path))
    found = needed_libraries([Examined("NCCL", str(top))], here)
    middle = str(tmp_path / "libmiddle.so")
    assert found.absent == (
        AbsentLibrary("libdeep.so", middle, Examined("NCCL", str(top))),
        AbsentLibrary("libgone.so", middle, Examined("NCCL", str(top))),
    )
    assert lacking(top, search()) == ["libmiddle.so"]


@needs_compiler
def test_the_loader_itself_agrees(tmp_path: Path) -> None:
    library(tmp_path / "a", "one")
    (tmp_path / "b").mkdir()
    own = library(tmp_path / "a", "own", "one", flags=("-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN"))
    bare = library(tmp_path / "a", "bare", "one")
    old = library(tmp_path / "a", "old", "bare", flags=("-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN"))
    new = library(tmp_path / "a", "new", "bare", flags=("-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN"))
    for path in (own, bare, old, new):
        for environ in (
            {},
            {"LD_LIBRARY_PATH": str(tmp_path / "b")},
            {"LD_LIBRARY_PATH": str(tmp_path / "a")},
        ):
            loads = subprocess.run(
                [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(path)!r})"],
                env=environ,
                capture_output=True,
                check=False,
                timeout=60,
            )
            assert (lacking(path, search(**environ)) == []) is (loads.returncode == 0), (path, environ)


@needs_compiler
def test_what_the_driver_brings_is_not_missing_and_what_torch_loads_first_is_there(tmp_path: Path) -> None:
    for name in ("cuda", "nvidia-ml", "cublas"):
        library(tmp_path / "build", name, flags=(f"-Wl,-soname,lib{name}.so.1",))
    top = library(tmp_path / "build", "top", "cuda", "nvidia-ml", "cublas")
    moved = tmp_path / "nvidia/cublas/lib"
    moved.mkdir(parents=True)
    (tmp_path / "build/libcublas.so").rename(moved / "libcublas.so.1")
    for name in ("cuda", "nvidia-ml"):
        (tmp_path / f"build/lib{name}.so").unlink()
    found = needed_libraries([Examined("torch", str(top))], LoaderSearch({}, {}, preloaded=(str(moved),)))
    absent = [absent_library.name for absent_library in found.absent if absent_library.name != "libc.so.6"]
    assert (absent, found.of_driver) == ([], ("libcuda.so.1", "libnvidia-ml.so.1"))


def test_python_itself_lacks_nothing() -> None:
    assert lacking(Path(sys.executable), search()) == []


def test_a_file_that_is_no_library_is_not_examined(tmp_path: Path) -> None:
    text = tmp_path / "libtext.so"
    text.write_text("INPUT(libother.so)")
    found = needed_libraries([Examined("NCCL", str(text))], search())
    assert (found.examined, [damaged_library.path for damaged_library in found.damaged]) == ((), [str(text)])


@needs_compiler
def test_a_damaged_library_is_where_the_loader_gives_up(tmp_path: Path) -> None:
    """It does not look for a whole one behind it; one of another machine is passed over."""
    library(tmp_path / "whole", "low")
    top = library(tmp_path / "whole", "top", "low")
    low = tmp_path / "a/liblow.so"
    low.parent.mkdir()
    whole = (tmp_path / "whole/liblow.so").read_bytes()
    environ = {"LD_LIBRARY_PATH": f"{low.parent}:{tmp_path / 'whole'}"}
    contents = {
        "cut": whole[: len(whole) // 3],
        "none": b"",
        "text": b"x" * 500,
        "32 bit": whole[:4] + b"\1" + whole[5:],
    }
    for what, content in contents.items():
        low.write_bytes(content)
        found = needed_libraries([Examined("NCCL", str(top))], search(**environ))
        load = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(top)!r})"]
        loads = subprocess.run(load, env=environ, capture_output=True, check=False, timeout=60)
        assert [damaged_library.path for damaged_library in found.damaged] == (
            [] if what == "32 bit" else [str(low)]
        ), what
        assert (found.damaged == ()) is (loads.returncode == 0), what


def test_the_cache_of_the_loader_is_read_for_each_machine() -> None:
    text = (
        b"2 libs found in cache `/etc/ld.so.cache'\n"
        b"\tlibm.so.6 (libc6,x86-64) => /lib/libm.so.6\n\tlibm.so.6 (libc6) => /lib32/libm.so.6\n"
        b"\tlibm.so.6 (libc6,x86-64, hwcap) => /opt/libm.so.6\n"
    )
    assert cache_of(ChildResult(0, text, b"")) == {
        ("libm.so.6", "x86-64"): ("/lib/libm.so.6", "/opt/libm.so.6")
    }


@needs_compiler
def test_a_path_in_the_needed_name_is_taken_as_it_is(tmp_path: Path) -> None:
    one = library(tmp_path, "one")
    program = Dynamic(own_machine(), "", (), (), (), (0, 0))
    assert find(str(one), Path("/"), program, LoaderSearch({}, {})) is not None
    assert find("libone.so", Path("/"), program, LoaderSearch({}, {})) is None
    assert find("libone.so", Path("/"), program, LoaderSearch({}, {}, folders=(str(tmp_path),))) is not None
