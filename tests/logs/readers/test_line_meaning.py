"""What one line tells by itself."""

from __future__ import annotations

import pytest

from ncclcheck.logs.readers.line_meaning import group_of, meant, rank_named_in, table_values, warning_in


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("RuntimeError: Rank 1, node tj-82: Unexpected result nan", 1),
        ("DistBackendError: [7] is setting up NCCL communicator and retrieving ncclUniqueId from [0]", 7),
        ("step 7 of rank counts", None),
    ],
)
def test_the_rank_that_a_message_names(text: str, rank: int | None) -> None:
    assert rank_named_in(text) == rank


def test_nccls_own_words() -> None:
    assert warning_in("init.cc:1 NCCL WARN Duplicate GPU detected") == "Duplicate GPU detected"
    assert warning_in("Last error: socketProgress: closed") == "socketProgress: closed"
    assert warning_in("step 3") == ""


def test_what_the_tables_say_of_a_line() -> None:
    group = group_of("unsatisfied condition: cuda>=12.8, please update your driver", "nvidia-container-cli")
    assert group is not None
    assert table_values(group)["means"] == group.means
    values = meant("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000")
    assert values["cause"] == "duplicate-gpu"
    assert meant("words that no release has") == {"text": "words that no release has"}
