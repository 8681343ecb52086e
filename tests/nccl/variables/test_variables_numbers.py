"""Switches and numbers: what NCCL and torch take for something else than it says."""

from __future__ import annotations

import pytest

from ncclcheck.nccl.variables.variables import TABLE
from ncclcheck.nccl.variables.variables_numbers import Misreading, misread_by_torch, misread_number


def nccl(name: str, value: str, version: str = "2.28.9") -> Misreading | None:
    return misread_number(TABLE[name], value, version)


@pytest.mark.parametrize("word", ["true", "TRUE", "yes", "on", "enabled", '"1"', "'true'"])
@pytest.mark.parametrize(
    "name",
    ["NCCL_IB_DISABLE", "NCCL_SHM_DISABLE", "NCCL_P2P_DISABLE", "NCCL_NVLS_ENABLE", "NCCL_OOB_NET_ENABLE"],
)
def test_a_yes_is_read_as_no(name: str, word: str) -> None:
    found = nccl(name, word)
    assert found is not None
    assert (found.weight, found.better) == ("error", "1")
    assert "read as 0" in found.what


@pytest.mark.parametrize("word", ["false", "no", "off", "False"])
def test_a_no_is_read_as_no_by_luck(word: str) -> None:
    found = nccl("NCCL_NVLS_ENABLE", word)
    assert found is not None
    assert (found.weight, found.better) == ("info", "0")


@pytest.mark.parametrize("value", ["", "0", "1", "2", "-2", "0x1", "01", "1 ", "1\r", "1\n", " 1"])
def test_plain_numbers_are_fine(value: str) -> None:
    assert nccl("NCCL_NVLS_ENABLE", value) is None


@pytest.mark.parametrize(
    ("name", "value", "weight", "words"),
    [
        ("NCCL_CUMEM_ENABLE", "auto", "error", "read as 0"),
        ("NCCL_COLLNET_ENABLE", "auto", "warning", "read as 0"),
        ("NCCL_IB_TC", "auto", "warning", "read as 0"),
        ("NCCL_IB_TIMEOUT", "022", "warning", "read as 18"),
        ("NCCL_IB_TIMEOUT", "08", "warning", "read as 0"),
        ("NCCL_BUFFSIZE", "4M", "warning", "read as 4"),
        ("NCCL_BUFFSIZE", "99999999999999999999", "warning", "64 bits"),
        ("NCCL_IB_DISABLE", "1 # off", "info", "read as 1"),
        ("NCCL_P2P_DISABLE", "2", "error", "only exactly 1"),
        ("NCCL_IB_TIMEOUT", "32", "warning", "from 0 to 31"),
        ("NCCL_IB_RETRY_CNT", "8", "warning", "from 0 to 7"),
        ("NCCL_IB_SL", "16", "warning", "from -1 to 15"),
        ("NCCL_IB_TC", "256", "warning", "from -1 to 255"),
        ("NCCL_SOCKET_NTHREADS", "17", "warning", "16 or less"),
        ("NCCL_NTHREADS", "100", "warning", "multiple of 32"),
        ("NCCL_NTHREADS", "1024", "warning", "from 64 to 512"),
        ("NCCL_MIN_CTAS", "0", "warning", "1 or more"),
    ],
)
def test_other_misreadings(name: str, value: str, weight: str, words: str) -> None:
    found = nccl(name, value)
    assert found is not None
    assert found.weight == weight
    assert words in found.what


@pytest.mark.parametrize("value", ["22", "31", "0", "0x14"])
def test_a_time_out_within_its_field_is_fine(value: str) -> None:
    assert nccl("NCCL_IB_TIMEOUT", value) is None


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("NCCL_IB_DISABLE", "true", "error"),
        ("NCCL_IB_DISABLE", "false", "info"),
        ("NCCL_NVLS_ENABLE", "true", "info"),
        ("NCCL_NVLS_ENABLE", "false", "error"),
        ("NCCL_NVLS_ENABLE", "'0'", "error"),
        ("NCCL_CUMEM_ENABLE", "auto", "warning"),
        ("NCCL_P2P_DISABLE", "true", "error"),
    ],
)
def test_from_2_32_a_word_leaves_the_default(name: str, value: str, expected: str) -> None:
    found = nccl(name, value, "2.32.3")
    assert found is not None
    assert found.weight == expected


def test_gid_minus_one_exists_from_2_21() -> None:
    assert nccl("NCCL_IB_GID_INDEX", "-1", "2.21.5") is None
    old = nccl("NCCL_IB_GID_INDEX", "-1", "2.20.5")
    assert old is not None
    assert old.weight == "error"


def test_from_2_30_7_a_few_switches_take_true_and_no_junk() -> None:
    assert nccl("NCCL_SET_THREAD_NAME", "true", "2.30.7") is None
    assert nccl("NCCL_SET_THREAD_NAME", "true", "2.30.4") is not None
    yes = nccl("NCCL_SET_THREAD_NAME", "yes", "2.32.3")
    assert yes is not None
    assert yes.better == "1"
    assert nccl("NCCL_SET_THREAD_NAME", "no", "2.32.3") is None


@pytest.mark.parametrize("value", ["1", "0", "true", "False", "YES", "n", "t"])
def test_torch_takes_words(value: str) -> None:
    assert misread_by_torch(TABLE["TORCH_NCCL_BLOCKING_WAIT"], value) is None


@pytest.mark.parametrize("value", ["on", "2", "", "enabled", " 1"])
def test_torch_raises_at_other_words(value: str) -> None:
    found = misread_by_torch(TABLE["TORCH_NCCL_BLOCKING_WAIT"], value)
    assert found is not None
    assert found.weight == "error"
    assert "raises" in found.what


@pytest.mark.parametrize(
    ("value", "weight"),
    [
        ("3", None),
        (" 1", None),
        ("ten", "error"),
        ("", "error"),
        ("99999999999", "error"),
        ("1x", "warning"),
        ("4", "warning"),
    ],
)
def test_torch_reads_integers_as_stoi_does(value: str, weight: str | None) -> None:
    found = misread_by_torch(TABLE["TORCH_NCCL_ASYNC_ERROR_HANDLING"], value)
    assert (found.weight if found else None) == weight


@pytest.mark.parametrize(
    ("value", "better"), [("\uff11", "1"), ("\u20131", "-1"), ("\u201c1\u201d", "1"), ("1\u200b", None)]
)
def test_digits_from_documents_are_told_and_put_right(value: str, better: str | None) -> None:
    wrong = misread_number(TABLE["NCCL_IB_DISABLE"], value, "2.27.5")
    assert wrong is not None
    assert wrong.better == better
    assert better is None or wrong.weight == "error"
