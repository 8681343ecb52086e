"""The TCP connections of ranks as the kernel counts them, asked over netlink (sock_diag(7)) without any privilege."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ncclcheck.facts.job.rank_processes import RankProcess
from ncclcheck.model.job.watched import Connection
from ncclcheck.timeouts import SOCK_DIAG_S

_SOCK_DIAG, _BY_FAMILY, _DONE, _ERROR = 4, 20, 3, 2
_REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ESTABLISHED_CLOSING = (1 << 1) | (1 << 4) | (1 << 8)  # ESTABLISHED, FIN_WAIT1, CLOSE_WAIT
_INFO = 2  # INET_DIAG_INFO: struct tcp_info
_HEADER = struct.Struct("=IHHII")
_ASKED = struct.Struct("=BBBBI48s")  # struct inet_diag_req_v2
_ANSWER = struct.Struct("=BBBB2s2s16s16sI8sIIIII")  # struct inet_diag_msg
_ATTRIBUTE = struct.Struct("=HH")
# tcpi_retransmits and tcpi_probes: 0 again after an acknowledgement. Where a filter of this node drops what it sends,
# new bytes never count as sent, and the kernel only probes.
_RETRIES = struct.Struct("=2xBB")
_RETRANSMITS = struct.Struct("=100xI")  # total_retrans; tcp_info only ever grows at its end
_SEGMENTS_IN = struct.Struct("=140xI")  # Linux 4.2
_MOST_BYTES = 1 << 20
_MOST_CONNECTIONS = 100_000


def connections_of(ranks: Sequence[RankProcess]) -> tuple[Connection, ...]:
    """Return the TCP connections of these ranks to other machines, as they are now.

    Raises OSError where the kernel does not answer.
    """
    rank_of = {inode: rank.rank for rank in ranks for inode in _socket_inodes(rank.pid)}
    found = []
    for family in (socket.AF_INET, socket.AF_INET6):
        for inode, connection in _dumped(family):
            if inode in rank_of and not connection.peer[0].startswith(("127.", "::1")):
                found.append(replace(connection, rank=rank_of[inode]))
    return tuple(found)


def _socket_inodes(pid: int) -> Iterator[int]:
    folder = Path("/proc", str(pid), "fd")
    with suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 (names only)
            with suppress(OSError):
                target = str((folder / name).readlink())
                if target.startswith("socket:["):
                    yield int(target[8:-1])


def _dumped(family: int) -> Iterator[tuple[int, Connection]]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as asking:
        asking.settimeout(SOCK_DIAG_S)
        asked = _ASKED.pack(family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, _ESTABLISHED_CLOSING, bytes(48))
        asking.send(_HEADER.pack(_HEADER.size + len(asked), _BY_FAMILY, _REQUEST_DUMP, 1, 0) + asked)
        for _ in range(_MOST_CONNECTIONS):
            data = asking.recv(_MOST_BYTES)
            for kind, body in _messages(data):
                if kind in (_DONE, _ERROR):
                    return
                if len(body) >= _ANSWER.size:
                    yield _read(family, body)


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _HEADER.size:
        length, kind, *_ = _HEADER.unpack_from(data)
        if length < _HEADER.size:
            return
        yield kind, data[_HEADER.size : length]
        data = data[(length + 3) & ~3 :]


def _read(family: int, body: bytes) -> tuple[int, Connection]:
    fields = _ANSWER.unpack_from(body)
    local_port, peer_port, local, peer = fields[4:8]
    queued, inode = fields[12], fields[14]
    info = dict(_attributes(body[_ANSWER.size :])).get(_INFO, b"")
    return inode, Connection(
        None,
        (_address(family, local), int.from_bytes(local_port, "big")),
        (_address(family, peer), int.from_bytes(peer_port, "big")),
        queued,
        _RETRANSMITS.unpack_from(info)[0] if len(info) >= _RETRANSMITS.size else 0,
        _SEGMENTS_IN.unpack_from(info)[0] if len(info) >= _SEGMENTS_IN.size else None,
        max(_RETRIES.unpack_from(info)) if len(info) >= _RETRIES.size else 0,
    )


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        if length < _ATTRIBUTE.size:
            return
        yield kind, data[_ATTRIBUTE.size : length]
        data = data[(length + 3) & ~3 :]


def _address(family: int, data: bytes) -> str:
    text = socket.inet_ntop(family, data[:4] if family == socket.AF_INET else data)
    return text.removeprefix("::ffff:")
