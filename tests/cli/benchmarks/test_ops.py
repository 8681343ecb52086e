"""The collectives that --ops names."""

from __future__ import annotations

import pytest

from ncclcheck.cli.benchmarks.ops import given_ops
from ncclcheck.model.errors import UsageError


def test_names_are_read_as_nccl_tests_and_torch_write_them() -> None:
    assert given_ops({"ops": [("allreduce", "All-Gather"), ("all_reduce",)]}) == ("all_reduce", "all_gather")
    assert given_ops({}) == ()
    assert len(given_ops({"ops": [("all",)]})) > 5


def test_another_name_is_refused() -> None:
    with pytest.raises(UsageError, match="this version measures"):
        given_ops({"ops": [("barrier",)]})
