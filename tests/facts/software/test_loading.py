"""Libraries loaded in processes of their own: a broken or hostile one spoils no other."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ncclcheck.facts.software.loading import LibraryVersion, Loaded, Plugin, load
from ncclcheck.model.fact import Missing
from tests.facts.compiled import nccl_library, needs_compiler, shared_library

pytestmark = needs_compiler
ENVIRONMENT = dict(os.environ)

# The head of ncclNet_vN_t of nccl_net.h.
PLUGIN = """
struct net { const char *name; void *functions[32]; };
struct net ncclNetPlugin_v9 = { "AWS Libfabric" };
struct net ncclNetPlugin_v10 = { "AWS Libfabric" };
"""
AT_LOADING = "__attribute__((constructor)) static void at_loading(void) { %s }\n"


def plugins(*groups: list[str], folders: tuple[str, ...] = (), **environ: str) -> Loaded:
    return load((), groups, folders, {**ENVIRONMENT, **environ}, 20.0)


def missing(fact: object) -> Missing:
    assert isinstance(fact, Missing), fact
    return fact


def test_every_library_says_its_own_version(tmp_path: Path) -> None:
    one = nccl_library(tmp_path / "a" / "libnccl.so.2", 22105)
    two = nccl_library(tmp_path / "b" / "libnccl.so.2", 22705)
    # A preloaded one must not answer for the others.
    answers = load((one, two), (), (), {**ENVIRONMENT, "LD_PRELOAD": two}, 20.0)
    assert answers.versions == (LibraryVersion(22105), LibraryVersion(22705))


@pytest.mark.slow
def test_broken_and_hostile_ones_spoil_no_other(tmp_path: Path) -> None:
    good = nccl_library(tmp_path / "good" / "libnccl.so.2", 22705)
    page = tmp_path / "page.so"
    page.write_text("<html>404</html>")
    other = shared_library(tmp_path / "other.so", "int nothing;")
    crash = shared_library(
        tmp_path / "crash.so", "#include <stdlib.h>\n" + AT_LOADING % "*(volatile int *)0 = 1;"
    )
    leaves = shared_library(tmp_path / "leaves.so", "#include <unistd.h>\n" + AT_LOADING % "_exit(7);")
    prints = shared_library(
        tmp_path / "prints.so",
        "#include <stdio.h>\n"
        + AT_LOADING % 'puts("{}"); fflush(stdout);'
        + "int ncclGetVersion(int *version) { *version = 22105; return 0; }",
    )
    hangs = shared_library(tmp_path / "hangs.so", "#include <unistd.h>\n" + AT_LOADING % "for (;;) pause();")
    started = time.monotonic()
    libraries = [str(page), other, crash, leaves, hangs, prints, good]
    versions = load(libraries, (), (), ENVIRONMENT, 5.0).versions
    assert time.monotonic() - started < 2 * 5.0  # the time of the one that hangs is spent once
    assert versions[-2:] == (LibraryVersion(22105), LibraryVersion(22705))
    kinds = [missing(version).missing for version in versions[:-2]]
    assert kinds == ["error", "unsupported", "error", "error", "timeout"]
    assert "signal 11" in missing(versions[2]).detail
    assert "with 7" in missing(versions[3]).detail


def test_a_plugin_tells_its_path_its_apis_and_its_network(tmp_path: Path) -> None:
    path = shared_library(tmp_path / "libnccl-net-ofi.so", PLUGIN)
    (group,) = plugins(["ofi", "libnccl-net-ofi.so", "never-tried.so"], LD_LIBRARY_PATH=str(tmp_path)).plugins
    assert isinstance(group, tuple)
    first, second = group
    assert missing(first.path).missing == "absent"
    no_tuner = Missing("absent", "it has no ncclTunerPlugin_vN symbol")
    assert second == Plugin("libnccl-net-ofi.so", path, (9, 10), "AWS Libfabric", (), no_tuner)


def test_a_library_that_a_plugin_lacks_is_named(tmp_path: Path) -> None:
    fabric = shared_library(
        tmp_path / "libfarfabric.so.1", "int fi(void) { return 1; }", "-Wl,-soname,libfarfabric.so.1"
    )
    path = shared_library(
        tmp_path / "libnccl-net.so", PLUGIN + "int fi(void); int g(void) { return fi(); }", fabric
    )
    Path(fabric).unlink()
    for file in (path, "libnccl-net.so"):
        (group,) = plugins([file], LD_LIBRARY_PATH=str(tmp_path)).plugins
        assert isinstance(group, tuple)
        why = missing(group[0].path)
        assert (why.missing, why.detail.split(":")[0]) == ("error", "libfarfabric.so.1")


def test_torchs_own_folders_come_before_the_library_path(tmp_path: Path) -> None:
    first = shared_library(tmp_path / "torch" / "libnccl-net.so", PLUGIN)
    shared_library(tmp_path / "path" / "libnccl-net.so", PLUGIN)
    found = plugins(
        ["libnccl-net.so"], folders=(str(tmp_path / "torch"),), LD_LIBRARY_PATH=str(tmp_path / "path")
    )
    (group,) = found.plugins
    assert isinstance(group, tuple)
    assert group[0].path == first


def test_a_library_without_the_symbols_is_no_plugin(tmp_path: Path) -> None:
    path = shared_library(tmp_path / "libnccl-net.so", "int nothing;")
    (group,) = plugins([path]).plugins
    assert isinstance(group, tuple)
    assert (group[0].path, group[0].apis, missing(group[0].network).missing) == (path, (), "absent")


def test_a_plugin_that_crashes_is_an_error_with_the_signal(tmp_path: Path) -> None:
    path = shared_library(
        tmp_path / "libnccl-net.so", "#include <stdlib.h>\n" + AT_LOADING % "abort();" + PLUGIN
    )
    good = shared_library(tmp_path / "good.so", PLUGIN)
    crashed, other = plugins([path], [good]).plugins
    assert "signal 6" in missing(crashed).detail
    assert isinstance(other, tuple)


def test_nothing_asked_starts_nothing() -> None:
    assert load((), (), (), {}, 0.0) == Loaded()
