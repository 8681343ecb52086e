"""NC506 plugin-missing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import NetPlugin
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, node, with_environment, with_facts, with_silent
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, some

GOOD = NetPlugin("libnccl-net-ofi.so", "/opt/amazon/lib/libnccl-net-ofi.so", (9, 10), "AWS Libfabric")
NOT_THERE = "{}: cannot open shared object file: No such file or directory"
NO_FABRIC = "libfabric.so.1: cannot open shared object file: No such file or directory"


def absent(file: str) -> NetPlugin:
    return NetPlugin(file, Missing("absent", NOT_THERE.format(file)))


def with_plugins(snapshot: Snapshot, host: str, *plugins: NetPlugin) -> Snapshot:
    choice = some(node(snapshot, host).facts.nccl)
    return with_facts(snapshot, host, nccl=replace(choice, plugins=plugins))


def told(value: str, *plugins: NetPlugin, nnodes: int = 2, **environment: str) -> Snapshot:
    """The cluster with NCCL_NET_PLUGIN and what came of it on every node."""
    snapshot = cluster(nnodes)
    for one in snapshot.nodes:
        snapshot = with_environment(snapshot, one.host, NCCL_NET_PLUGIN=value, **environment)
        snapshot = with_plugins(snapshot, one.host, *plugins)
    return snapshot


def test_a_plugin_that_loads_is_silent() -> None:
    assert is_silent("plugin-missing", told("ofi", absent("ofi"), GOOD))


def test_a_named_plugin_that_is_not_there_is_a_warning() -> None:
    found = finding("plugin-missing", told("ofi", absent("ofi"), absent("libnccl-net-ofi.so")))
    assert (found.severity, found.hosts) == ("warning", ("node01", "node02"))
    assert "does not exist" in found.summary
    assert "libnccl-net-ofi.so" in found.summary


def test_it_is_an_error_where_nccl_net_demands_its_network() -> None:
    plugins = absent("ofi"), absent("libnccl-net-ofi.so")
    found = finding("plugin-missing", told("ofi", *plugins, NCCL_NET="AWS Libfabric"))
    assert found.severity == "error"
    assert "NCCL_NET=AWS Libfabric" in found.summary
    assert finding("plugin-missing", told("ofi", *plugins, NCCL_NET="Socket")).severity == "warning"


def test_the_library_that_it_lacks_is_named() -> None:
    broken = replace(GOOD, path=Missing("error", NO_FABRIC), apis=())
    found = finding("plugin-missing", told("ofi", absent("ofi"), broken))
    assert "libfabric.so.1, which it needs, is missing" in found.summary


def test_a_crash_is_told_with_its_words() -> None:
    crashed = replace(GOOD, path=Missing("error", "ended its process by signal 11"), apis=())
    assert "signal 11" in finding("plugin-missing", told("ofi", absent("ofi"), crashed)).summary


@pytest.mark.parametrize(("apis", "words"), [((4, 5), "v6 to v10"), ((11,), "v6 to v10"), ((), "no symbol")])
def test_an_api_that_this_nccl_does_not_take(apis: tuple[int, ...], words: str) -> None:
    found = finding("plugin-missing", told("ofi", absent("ofi"), replace(GOOD, apis=apis)))
    assert words in found.summary


def test_on_some_nodes_only_it_is_an_error_on_those_without() -> None:
    snapshot = told("ofi", absent("ofi"), GOOD, nnodes=4)
    snapshot = with_plugins(snapshot, "node03", absent("ofi"), absent("libnccl-net-ofi.so"))
    found = finding("plugin-missing", snapshot)
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "different networks" in found.summary


def test_a_default_plugin_on_some_nodes_only_is_an_error_too() -> None:
    default = replace(GOOD, file="libnccl-net.so")
    found = finding("plugin-missing", with_plugins(cluster(4), "node02", default))
    assert found.hosts == ("node01", "node03", "node04")
    assert found.severity == "error"


def test_a_default_plugin_that_is_nowhere_is_no_finding_and_a_broken_one_is() -> None:
    assert is_silent("plugin-missing", cluster(2))
    broken = NetPlugin("libnccl-net.so", Missing("error", NO_FABRIC))
    snapshot = with_plugins(with_plugins(cluster(2), "node01", broken), "node02", broken)
    assert "libfabric.so.1" in finding("plugin-missing", snapshot).summary


@pytest.mark.parametrize("value", ["none", "NONE"])
def test_none_is_no_plugin_in_every_version(value: str) -> None:
    snapshot = told(value, absent(value), absent(f"libnccl-net-{value}.so"))
    assert run("plugin-missing", snapshot).outcome == "not_applicable"


def test_one_of_a_list_is_named() -> None:
    snapshot = told("ofi,hpcx", absent("ofi"), GOOD, absent("hpcx"), absent("libnccl-net-hpcx.so"))
    assert "plug-in hpcx does not exist" in finding("plugin-missing", snapshot).summary


def test_what_was_not_looked_for_leaves_it_open() -> None:
    choice = some(node(cluster(2), "node01").facts.nccl)
    unread = with_facts(cluster(2), "node01", nccl=replace(choice, plugins=GONE))
    assert run("plugin-missing", unread).outcome == "unknown"


def test_a_silent_node_leaves_it_open() -> None:
    assert run("plugin-missing", with_silent(cluster(4), "node03")).outcome == "unknown"
