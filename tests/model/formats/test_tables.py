"""The tables that ship with the package are decoded strictly."""

from __future__ import annotations

import msgspec
import pytest

from ncclcheck.model.formats.tables import load_table


def test_a_table_of_the_package_is_decoded() -> None:
    families = load_table("ncclcheck.nccl.variables", "families.toml", dict[str, dict[str, str]])
    assert families["UCX_"] == {"owner": "UCX", "source": "openucx/ucx"}


def test_a_table_that_does_not_fit_is_an_error_that_names_the_entry() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Expected `int`, got `str`"):
        load_table("ncclcheck.nccl.variables", "families.toml", dict[str, dict[str, int]])


def test_a_table_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        load_table("ncclcheck.nccl.variables", "none.toml", dict[str, str])
