"""Which settings are tried, and what NCCL's manual says of keeping them."""

from __future__ import annotations

import pytest

from ncclcheck.nccl.variables.trying import _SYSTEM, class_of, forces_ll128, not_tried, unread
from ncclcheck.nccl.variables.variables import TABLE


def test_the_names_of_the_manual_are_variables_that_nccl_reads() -> None:
    assert {name for name in _SYSTEM if name not in TABLE} == set()


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["NCCL_ALGO"], "debugging"),
        (["NCCL_SOCKET_NTHREADS"], "system"),
        (["NCCL_CROSS_NIC", "NCCL_BUFFSIZE"], "debugging"),
        (["GLOO_SOCKET_IFNAME"], "system"),
    ],
)
def test_the_class_of_a_setting_is_the_manuals(names: list[str], kind: str) -> None:
    assert class_of(names) == kind


def test_what_a_backend_does_not_read_is_told() -> None:
    assert "does not read NCCL_ALGO" in unread(["NCCL_ALGO"], "gloo")
    assert "does not read GLOO_SOCKET_IFNAME" in unread(["GLOO_SOCKET_IFNAME"], "nccl")
    assert unread(["NCCL_ALGO"], "gloo").endswith("(of what may be tried, it reads GLOO_SOCKET_IFNAME)")
    assert unread(["GLOO_SOCKET_IFNAME"], "gloo") == unread(["NCCL_ALGO"], "nccl") == ""


@pytest.mark.parametrize(
    ("value", "forces"),
    [
        ("LL128", True),
        ("ll,ll128", True),
        ("^LL128", False),
        ("LL,Simple", False),
        ("^LL128;allreduce:LL128", True),
        ("^LL128,LL", False),
        # With ^ NCCL enables every protocol that is not named, LL128 too, and asks the platform no more.
        ("^LL", True),
        ("^simple", True),
        ("^", True),
        ("allreduce:^LL", True),
        ("allreduce:^LL128", False),
        ("Simple;allreduce:^LL", True),
        # strtok passes over empty words, and what follows a second colon is not read.
        ("allreduce:LL128:LL", True),
        ("allreduce::LL128", True),
        # Up to 2.23 the whole value is one list, so LL128 is not excluded here.
        ("^LL128;allreduce:LL", True),
        ("allreduce:^LL,LL128", True),
    ],
)
def test_ll128_is_forced_where_it_is_named_or_not_excluded(value: str, forces: bool) -> None:
    assert forces_ll128({"NCCL_PROTO": value}) is forces
    assert not forces_ll128({"NCCL_ALGO": "Tree"})


def test_what_the_benchmark_itself_sets_is_not_tried() -> None:
    assert "the benchmark's own" in not_tried("NCCL_DEBUG")
    assert not_tried("NCCL_ALGO") == ""
