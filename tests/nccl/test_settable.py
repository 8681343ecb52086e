"""What a message may set: numbers, words and interfaces of NCCL, torch and Gloo, and nothing that could run or call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.nccl.settable import SETTABLE, first_refusal, refusal
from ncclcheck.nccl.variables.variables import TABLE

# What would run, load, write, read or call something of the sender's choice.
NEVER = [
    "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "BASH_ENV",
    "PYTHONINSPECT", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN", "NCCL_ENV_PLUGIN",
    "NCCL_GIN_PLUGIN", "NCCL_RMA_PLUGIN", "NCCL_IBVERBS_LIB", "NCCL_CUDA_PATH", "NCCL_DEBUG_FILE",
    "NCCL_CONF_FILE", "NCCL_TOPO_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_FILE", "NCCL_GRAPH_DUMP_FILE",
    "NCCL_COMM_ID", "NCCL_RAS_ADDR", "NCCL_RAS_ENABLE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "NCCL_HOME",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCHELASTIC_ERROR_FILE", "TORCH_FR_DUMP_TEMP_FILE", "CUDA_VISIBLE_DEVICES",
    "NCCL_PARAM_DUMP_ALL", "NCCL_DEV_API_JIT", "TORCH_NCCL_EXTRA_DUMP_ON_EXEC", "NCCL_PROXY_DUMP_SIGNAL",
    "GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY", "OMP_NUM_THREADS", "MASTER_ADDR", "UCX_TLS", "FI_PROVIDER_PATH", "",
]  # fmt: skip


@pytest.mark.parametrize("name", NEVER)
def test_nothing_that_could_run_load_write_or_call_is_set(name: str) -> None:
    assert refusal(name, "1") is not None
    assert name not in SETTABLE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_SOCKET_IFNAME", "=eth0"),
        ("NCCL_SOCKET_IFNAME", "^docker0,lo"),
        ("NCCL_SOCKET_IFNAME", "bond0.100"),
        ("NCCL_SOCKET_IFNAME", ""),
        ("NCCL_SOCKET_IFNAME", None),
        ("NCCL_COMM_ID", None),
        ("NCCL_SOCKET_FAMILY", "AF_INET6"),
        ("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1"),
        ("NCCL_IB_GID_INDEX", "3"),
        ("NCCL_IB_ADDR_RANGE", "10.0.0.0/16"),
        ("NCCL_NET", "Socket"),
        ("NCCL_NET", None),
        ("NCCL_NET_GDR_LEVEL", "PHB"),
        ("NCCL_ALGO", "allreduce:^tree,ring"),
        ("NCCL_DEBUG", "INFO"),
        ("NCCL_SOCKET_NTHREADS", "4"),
        ("NCCL_NSOCKS_PERTHREAD", "4"),
        ("TORCH_NCCL_BLOCKING_WAIT", "true"),
        ("GLOO_SOCKET_IFNAME", "eth0"),
    ],
)
def test_what_the_advice_sets_may_be_set(name: str, value: str | None) -> None:
    assert refusal(name, value) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_SOCKET_IFNAME", "eth0; rm -rf /"),
        ("NCCL_SOCKET_IFNAME", "eth0\n"),
        ("NCCL_SOCKET_IFNAME", "../../tmp/evil"),
        ("NCCL_IB_GID_INDEX", "3 "),
        ("NCCL_IB_GID_INDEX", "\u0663"),
        ("NCCL_IB_GID_INDEX", "9" * 30),
        ("NCCL_DEBUG", "/tmp/x"),
        ("NCCL_NET", "/tmp/libnccl-net.so"),
        ("NCCL_IB_ADDR_RANGE", "fe80::1%eth0"),
        ("GLOO_SOCKET_IFNAME", "a" * 2000),
        ("NCCL_ALGO", "$(id)"),
        ("NCCL_COMM_ID", "192.0.2.1:80"),
        ("NCCL_COMM_ID", ""),
        ("NCCL_SOCKET_IFNAME", "eth\x00"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(name: str, value: str) -> None:
    assert refusal(name, value) is not None


def test_the_reason_is_short_and_shows_nothing_a_terminal_would_obey() -> None:
    for reason in (
        refusal("\x1b[2J" + "x" * 1000, "1"),
        refusal("NCCL_DEBUG", "\x1b]0;x\x07" + "\u202e" * 900),
    ):
        assert reason is not None
        assert len(reason) < 500
        assert reason.isascii()
        assert reason.isprintable()


SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_^=,:;.@+-/")
NAMES = st.one_of(st.text(), st.sampled_from(sorted(TABLE)), st.sampled_from(NEVER))
VALUES = st.one_of(
    st.none(), st.text(), st.from_regex(r"[\^=]*[a-z0-9.,/$;]*"), st.integers().map(str), st.just("a\n")
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_whatever_is_let_through_is_a_table_name_with_a_harmless_value(
    environment: dict[str, str | None],
) -> None:
    if first_refusal(environment) is not None:
        return
    for name, value in environment.items():
        assert name in TABLE
        assert name not in NEVER or (name, value) == ("NCCL_COMM_ID", None)
        assert not {"PLUGIN", "FILE", "PATH", "PIPE", "LIB"} & set(name.split("_"))
        assert set(value or "") <= SAFE
        assert "/" not in (value or "") or TABLE[name].kind == "range"
        assert ".." not in (value or "") or "/" not in (value or "")
