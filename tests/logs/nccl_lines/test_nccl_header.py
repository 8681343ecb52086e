"""NCCL's prefix of a line, whole or torn."""

from __future__ import annotations

import pytest

from ncclcheck.logs.nccl_lines.nccl_header import parse, torn_apart


@pytest.mark.parametrize(
    ("text", "host", "pid", "source", "before"),
    [
        ("n1:22:33 [0] ", "n1", 22, "", ""),
        ("3: n1:22:33 [32767] ", "n1", 22, "", "3: "),
        (
            "[2025-03-14 09:42:29] n1:22:33 [0] misc/socket.cc:618 ",
            "n1",
            22,
            "misc/socket.cc:618",
            "[2025-03-14 09:42:29] ",
        ),
        ("n1:22:33 [0] init.cc:80 (commAlloc) ", "n1", 22, "init.cc:80 (commAlloc)", ""),
        ("n1 :22:33 [-1] ", "n1", 22, "", ""),
    ],
)
def test_versions_and_launchers(text: str, host: str, pid: int, source: str, before: str) -> None:
    header = parse(text)
    assert header is not None
    assert (header.host, header.pid, header.source, header.before) == (host, pid, source, before)


def test_what_is_damaged_is_none() -> None:
    assert parse("some text ") is None


def test_two_processes_in_one_line() -> None:
    line = b"[b1] b1:1:2 [0] NCCL INFO NET/Plug[b1] b1:3:4 [1] NCCL INFO Using network Socket"
    assert [part[-20:] for part in torn_apart(line)] == [
        b"INFO NET/Plug[b1] ",
        b"Using network Socket",
    ] or len(torn_apart(line)) == 2
    assert torn_apart(b"n1:1:2 [0] NCCL INFO NCCL version 2.1") == [b"n1:1:2 [0] NCCL INFO NCCL version 2.1"]
