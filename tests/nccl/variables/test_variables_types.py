"""What the table says of one name for one version."""

from __future__ import annotations

import pytest

from ncclcheck.nccl.variables.variables import TABLE, lookup
from ncclcheck.nccl.variables.variables_types import (
    default_of,
    is_gone,
    is_read,
    is_too_new,
    values_of,
    where_from,
)


@pytest.mark.parametrize(
    ("name", "version", "default"),
    [
        ("NCCL_IB_TIMEOUT", "2.22.3", "18"),
        ("NCCL_IB_TIMEOUT", "2.23.4", "20"),
        ("NCCL_IB_TIMEOUT", "2.32.3", "20"),
        ("NCCL_IB_GID_INDEX", "2.20.5", "0"),
        ("NCCL_IB_GID_INDEX", "2.21.5", "-1"),
        ("NCCL_CUMEM_ENABLE", "2.18.3", "0"),
        ("NCCL_CUMEM_ENABLE", "2.19.3", "auto"),
        ("NCCL_IB_SPLIT_DATA_ON_QPS", "2.18.3", "1"),
        ("NCCL_NVLS_ENABLE", "2.28.9", "2"),
        ("NCCL_SOCKET_IFNAME", "2.28.9", ""),
    ],
)
def test_the_default_is_that_of_the_version(name: str, version: str, default: str) -> None:
    assert default_of(TABLE[name], version) == default


@pytest.mark.parametrize(
    ("name", "version", "too_new", "gone"),
    [
        ("NCCL_MNNVL", "2.19.3", True, False),
        ("NCCL_MNNVL", "2.20.5", False, False),
        ("NCCL_MNNVL", "2.21.5", False, True),
        ("NCCL_RUN_DIAGNOSTICS", "2.30.7", True, False),
        ("NCCL_RUN_DIAGNOSTICS", "2.32.3", False, False),
        ("NCCL_DEBUG", "2.4.2", False, False),
        ("NCCL_SHM_USE_CUDA_MEMCPY", "2.30.7", False, True),
        ("ENABLE_NCCL_HEALTH_CHECK", "2.1.2", False, False),
        ("ENABLE_NCCL_HEALTH_CHECK", "2.2.0", False, True),
    ],
)
def test_a_variable_is_read_between_its_bounds(name: str, version: str, too_new: bool, gone: bool) -> None:
    one = TABLE[name]
    assert (is_too_new(one, version), is_gone(one, version)) == (too_new, gone)
    assert is_read(one, version) == (not too_new and not gone)


def test_words_come_with_their_version() -> None:
    assert "PAT" not in values_of(TABLE["NCCL_ALGO"], "2.22.3")
    assert "PAT" in values_of(TABLE["NCCL_ALGO"], "2.23.4")
    assert "ATTN" in values_of(TABLE["NCCL_DEBUG"], "2.32.3")
    assert values_of(TABLE["NCCL_PROTO"], "2.18.1") == ("LL", "LL128", "Simple")


def test_the_source_is_a_file_of_the_owner() -> None:
    assert where_from(TABLE["NCCL_SOCKET_IFNAME"]) == "NCCL src/misc/socket.cc"
    assert (
        where_from(TABLE["TORCH_NCCL_BLOCKING_WAIT"])
        == "torch torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp"
    )
    family = lookup("NCCL_FASTRAK_X")
    assert family is not None
    assert where_from(family) == "Google plug-in google/nccl-plugin-gpudirect-tcpxo"
