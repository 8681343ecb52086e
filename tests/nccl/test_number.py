"""The number parser against C's own strtoll, and against real NCCL libraries where they are given."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.nccl.number import number, strtoll
from tests.nccl.test_against_library import libraries

_ERANGE = 34
_ALPHABET = " \t\n\r+-0123456789abcfxXoO#.,'\"eyes"

ASK = """
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
version = ctypes.c_int()
library.ncclGetVersion(ctypes.byref(version))
print("version", version.value, flush=True)
library.ncclGetUniqueId(ctypes.create_string_buffer(128))
"""


def by_c(text: str) -> tuple[int | None, str]:
    """The number that C reads (None: out of range), and what it leaves."""
    library = ctypes.CDLL(None, use_errno=True)
    library.strtoll.restype = ctypes.c_longlong
    raw = text.encode()
    buffer = ctypes.create_string_buffer(raw)
    end = ctypes.c_void_p()
    ctypes.set_errno(0)
    value = library.strtoll(buffer, ctypes.byref(end), 0)
    read = (end.value or 0) - ctypes.addressof(buffer)
    return (None if ctypes.get_errno() == _ERANGE else value), raw[read:].decode()


@given(st.one_of(st.text(_ALPHABET, max_size=24), st.integers().map(str), st.integers().map(hex)))
def test_every_text_is_read_as_c_reads_it(text: str) -> None:
    parsed = strtoll(text)
    assert (parsed.value, parsed.rest) == by_c(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("true", 0), ("yes", 0), ("010", 8), ("0x10", 16), ("08", 0), ("1 # comment", 1), (" -2", -2),
        ("4M", 4), ("0x", 0), ("+7", 7), ("9" * 5000, 42), ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", 42), ("", 42), (None, 42), ("1\r", 1),
    ],
)  # fmt: skip
def test_nccl_takes_the_number_or_the_default(text: str | None, value: int) -> None:
    assert number(text, 42, "2.28.9") == value


@pytest.mark.parametrize(("version", "value"), [("2.18.1", 0), ("2.31.2", 0), ("2.32.3", 42)])
def test_from_2_32_words_are_refused(version: str, value: int) -> None:
    assert number("true", 42, version) == value
    assert number("+", 42, version) == value
    assert number("0x", 42, version) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["010", "08", "true", "0x1F", " 7", "12 # a", "-3", "4M", "99999999999999999999", "1\r", "'5'"]
)
@pytest.mark.parametrize(
    "library", libraries() or [None], ids=lambda path: path.parts[-5] if path else "none"
)
def test_the_real_library_reads_the_same_number(library: Path | None, text: str) -> None:
    if library is None:
        pytest.skip("no NCCL library: set NCCLCHECK_TEST_NCCL_LIBRARIES")
    environment = {
        "PATH": os.environ["PATH"],
        "NCCL_SOCKET_RCVBUF": text,
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "ALL",
    }
    asked = subprocess.run(
        [sys.executable, "-c", ASK, str(library)],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    )
    told = re.search(r"NCCL_SOCKET_RCVBUF set by environment to (-?\d+)", asked.stdout)
    refused = re.search(r"Invalid value .* for NCCL_SOCKET_RCVBUF, using default (-?\d+)", asked.stdout)
    line = told or refused
    if line is None:
        pytest.skip(f"this NCCL does not read NCCL_SOCKET_RCVBUF (from 2.27.3): {asked.stdout[-200:]}")
    version = re.search(r"^version (\d+)$", asked.stdout, re.MULTILINE)
    assert version is not None
    assert int(line[1]) == number(text, -1, version[1])
