"""Which files are looked for as network plug-ins: all that NCCL of any version could try."""

from __future__ import annotations

import pytest

from ncclcheck.facts.nccl.nccl_plugins import as_plugins, plugin_files
from ncclcheck.facts.software.loading import Plugin
from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import NetPlugin
from ncclcheck.nccl.plugins import wanted_files
from ncclcheck.nccl.versions import MILESTONES

VALUES = (
    None,
    "",
    "ofi",
    "/a/b.so",
    "./x",
    "libx.so",
    "a,b",
    "a,,b",
    "none",
    "STATIC_PLUGIN",
    ",",
    "a," * 20,
)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("version", [*MILESTONES, "2.27.3"])
def test_all_that_a_version_tries_is_looked_for(version: str, value: str | None) -> None:
    looked_for = {file for (file,) in plugin_files(value)}
    setting = {} if value is None else {"NCCL_NET_PLUGIN": value}
    assert {file for group in wanted_files(setting, version) for file in group} <= looked_for


@pytest.mark.parametrize(
    ("value", "files"),
    [
        (None, ("libnccl-net.so",)),
        ("", ("libnccl-net.so",)),
        ("ofi", ("ofi", "libnccl-net-ofi.so")),
        ("a,b", ("a,b", "libnccl-net-a,b.so", "a", "libnccl-net-a.so", "b", "libnccl-net-b.so")),
        ("x" * 255, ("x" * 255, f"libnccl-net-{'x' * 255}.so")),
    ],
)
def test_each_file_once_and_nothing_else(value: str | None, files: tuple[str, ...]) -> None:
    assert plugin_files(value) == tuple((file,) for file in files)


def test_however_long_a_list_is_few_files_are_looked_for() -> None:
    assert len(plugin_files(",".join(f"p{number}" for number in range(1000)))) == 2 + 2 * 14


def test_what_came_of_the_files_is_told_in_order() -> None:
    gone, crash = Missing("absent", "x: no such file"), Missing("error", "signal 11")
    loaded = Plugin("libnccl-net-x.so", "/opt/libnccl-net-x.so", (10,), "X")
    groups = (("x",), ("libnccl-net-x.so",), ("/opt/y.so",))
    found = as_plugins(groups, ((Plugin("x", gone),), (loaded,), crash))
    assert found == (
        NetPlugin("x", gone, (), Missing("absent", "not loaded")),
        NetPlugin("libnccl-net-x.so", "/opt/libnccl-net-x.so", (10,), "X"),
        NetPlugin("/opt/y.so", Missing("error", "/opt/y.so: signal 11")),
    )
