"""Names that never existed, and slips of the pen."""

from __future__ import annotations

import pytest

from ncclcheck.nccl.variables.variables import TABLE, lookup
from ncclcheck.nccl.variables.variables_folklore import FOLKLORE, did_you_mean, folklore


@pytest.mark.parametrize("name", FOLKLORE)
def test_folklore_is_in_no_table(name: str) -> None:
    assert lookup(name) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NCCL_TIMEOUT", "init_process_group(timeout=...)"),
        ("NCCL_ALLREDUCE_TIMEOUT_MS", "init_process_group(timeout=...)"),
        ("NCCL_SOCKET_TIMEOUT", "NCCL_SOCKET_RETRY_CNT"),
        ("NCCL_PORT_MIN", "ip_local_port_range"),
        ("NCCL_ROCE_PRIORITY", "NCCL_IB_"),
        ("NCCL_IB_GID", "NCCL_IB_GID_INDEX"),
        ("NCCL_LOG_LEVEL", "NCCL_DEBUG"),
    ],
)
def test_folklore_says_what_does_it(name: str, words: str) -> None:
    advice = folklore(name)
    assert advice is not None
    assert words in advice


@pytest.mark.parametrize("name", ["NCCL_FOO", "TORCH_NCCL_FOO", "NCCL_SUPPORT"])
def test_other_names_are_no_folklore(name: str) -> None:
    assert folklore(name) is None


@pytest.mark.parametrize(
    ("slip", "name"),
    [
        ("NCCL_SOCKET_IFNAM", "NCCL_SOCKET_IFNAME"),
        ("NCCL_SOKCET_IFNAME", "NCCL_SOCKET_IFNAME"),
        ("NCCL_DEUBG", "NCCL_DEBUG"),
        ("NCCL_IB_DISABLED", "NCCL_IB_DISABLE"),
        ("NCCL_DISABLE_P2P", "NCCL_P2P_DISABLE"),
        ("TORCH_NCCL_ASYNC_ERR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
        ("GLOO_SOCKET_IFNAMES", "GLOO_SOCKET_IFNAME"),
    ],
)
def test_a_slip_leads_to_the_name(slip: str, name: str) -> None:
    assert did_you_mean(slip) == name


@pytest.mark.parametrize("name", ["NCCL_MY_OWN_THING", "NCCL_X", "GLOO_SOMETHING_ELSE"])
def test_what_is_near_nothing_leads_nowhere(name: str) -> None:
    assert did_you_mean(name) is None


def test_one_dropped_letter_of_any_known_name_leads_to_it_or_a_nearer_one() -> None:
    for name in sorted(TABLE)[::20]:
        slip = name[:-1] if len(name) > 12 else name
        assert slip in TABLE or did_you_mean(slip) is not None
