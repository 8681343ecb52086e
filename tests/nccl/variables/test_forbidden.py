"""What is not tried because NCCL's manual, or its reading of the value, speaks against it."""

from __future__ import annotations

import pytest

from ncclcheck.nccl.settable import SETTABLE
from ncclcheck.nccl.variables.forbidden import _RULES, forbidden


@pytest.mark.parametrize(
    ("arm", "words"),
    [
        ({"NCCL_IB_TIMEOUT": "0"}, "infinite timeout"),
        ({"NCCL_IB_TIMEOUT": "0x20"}, "infinite timeout"),
        ({"NCCL_IB_TIMEOUT": "22"}, ""),
        ({"NCCL_LEGACY_CUDA_REGISTER": "1"}, "possibly cause a hang"),
        ({"NCCL_LEGACY_CUDA_REGISTER": "0"}, ""),
        ({"NCCL_MULTI_RANK_GPU_ENABLE": "1"}, "lock NCCL"),
        ({"NCCL_IGNORE_COLLNET_MISMATCH": "1"}, "misconfiguration"),
        ({"NCCL_GRAPH_STREAM_ORDERING": "0"}, "order all communication"),
        ({"NCCL_GRAPH_MIXING_SUPPORT": "0"}, "not supported"),
        ({"NCCL_SOCKET_NTHREADS": "16", "NCCL_NSOCKS_PERTHREAD": "5"}, '"cannot exceed 64"'),
        ({"NCCL_SOCKET_NTHREADS": "16", "NCCL_NSOCKS_PERTHREAD": "4"}, ""),
        ({"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"}, ""),
        ({"NCCL_BUFFSIZE": "8388608"}, ""),
        ({"NCCL_ALGO": "Trees"}, "is not tried: the value"),
        ({"NCCL_IB_QPS_PER_CONNECTION": "500"}, "is not tried: the value"),
        ({"GLOO_SOCKET_IFNAME": "eth1"}, ""),
    ],
)
def test_what_the_manual_warns_of_and_what_is_misread_is_not_tried(arm: dict[str, str], words: str) -> None:
    found = forbidden(arm)
    assert (words in found) if words else not found, found


def test_every_rule_is_of_a_setting_that_could_be_tried_else() -> None:
    assert set(_RULES) <= SETTABLE
