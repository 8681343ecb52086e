"""The NCCL libraries of a node, and which of them torch gets: compared with what the real loader loads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ncclcheck.facts.nccl.nccl_search import Found, cached_libraries, rpath_folders, search_libraries
from tests.facts.compiled import nccl_library, needs_compiler, shared_library

_LOADED = (
    "import ctypes, sys; ctypes.CDLL(sys.argv[1]);"
    "print(*sorted({line.split()[-1] for line in open('/proc/self/maps') if 'libnccl' in line}))"
)


def put(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return str(path)


def origins(environ: Mapping[str, str], *search_path: Path) -> dict[str, str]:
    return {
        library.path: library.origin
        for library in search_libraries(environ, [str(path) for path in search_path])
    }


def torchs(environ: Mapping[str, str], site: Path) -> list[Found]:
    return [library for library in search_libraries(environ, [str(site)]) if library.loaded_by_torch]


def loaded(environ: Mapping[str, str], site: Path) -> str:
    """The NCCL that the system's loader loads for libtorch_cuda.so."""
    argv = [sys.executable, "-c", _LOADED, str(site / "torch" / "lib" / "libtorch_cuda.so")]
    said = subprocess.run(argv, env=dict(environ), capture_output=True, text=True, check=True, timeout=60)
    return said.stdout.strip()


def torch_with_cuda(site: Path, *flags: str) -> None:
    """A torch whose libtorch_cuda.so needs libnccl.so.2."""
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "__init__.py").write_text("")
    wheel = nccl_library(site / "nvidia" / "nccl" / "lib" / "libnccl.so.2", 22705)
    source = "int ncclGetVersion(int *); int f(int *v) { return ncclGetVersion(v); }"
    shared_library(site / "torch" / "lib" / "libtorch_cuda.so", source, wheel, "-Wl,-z,origin", *flags)


RPATH = "-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/../../nvidia/nccl/lib:$ORIGIN"
RUNPATH = "-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN/../../nvidia/nccl/lib:$ORIGIN"


@needs_compiler
@pytest.mark.parametrize("preloaded", [False, True])
@pytest.mark.parametrize("in_path", [False, True])
@pytest.mark.parametrize("flags", [RPATH, RUNPATH], ids=["rpath", "runpath"])
def test_torchs_library_is_the_one_that_the_loader_loads(
    tmp_path: Path, flags: tuple[str, ...], in_path: bool, preloaded: bool
) -> None:
    site = tmp_path / "site"
    torch_with_cuda(site, *flags)
    module = Path(nccl_library(tmp_path / "module" / "libnccl.so.2", 22105))
    mine = nccl_library(tmp_path / "mine" / "libnccl.so.2", 21805)
    environ = {
        **({"LD_LIBRARY_PATH": f"{tmp_path}/nothing:{module.parent}"} if in_path else {}),
        **({"LD_PRELOAD": mine} if preloaded else {}),
    }
    (own,) = torchs(environ, site)
    assert own.path == loaded(environ, site)
    assert search_libraries(environ, [str(site)])[0] == own


@needs_compiler
def test_where_only_the_library_path_has_it_that_is_torchs(tmp_path: Path) -> None:
    site = tmp_path / "site"
    torch_with_cuda(site, "-Wl,--disable-new-dtags", "-Wl,-rpath,/nowhere")
    module = Path(nccl_library(tmp_path / "module" / "libnccl.so.2", 22105))
    environ = {"LD_LIBRARY_PATH": str(module.parent)}
    (own,) = torchs(environ, site)
    assert (own.path, own.origin) == (loaded(environ, site), "LD_LIBRARY_PATH")


@needs_compiler
def test_a_torch_with_nccl_inside_is_its_own_library(tmp_path: Path) -> None:
    inside = tmp_path / "torch" / "lib" / "libtorch_cuda.so"
    shared_library(inside, "int ncclGetUniqueId(void *id) { return 0; }")
    put(tmp_path / "torch" / "__init__.py")
    module = nccl_library(tmp_path / "module" / "libnccl.so.2", 22105)
    found = search_libraries({"LD_LIBRARY_PATH": str(Path(module).parent)}, [str(tmp_path)])
    assert found[0] == Found(str(inside), "inside libtorch_cuda.so", loaded_by_torch=True)
    assert module in [one.path for one in found]


@needs_compiler
def test_torchs_folders_come_first_for_what_nccl_loads(tmp_path: Path) -> None:
    torch_with_cuda(tmp_path, *RPATH)
    wheel = str(tmp_path / "nvidia" / "nccl" / "lib")
    assert rpath_folders([str(tmp_path)]) == (wheel, str(tmp_path / "torch" / "lib"))
    assert rpath_folders([str(tmp_path / "nothing")]) == ()


def test_a_torch_without_cuda_loads_none_and_all_are_listed(tmp_path: Path) -> None:
    put(tmp_path / "torch" / "__init__.py")
    wheel = put(tmp_path / "nvidia" / "nccl" / "lib" / "libnccl.so.2")
    user = put(tmp_path / "user" / "nvidia" / "nccl" / "lib" / "libnccl.so.2")
    module = put(tmp_path / "module" / "libnccl.so.2")
    conda = put(tmp_path / "conda" / "lib" / "libnccl.so.2")
    environ = {"LD_LIBRARY_PATH": str(tmp_path / "module"), "CONDA_PREFIX": str(tmp_path / "conda")}
    found = origins(environ, tmp_path, tmp_path / "user")
    own = {path: origin for path, origin in found.items() if path.startswith(str(tmp_path))}
    assert own == {
        wheel: "torch's package",
        user: "Python package",
        module: "LD_LIBRARY_PATH",
        conda: "conda",
    }
    assert torchs(environ, tmp_path) == []


def test_a_file_that_is_found_in_two_ways_is_listed_once(tmp_path: Path) -> None:
    wheel = put(tmp_path / "nvidia" / "nccl" / "lib" / "libnccl.so.2")
    link = tmp_path / "module" / "libnccl.so.2"
    link.parent.mkdir()
    link.symlink_to(wheel)
    environ = {"LD_LIBRARY_PATH": f"{link.parent}:{Path(wheel).parent}", "LD_PRELOAD": wheel}
    found = [origin for origin in origins(environ, tmp_path).items() if origin[0].startswith(str(tmp_path))]
    assert found == [(wheel, "LD_PRELOAD")]


@pytest.mark.parametrize("name", ["libnccl-net.so", "libnccl-tuner.so", "libncclxyz.so"])
def test_a_preloaded_plugin_is_not_taken_for_the_library(tmp_path: Path, name: str) -> None:
    plugin = put(tmp_path / name)
    assert plugin not in origins({"LD_PRELOAD": plugin}, tmp_path)


def test_the_loaders_cache_is_read_for_this_machine() -> None:
    listing = (
        "2 libs found in cache `/etc/ld.so.cache'\n"
        "\tlibnccl.so.2 (libc6,AArch64) => /lib/aarch64-linux-gnu/libnccl.so.2\n"
        "\tlibnccl.so.2 (libc6,x86-64) => /lib/x86_64-linux-gnu/libnccl.so.2\n"
        "\tlibnccl.so (libc6,x86-64) => /lib/x86_64-linux-gnu/libnccl.so\n"
    )
    assert cached_libraries(listing, "x86_64") == [Path("/lib/x86_64-linux-gnu/libnccl.so.2")]
    assert cached_libraries(listing, "aarch64") == [Path("/lib/aarch64-linux-gnu/libnccl.so.2")]
