"""Which files NCCL of each version tries as network plug-ins."""

from __future__ import annotations

import pytest

from ncclcheck.facts.loading import Plugin
from ncclcheck.facts.nccl_plugins import as_plugins, plugin_files
from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import NetPlugin

DEFAULT = (("libnccl-net.so",),)


@pytest.mark.parametrize("version", ["2.18.3", "2.21.5", "2.26.2", "2.27.7", "2.32.3"])
def test_unset_is_the_default_in_every_version(version: str) -> None:
    assert plugin_files(None, version) == DEFAULT


@pytest.mark.parametrize(
    ("value", "version", "files"),
    [
        ("ofi", "2.20.5", (("libnccl-net-ofi.so",),)),
        ("/a/b.so", "2.20.5", (("libnccl-net-/a/b.so.so",),)),
        ("ofi", "2.21.5", (("ofi", "libnccl-net-ofi.so"),)),
        ("libx.so", "2.25.1", (("libx.so", "libnccl-net-libx.so.so"),)),
        ("libx.so", "2.26.2", (("libx.so",),)),
        ("./x", "2.26.2", (("./x",),)),
        ("a,b", "2.26.2", (("a,b", "libnccl-net-a,b.so"),)),
        ("a,,b", "2.27.3", (("a", "libnccl-net-a.so"), ("b", "libnccl-net-b.so"))),
        ("", "2.26.6", DEFAULT),
        ("", "2.27.3", ()),
        ("none", "2.27.7", (("none", "libnccl-net-none.so"),)),
        ("None", "2.28.3", ()),
        ("STATIC_PLUGIN", "2.22.3", ()),
        ("x" * 255 + ",b", "2.28.9", (("b", "libnccl-net-b.so"),)),
    ],
)
def test_a_value_by_the_rules_of_the_version(
    value: str, version: str, files: tuple[tuple[str, ...], ...]
) -> None:
    assert plugin_files(value, version) == files


def test_a_list_ends_after_fourteen() -> None:
    assert len(plugin_files(",".join(f"p{number}" for number in range(20)), "2.28.9")) == 14


def test_what_came_of_the_files_is_told_in_order() -> None:
    gone, crash = Missing("absent", "x: no such file"), Missing("error", "signal 11")
    loaded = Plugin("libnccl-net-x.so", "/opt/libnccl-net-x.so", (10,), "X")
    groups = (("x", "libnccl-net-x.so"), ("/opt/y.so",))
    found = as_plugins(groups, ((Plugin("x", gone), loaded), crash))
    assert found == (
        NetPlugin("x", gone, (), Missing("absent", "not loaded")),
        NetPlugin("libnccl-net-x.so", "/opt/libnccl-net-x.so", (10,), "X"),
        NetPlugin("/opt/y.so", Missing("error", "/opt/y.so: signal 11")),
    )
