"""Which plug-in files NCCL tries, by version, and what becomes of them."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import NetPlugin
from ncclcheck.nccl.plugins import Attempt, attempts, wanted_files
from tests.nccl.hardware import UNREAD

DEFAULT = (("libnccl-net.so",),)
OFI = (("libnccl-net-ofi.so",),)
OFI_EITHER = (("ofi", "libnccl-net-ofi.so"),)


@pytest.mark.parametrize(
    ("version", "value", "expected"),
    [
        ("2.18.1", None, DEFAULT),
        ("2.30.7", None, DEFAULT),
        ("2.18.1", "", DEFAULT),
        ("2.26.2", "", DEFAULT),
        ("2.27.3", "", ()),
        ("2.20.5", "ofi", OFI),
        ("2.21.5", "ofi", OFI_EITHER),
        ("2.28.9", "ofi", OFI_EITHER),
        ("2.26.2", "a,b", (("a,b", "libnccl-net-a,b.so"),)),
        ("2.27.5", "a,,/b.so", (("a", "libnccl-net-a.so"), ("/b.so",))),
        ("2.20.5", "/a/b.so", (("libnccl-net-/a/b.so.so",),)),
        ("2.26.6", "libx.so", (("libx.so", "libnccl-net-libx.so.so"),)),  # both, up to the last tag of 2.26
        ("2.26.6", "./x", (("./x", "libnccl-net-./x.so"),)),
        ("2.27.3", "libx.so", (("libx.so",),)),
        ("2.27.3", "lib.so", (("libnccl-net-lib.so.so",),)),
        ("2.27.3", "/a/libx.so", (("libnccl-net-/a/libx.so.so",),)),  # a path is of no use to 2.27.3
        ("2.27.3", "ofi", OFI),
        ("2.27.5", "/a/libx.so", (("/a/libx.so",),)),
        ("2.28.9", "libx.so", (("libx.so",),)),
        ("2.21.5", "STATIC_PLUGIN", (("STATIC_PLUGIN", "libnccl-net-STATIC_PLUGIN.so"),)),
        ("2.22.3", "STATIC_PLUGIN", ()),  # the symbols of the program itself
        ("2.28.9", "static,b", (("b", "libnccl-net-b.so"),)),
        ("2.27.3", "static_plugin", (("libnccl-net-static_plugin.so",),)),
        ("2.28.9", "x" * 255 + ",b", (("b", "libnccl-net-b.so"),)),
        ("2.27.7", "none", (("none", "libnccl-net-none.so"),)),
        ("2.28.3", "NONE", ()),
        ("2.28.3", "none,none", (("none", "libnccl-net-none.so"),) * 2),
    ],
)
def test_the_files_tried(version: str, value: str | None, expected: tuple[tuple[str, ...], ...]) -> None:
    assert wanted_files({} if value is None else {"NCCL_NET_PLUGIN": value}, version) == expected


def test_the_list_is_limited() -> None:
    assert len(wanted_files({"NCCL_NET_PLUGIN": ",".join("abcdefghijklmnopqrst")}, "2.28.9")) == 14


def only(plugins: Fact[tuple[NetPlugin, ...]], version: str = "2.28.9", **environment: str) -> Attempt:
    (attempt,) = attempts(plugins, environment, version)
    return attempt


AWS = NetPlugin("libnccl-net-ofi.so", "/opt/lib/libnccl-net-ofi.so", (9, 10), "AWS Libfabric")


def test_a_plugin_with_an_api_of_the_version_loads() -> None:
    found = only((AWS,), NCCL_NET_PLUGIN="ofi")
    assert (found.network, found.loads) == ("AWS Libfabric", True)
    assert "API v10" in found.reason


@pytest.mark.parametrize(
    ("version", "loads"), [("2.23.4", False), ("2.24.3", True), ("2.26.2", True), ("2.30.7", True)]
)
def test_the_api_must_fit(version: str, loads: bool) -> None:
    assert only((AWS,), version, NCCL_NET_PLUGIN="ofi").loads is loads


def test_a_plugin_without_an_api_or_that_cannot_be_loaded_is_passed_over_with_the_reason() -> None:
    empty = NetPlugin("libnccl-net.so", "/usr/lib/libnccl-net.so")
    broken = NetPlugin("libnccl-net.so", Missing("error", "libfabric.so.1: cannot open shared object file"))
    absent = NetPlugin("libnccl-net.so", Missing("absent", "no such file"))
    assert (only((empty,)).loads, only((broken,)).loads, only((absent,)).loads) == (False, False, False)
    assert "plug-in API none" in only((empty,)).reason
    assert "libfabric.so.1" in only((broken,)).reason
    assert only(()).loads is False
    assert not only(()).reason


def test_what_was_not_looked_for_is_not_known() -> None:
    assert only(UNREAD).loads is None
    assert only((), NCCL_NET_PLUGIN="ofi").loads is None
    looked = NetPlugin("libnccl-net-ofi.so", Missing("absent", "no such file"))
    assert only((looked,), NCCL_NET_PLUGIN="ofi").reason == "there is no plug-in ofi or libnccl-net-ofi.so"


def test_a_plugin_whose_network_is_not_known_goes_by_its_file() -> None:
    nameless = NetPlugin("libnccl-net.so", "/usr/lib/libnccl-net.so", (11,))
    found = only((nameless,))
    assert (found.network, found.loads, found.is_network_known) == ("libnccl-net.so", True, False)
