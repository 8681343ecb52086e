"""Words, lists, names, ranges and paths: what is made of them, version by version."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.nccl.variables.variables import TABLE
from ncclcheck.nccl.variables.variables_numbers import Misreading
from ncclcheck.nccl.variables.variables_values import misread
from tests.nccl.test_against_library import libraries
from tests.nccl.test_number import ASK

ALL = ("2.18.1", "2.20.5", "2.22.3", "2.23.4", "2.24.3", "2.28.9", "2.30.4", "2.30.7", "2.32.3")


def read(name: str, value: str, version: str = "2.28.9", **environment: str) -> Misreading | None:
    return misread(TABLE[name], value, version, environment)


def weight(name: str, value: str, version: str = "2.28.9", **environment: str) -> str | None:
    found = read(name, value, version, **environment)
    return found.weight if found else None


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_DEBUG", "info"),
        ("NCCL_DEBUG", "WARN"),
        ("NCCL_DEBUG", ""),
        ("NCCL_DEBUG", "OFF"),
        ("NCCL_DEBUG_SUBSYS", "INIT,net"),
        ("NCCL_DEBUG_SUBSYS", "^COLL"),
        ("NCCL_ALGO", "ring,Tree"),
        ("NCCL_ALGO", "^NVLS"),
        ("NCCL_PROTO", "simple"),
        ("NCCL_P2P_LEVEL", "NVL"),
        ("NCCL_P2P_LEVEL", "5"),
        ("NCCL_NET_GDR_LEVEL", "PHB"),
        ("NCCL_SOCKET_FAMILY", "AF_INET6"),
        ("NCCL_SOCKET_IFNAME", "^docker,lo"),
        ("NCCL_SOCKET_IFNAME", "=eth0,eth1"),
        ("NCCL_SOCKET_IFNAME", "^=eth0"),
        ("NCCL_SOCKET_IFNAME", "eth0:5"),
        ("NCCL_SOCKET_IFNAME", ""),
        ("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1"),
        ("NCCL_IB_HCA", "mlx5"),
        ("NCCL_COMM_ID", "10.0.0.1:5000"),
        ("NCCL_NET", "ib"),
        ("NCCL_NET", "AWS Libfabric"),
        ("NCCL_NET", "FasTrak"),
        ("NCCL_NET_PLUGIN", "none"),
        ("NCCL_DEBUG_FILE", "/tmp/nccl.%h.%p.log"),
        ("NCCL_TOPO_FILE", "/opt/microsoft/ndv5-topo.xml"),
        ("NCCL_CTA_POLICY", "1"),
    ],
)
def test_usual_values_are_fine_in_every_version(name: str, value: str, version: str) -> None:
    assert read(name, value, version) is None


@pytest.mark.parametrize("value", ["1", "true", "DEBUG", "on", "VERBOSE"])
@pytest.mark.parametrize("version", ALL)
def test_an_unknown_debug_level_prints_nothing(value: str, version: str) -> None:
    found = read("NCCL_DEBUG", value, version)
    assert found is not None
    assert "prints nothing" in found.what


def test_a_blank_in_the_debug_level_counts_until_2_30_7() -> None:
    assert weight("NCCL_DEBUG", "INFO ", "2.30.4") == "warning"
    assert weight("NCCL_DEBUG", "INFO ", "2.30.7") is None
    assert weight("NCCL_DEBUG", "ATTN", "2.30.7") == "warning"
    assert weight("NCCL_DEBUG", "ATTN", "2.32.3") is None


@pytest.mark.parametrize(
    ("name", "value", "better"),
    [
        ("NCCL_P2P_LEVEL", "nvl", "NVL"),
        ("NCCL_NET_GDR_LEVEL", "phb", "PHB"),
        ("NCCL_NET_GDR_LEVEL", "PHB ", "PHB"),
        ("NCCL_P2P_LEVEL", "NVLINK", None),
    ],
)
def test_levels_are_written_in_capitals(name: str, value: str, better: str | None) -> None:
    found = read(name, value)
    assert found is not None
    assert (found.weight, found.better) == ("warning", better)
    assert "ignores" in found.what


@pytest.mark.parametrize(
    ("value", "expected", "better"),
    [
        ("ipv4", "warning", "AF_INET"),
        ("ipv6", "error", "AF_INET6"),
        ("af_inet6", "error", "AF_INET6"),
        ("AF_INET ", "warning", "AF_INET"),
    ],
)
def test_families_are_exact_words(value: str, expected: str, better: str) -> None:
    found = read("NCCL_SOCKET_FAMILY", value)
    assert found is not None
    assert (found.weight, found.better) == (expected, better)


@pytest.mark.parametrize(
    ("name", "value", "version", "expected"),
    [
        ("NCCL_ALGO", "rings", "2.28.9", "error"),
        ("NCCL_ALGO", "rings", "2.23.4", "warning"),
        ("NCCL_ALGO", "Ring,Trees", "2.23.4", "warning"),
        ("NCCL_ALGO", "Ring, Tree", "2.24.3", "error"),
        ("NCCL_ALGO", "PAT", "2.22.3", "warning"),
        ("NCCL_ALGO", "allreduce:ring;allgather:^pat", "2.24.3", None),
        ("NCCL_ALGO", "allreduce:ring", "2.23.4", "warning"),
        ("NCCL_ALGO", "alltoall:ring", "2.24.3", "error"),
        ("NCCL_ALGO", "ring;tree", "2.24.3", "error"),
        ("NCCL_PROTO", "LL256", "2.23.4", "error"),
        ("NCCL_PROTO", "^LL256", "2.23.4", "warning"),
        ("NCCL_PROTO", "LL256", "2.24.3", "error"),
    ],
)
def test_algorithms_and_protocols(name: str, value: str, version: str, expected: str | None) -> None:
    assert weight(name, value, version) == expected


def test_log_categories() -> None:
    nothing = read("NCCL_DEBUG_SUBSYS", "INITS,NETS", "2.28.9")
    assert nothing is not None
    assert "all output is off" in nothing.what
    spaced = read("NCCL_DEBUG_SUBSYS", "INIT, NET", "2.28.9")
    assert spaced is not None
    assert spaced.better == "INIT,NET"
    assert read("NCCL_DEBUG_SUBSYS", "INIT, NET", "2.30.7") is None
    strict = read("NCCL_DEBUG_SUBSYS", "INIT,NETS", "2.30.7")
    assert strict is not None
    assert "whole value" in strict.what


@pytest.mark.parametrize(
    ("value", "expected", "better"),
    [
        ("eth0, eth1", "warning", "eth0,eth1"),
        (" eth0", "error", "eth0"),
        ("eth0\r", "error", "eth0"),
        ('"eth0"', "error", "eth0"),
        ("10.0.0.1", "error", None),
        ("10.0.0.0/16", "error", None),
        ("eth0,10.0.0.1", "warning", None),
        ("e", "warning", None),
        ("^", "warning", None),
        ("=^docker0", "error", "^=docker0"),
        ("^docker,^lo", "warning", "^docker,lo"),
        ("==eth0", "warning", "=eth0"),
        (",".join(f"eth{number}" for number in range(17)), "warning", None),
    ],
)
def test_lists_of_interfaces(value: str, expected: str, better: str | None) -> None:
    found = read("NCCL_SOCKET_IFNAME", value)
    assert found is not None
    assert (found.weight, found.better) == (expected, better)


@pytest.mark.parametrize(
    ("value", "family", "expected"),
    [
        ("10.0.0.0/16", "", None),
        ("fd00::/64", "AF_INET6", None),
        ("fd00::/64", "", "warning"),
        ("10.0.0.0/16", "AF_INET6", "warning"),
        ("10.0.0.0", "", "warning"),
        ("10.0.0.0/33", "", "warning"),
        ("10.0.0/16", "", "warning"),
        ("eth0/16", "", "warning"),
        ("10.0.0.0/", "", "warning"),
    ],
)
def test_ranges_of_addresses(value: str, family: str, expected: str | None) -> None:
    environment = {"NCCL_IB_ADDR_FAMILY": family} if family else {}
    assert weight("NCCL_IB_ADDR_RANGE", value, **environment) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("NCCL_DEBUG_FILE", "/tmp/nccl.%r.log", "warning"),
        ("NCCL_DEBUG_FILE", "~/nccl.%h.%p", "warning"),
        ("NCCL_DEBUG_FILE", "/tmp/nccl.log", "info"),
        ("NCCL_DEBUG_FILE", "/dev/stderr", None),
        ("NCCL_DEBUG_FILE", "/tmp/50%%.%h.%p", None),
        ("NCCL_TOPO_FILE", "~/topo.xml", "warning"),
        ("NCCL_COMM_ID", "", "error"),
        ("NCCL_COMM_ID", "[fd00::1", "error"),
        ("NCCL_NET", "tcp", "error"),
        ("NCCL_NET", "Socket ", "error"),
        ("NCCL_CTA_POLICY", "EFFICIENT", "warning"),
        ("NCCL_NETDEVS_POLICY", "MAX:2", None),
        ("NCCL_NETDEVS_POLICY", "MAX:0", "warning"),
        ("TORCH_DISTRIBUTED_DEBUG", "detail", None),
        ("TORCH_DISTRIBUTED_DEBUG", "1", "error"),
        ("TORCH_NCCL_BLOCKING_WAIT", "on", "error"),
        ("TORCHELASTIC_MAX_RESTARTS", "x", None),
    ],
)
def test_single_variables(name: str, value: str, expected: str | None) -> None:
    assert weight(name, value, "2.30.3") == expected


@given(
    st.sampled_from(sorted(TABLE)),
    st.text(max_size=30) | st.text(" ^=,:;|%/-+0123456789abcdefxAFINETlorings~.\r'\"", max_size=40),
    st.sampled_from(ALL),
)
def test_any_value_of_any_variable_is_judged_without_a_fault(name: str, value: str, version: str) -> None:
    found = misread(TABLE[name], value, version, {"NCCL_IB_ADDR_FAMILY": value})
    assert found is None or found.what


@given(
    st.sampled_from(sorted(TABLE)),
    st.text(" ^=,:0123456789abcIFNETlorings\r'\"", max_size=20),
    st.sampled_from(ALL),
)
def test_what_is_offered_instead_is_not_misread_again(name: str, value: str, version: str) -> None:
    found = read(name, value, version)
    if found is not None and found.better:
        again = read(name, found.better, version)
        assert again is None or again.better != found.better


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_DEBUG", "INFO"),
        ("NCCL_DEBUG", "info"),
        ("NCCL_DEBUG", "INFO "),
        ("NCCL_DEBUG", "true"),
        ("NCCL_DEBUG", "1"),
        ("NCCL_DEBUG", "DEBUG"),
        ("NCCL_DEBUG_SUBSYS", "INIT,BOOTSTRAP"),
        ("NCCL_DEBUG_SUBSYS", "INITS"),
        ("NCCL_DEBUG_SUBSYS", "bootstraps, INIT"),
    ],
)
@pytest.mark.parametrize(
    "library", libraries() or [None], ids=lambda path: path.parts[-5] if path else "none"
)
def test_the_real_library_is_mute_where_we_say_so(library: Path | None, name: str, value: str) -> None:
    if library is None:
        pytest.skip("no NCCL library: set NCCLCHECK_TEST_NCCL_LIBRARIES")
    environment = {"PATH": os.environ["PATH"], "NCCL_DEBUG": "INFO", name: value}
    command = [sys.executable, "-c", ASK, str(library)]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    first, _, log = asked.stdout.partition("\n")
    found = read(name, value, first.removeprefix("version "))
    is_mute = found is not None and ("prints nothing" in found.what or "all output is off" in found.what)
    assert ("NCCL INFO" in log) != is_mute


@pytest.mark.parametrize(
    ("value", "better"), [("1", "INFO"), ("true", "INFO"), ("error", "WARN"), ("2 3", None)]
)
def test_what_a_level_of_output_was_meant_to_be(value: str, better: str | None) -> None:
    wrong = misread(TABLE["NCCL_DEBUG"], value, "2.27.5")
    assert wrong is not None
    assert wrong.better == better


def test_a_blank_is_told_as_one() -> None:
    wrong = misread(TABLE["NCCL_SOCKET_FAMILY"], "AF_INET6 ", "2.27.5")
    assert wrong is not None
    assert "(without blanks or line ends)" in wrong.what


@pytest.mark.parametrize(
    ("value", "weight", "better"),
    [
        ("eth0;eth1", "error", "eth0,eth1"),
        ("eth0 eth1", "error", "eth0,eth1"),
        ("eth0|eth1", "error", "eth0,eth1"),
        ("eth*", "error", "eth"),
        ("=eth*", "error", None),
        ("eth0,ens*", "warning", "eth0,ens"),
        ("^docker*,lo", "warning", "^docker,lo"),
        ("!docker0", "error", None),
        ("$IFACE", "error", None),
        ("eth[0-3]", "error", None),
        ("\u201ceth0\u201d", "error", None),
    ],
)
@pytest.mark.parametrize("name", ["NCCL_SOCKET_IFNAME", "NCCL_IB_HCA"])
def test_signs_of_other_languages_are_part_of_a_name(
    name: str, value: str, weight: str, better: str | None
) -> None:
    wrong = misread(TABLE[name], value, "2.27.5")
    assert wrong is not None
    assert (wrong.weight, wrong.better) == (weight, better)


@pytest.mark.parametrize(
    "value", ["eth0.100", "br-1a2b", "enp0s31f6", "bond0@eth", "mlx5_bond_0:1", "wlan~1", "a_b"]
)
def test_signs_that_names_do_have_are_fine(value: str) -> None:
    assert misread(TABLE["NCCL_SOCKET_IFNAME"], value, "2.27.5") is None
