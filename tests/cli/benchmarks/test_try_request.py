"""`bench --try` and the options beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ncclcheck.cli.benchmarks.try_request import try_request
from ncclcheck.cli.request import bench_request, run_options
from ncclcheck.model.errors import UsageError
from ncclcheck.timeouts import TRY_BUDGET_S


def test_settings_of_the_command_line_and_of_a_file_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "arms"
    file.write_text("# by size\n\nNCCL_BUFFSIZE=8388608\nNCCL_IB_HCA=mlx5_0,mlx5_1,NCCL_CROSS_NIC=1\n")
    found = try_request(
        {"try_": ("NCCL_ALGO=Tree,NCCL_PROTO=LL",), "try_file": str(file), "gain": "5%", "seed": 3}
    )
    assert found is not None
    assert found.arms == (
        {"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"},
        {"NCCL_BUFFSIZE": "8388608"},
        {"NCCL_IB_HCA": "mlx5_0,mlx5_1", "NCCL_CROSS_NIC": "1"},
    )
    assert (found.gain, found.seed) == (0.05, 3)


def test_without_a_setting_there_is_nothing() -> None:
    assert try_request({}) is None
    assert try_request({"seed": 3}) is None  # of isolate


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"try_": ("NCCL_ALGO",)}, "expected NAME=VALUE"),
        ({"try_": ("NCCL_ALGO=",)}, "expected NAME=VALUE"),
        ({"try_": ("NCCL_ALGO=Tree", "NCCL_ALGO=Tree")}, "tried already"),
        ({"try_": ("NCCL_ALGO=Tree,NCCL_ALGO=Ring",)}, "twice"),
        ({"try_": ("FOO=1",)}, "'FOO' is not known as a variable of NCCL, torch or Gloo"),
        ({"try_": ("NCCL_ALGOS=Tree",)}, "did you mean NCCL_ALGO"),
        ({"try_": ("LD_PRELOAD=/tmp/x.so",)}, "'LD_PRELOAD' is not"),
        ({"try_": ("NCCL_NET_PLUGIN=/tmp/x.so",)}, "a number, a word or a list of interfaces"),
        (
            {"try_": ("GLOO_SOCKET_IFNAME=eth1", "NCCL_ALGO=Tree"), "backend": "gloo"},
            "does not read NCCL_ALGO",
        ),
        ({"try_": ("GLOO_SOCKET_IFNAME=eth1",), "backend": "nccl"}, "does not read GLOO_SOCKET_IFNAME"),
        ({"try_": ("NCCL_DEBUG=TRACE",)}, "the benchmark's own"),
        ({"try_": ("NCCL_BUFFSIZE=large",)}, "does not fit the type"),
        ({"try_": tuple(f"NCCL_BUFFSIZE={number}" for number in range(1, 18))}, "16 at most"),
        ({"try_": (), "gain": "3%"}, "add --try"),
        ({"try_": (), "seed": 1}, "add --try"),
        ({"try_": ("NCCL_ALGO=Tree",), "gain": "0.1%"}, "from 1 to 50"),
        ({"try_": ("NCCL_ALGO=Tree",), "isolate": True}, "--isolate and --try"),
        ({"try_": ("NCCL_ALGO=Tree",), "mesh": "dp=2"}, "--mesh and --try"),
        ({"try_file": "/nonexistent/arms"}, "--try-file"),
        ({"try_": ("NCCL_IB_TIMEOUT=0",)}, "a dead link would never be noticed"),
        ({"try_": ("NCCL_ALGO=Ring,NCCL_LEGACY_CUDA_REGISTER=1",)}, "possibly cause a hang"),
    ],
)
def test_what_cannot_be_tried_is_refused_with_a_sentence(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        try_request(given)


def test_trials_have_a_budget_and_sizes_of_their_own() -> None:
    request = bench_request({"try_": ("GLOO_SOCKET_IFNAME=eth1",)})
    assert (request.budget_s, request.ops, len(request.sizes_bytes)) == (TRY_BUDGET_S, ("all_reduce",), 2)
    assert (
        bench_request({"try_": ("GLOO_SOCKET_IFNAME=eth1",), "budget": 60.0, "sizes": "4M"}).budget_s == 60.0
    )
    assert bench_request({}).tries is None


def test_a_file_without_a_setting_is_no_plain_benchmark(tmp_path: Path) -> None:
    file = tmp_path / "arms"
    file.write_text("# NCCL_ALGO=Tree\n\n")
    with pytest.raises(UsageError, match="there is no setting in it"):
        try_request({"try_file": str(file)})


@pytest.mark.parametrize(
    "line", ["X" * (1 << 19), "NCCL_ALGO=" + "X" * (1 << 19), "NCCL_ALGO=Ring,FOO" + "O" * 9999 + "=1"]
)
def test_a_bad_line_of_a_file_is_named_and_not_repeated_as_a_whole(tmp_path: Path, line: str) -> None:
    file = tmp_path / "arms"
    file.write_text(f"# by size\nNCCL_BUFFSIZE=8388608\n{line}\n")
    with pytest.raises(UsageError, match=r"arms, line 3: '") as told:
        try_request({"try_file": str(file)})
    assert len(str(told.value)) < 300 + len(str(file))


def test_a_file_of_very_many_settings_is_refused_before_they_are_compared(tmp_path: Path) -> None:
    file = tmp_path / "arms"
    file.write_text("".join(f"NCCL_BUFFSIZE={number}\n" for number in range(1, 50_000)))
    with pytest.raises(UsageError, match=r"^49999 settings to try: 16 at most"):
        try_request({"try_file": str(file)})


@pytest.mark.parametrize(
    ("line", "setting", "is_allowed"),
    [
        ("NCCL_ALGO = false", "NCCL_ALGO=Tree", False),
        ("NCCL_ALGO = true", "NCCL_ALGO=Tree", True),
        ('NCCL_CROSS_NIC = ["0", "2"]', "NCCL_CROSS_NIC=1", False),
        ('NCCL_CROSS_NIC = ["0", "2"]', "NCCL_CROSS_NIC=0", True),
        ("NCCL_ALGO = false", "NCCL_BUFFSIZE=8388608", True),
    ],
)
def test_what_the_policy_does_not_allow_is_not_tried(
    tmp_path: Path, line: str, setting: str, is_allowed: bool
) -> None:
    file = tmp_path / "site.toml"
    file.write_text(f"[environment]\n{line}\n")
    given = {"expect": str(file), "try_": (setting,)}
    if is_allowed:
        assert run_options("bench", given).bench.tries is not None
        return
    with pytest.raises(UsageError, match=r"site\.toml, line 2 wants it .*could not be kept"):
        run_options("bench", given)
