"""What a person may ask of tests of pairs."""

import pytest

from ncclcheck.model.benchmarks.isolation import parse_pair_size
from ncclcheck.model.errors import UsageError


@pytest.mark.parametrize(("text", "size_bytes"), [("64K", 1 << 16), ("100M", 100 << 20), ("4G", 1 << 32)])
def test_a_size_within_the_bounds_is_read(text: str, size_bytes: int) -> None:
    assert parse_pair_size(text) == size_bytes


@pytest.mark.parametrize("text", ["63K", "5G", "1M-4M", "large", "", "-1M"])
def test_another_size_is_refused_with_what_is_right(text: str) -> None:
    with pytest.raises(UsageError, match=r"^expected a size from 64K to 4G"):
        parse_pair_size(text)
