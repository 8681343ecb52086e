"""What each key of a policy may say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.model.policy.expected import Number, Subnet, Text, VersionRange
from ncclcheck.model.policy.policy_values import SECTIONS, VARIABLE, WrongValueError


def read(key: str, value: Any) -> object:
    section, _, name = key.partition(".")
    return (VARIABLE if section == "environment" else SECTIONS[section][name]).read(value)


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("versions.torch", "2.9.0+cu128", VersionRange("2.9.0+cu128")),
        ("versions.driver", "==570.*", VersionRange("==570.*")),
        ("versions.nccl", ">=2.27,!=2.28.1,<2.30", VersionRange(">=2.27,!=2.28.1,<2.30")),
        ("versions.kernel", "6.8.0-45-generic", VersionRange("6.8.0-45-generic")),
        ("gpu.model", ["NVIDIA H100*", "NVIDIA H200"], Text(("NVIDIA H100*", "NVIDIA H200"), True)),
        ("gpu.memory", "79G", Number(79.0 * (1 << 20), "KiB", True)),
        ("gpu.compute_capability", "9.0", Text(("9.0",))),
        ("network.subnet", "10.0.0.0/16", Subnet(("10.0.0.0/16",))),
        ("network.mtu", 9000, Number(9000)),
        ("rdma.rate_gbit_s", 400, Number(400.0, "Gbit/s", True)),
        ("rdma.link_layer", "Ethernet", Text(("Ethernet",))),
        ("rdma.link_layer", ["Ethernet", "InfiniBand"], Text(("Ethernet", "InfiniBand"))),
        ("pcie.gpu_width", 16, Number(16, "lanes", True)),
        ("limits.memlock", "unlimited", Number(None, "KiB", True)),
        ("limits.memlock", "64M", Number(65536.0, "KiB", True)),
        ("environment.X", "", Text(("",))),
    ],
)
def test_a_value_is_read_as_it_is_meant(key: str, value: Any, wanted: object) -> None:
    assert read(key, value) == wanted


@pytest.mark.parametrize(
    ("key", "value", "right"),
    [
        ("versions.torch", 2.9, "expected a version"),
        ("versions.torch", "", "expected a version"),
        ("versions.torch", "newest", "expected a version"),
        ("versions.torch", "^2.9", "expected a version"),
        ("versions.torch", "2.x", "expected a version"),
        ("versions.torch", "2.9.*", 'write "==2.9.*"'),
        ("versions.torch", ">=two", "no range of versions"),
        ("versions.torch", ">=3,<2", "impossible: no version"),
        ("versions.torch", ">2.0,<=2.0", "impossible: no version"),
        ("versions.torch", "==2.9.*,<2.8", "impossible: no version"),
        ("versions.torch", "~=2.2,<2", "impossible: no version"),
        ("gpu.model", [], "expected a model"),
        ("gpu.model", ["a", 3], "expected a model"),
        ("gpu.memory", 80, "expected a size"),
        ("gpu.memory", "80GB", "write 80G"),
        ("gpu.memory", "unlimited", "is no size"),
        ("gpu.compute_capability", 9.0, "expected a compute capability"),
        ("gpu.compute_capability", "90", "expected a compute capability"),
        ("network.subnet", "10.0.0.1/8", "has host bits set"),
        ("network.subnet", "10.0.0.1", "has no length"),
        ("network.subnet", "10.0.0.0/33", "expected a network"),
        ("network.mtu", 9, "impossible: expected 68 to 65536"),
        ("network.speed_gbit_s", 0, "impossible"),
        ("network.speed_gbit_s", True, "expected a number in Gbit/s"),
        ("rdma.rate_gbit_s", float("nan"), "impossible"),
        ("rdma.rate_gbit_s", float("inf"), "impossible"),
        ("rdma.link_layer", "infiniband", 'expected "InfiniBand" or "Ethernet"'),
        ("rdma.link_layer", [], 'expected "InfiniBand" or "Ethernet"'),
        ("rdma.link_layer", ["Ethernet", 1], 'expected "InfiniBand" or "Ethernet"'),
        ("pcie.nic_width", 7, "expected a number of lanes"),
        ("limits.nofile", 0, "impossible"),
        ("environment.X", 3, "expected the value as a text"),
        ("environment.X", [], "expected the value as a text"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_what_is_allowed(key: str, value: Any, right: str) -> None:
    with pytest.raises(WrongValueError) as caught:
        read(key, value)
    assert right in str(caught.value)


@given(
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def test_a_range_is_refused_exactly_when_it_is_empty(low: tuple[int, int], high: tuple[int, int]) -> None:
    text = f">={low[0]}.{low[1]},<{high[0]}.{high[1]}"
    if low < high:
        assert read("versions.nccl", text) == VersionRange(text)
    else:
        with pytest.raises(WrongValueError):
            read("versions.nccl", text)


@given(st.one_of(st.none(), st.floats(), st.text(), st.integers(), st.lists(st.text()), st.booleans()))
def test_whatever_a_file_says_is_a_demand_or_a_sentence(value: Any) -> None:
    for section, kinds in SECTIONS.items():
        for key in kinds:
            try:
                said = str(read(f"{section}.{key}", value))
            except WrongValueError as error:
                said = str(error)
            assert said
