"""Attacks by datagram, and what was seen on the wire, once more."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from contextlib import suppress

from scripts.attacking.field import Field, again, attack, datagrams

_HEADERS = 14 + 20  # Ethernet and IPv4
_FIN_OR_SYN = 0x03


@attack
def datagram_garbage(field: Field) -> None:
    """Send random datagrams."""
    datagrams(field, lambda: field.random.randbytes(field.random.randrange(1, 1400)))


@attack
def datagram_huge(field: Field) -> None:
    """Send the largest datagrams."""
    datagrams(field, lambda: bytes(65_000), 0.002)


def knock(rank: int, host: str, outcome: str, **hostile: object) -> bytes:
    """Return a datagram in which a node says that it cannot join, and so much of its path."""
    absent = {"missing": "absent"}
    path = {
        "name": "node1", "port": 29500, "addresses": absent, "is_local": False, "source_address": absent,
        "interface": absent, "outcome": outcome, **hostile,
    }  # fmt: skip
    message = {"protocol": "ncclcheck-knock-1", "job_id": "", "final": True}
    return json.dumps({**message, "knock": {"host": host, "node_rank": rank, "master": path}}).encode()


@attack
def forged_knocks(field: Field) -> None:
    """Say in the name of nodes 1 and 2 that they cannot join."""
    datagrams(field, lambda: knock(field.random.randrange(1, 3), "node2", "filtered"))


@attack
def many_knocks(field: Field) -> None:
    """Say in the name of thousands of nodes that they cannot join."""
    datagrams(field, lambda: knock(field.random.randrange(100_000), f"x{time.time_ns()}", "refused"))


# --- to the nodes that pass on what they hear, and to those that look for node 0 ---

_HOSTILE = "\x1b[2J\r\n::error::owned\u202e<script>"


@attack
def knocks_to_relays(field: Field) -> None:
    """Say to the other nodes, in the name of node3, that it cannot join."""
    datagrams(field, lambda: knock(2, "node3", "filtered"), nodes=field.nodes[1:])


@attack
def many_knocks_to_relays(field: Field) -> None:
    """Say to the other nodes, in the name of thousands, that they cannot join."""
    datagrams(field, lambda: knock(field.random.randrange(100_000), "x", "refused"), nodes=field.nodes[1:])


@attack
def full_knocks(field: Field) -> None:
    """Fill each knock with addresses and with names that a terminal, a page or a log would follow."""
    addresses = [f"1.1.{number}.1" for number in range(200)]
    hostile = {
        "addresses": addresses,
        "detail": _HOSTILE * 9,
        "not_served": _HOSTILE,
        "serves_at": field.third,
    }
    datagrams(field, lambda: knock(field.random.randrange(-1, 4000), _HOSTILE, "filtered", **hostile))


@attack
def answers_nobody_asked_for(field: Field) -> None:
    """Send every node answers of node 0, from a port that did not ask."""
    datagrams(field, lambda: reply(field.third), nodes=field.nodes)


@attack
def knocks_in_the_name_of_nodes(field: Field) -> None:
    """Send each node what it answers itself, with the address and the port of another node."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    while True:
        for source in field.nodes:
            for target in field.nodes:
                for data in (knock(2, "node3", "filtered"), reply(source), b"{", b"munge x"):
                    with suppress(OSError):
                        sender.sendto(_forged((source, field.port), (target, field.port), data), (target, 0))
                time.sleep(0.002)


def _forged(source: tuple[str, int], target: tuple[str, int], data: bytes) -> bytes:
    """Return an IPv4 packet with a datagram; the kernel fills in length and checksum, 0 is none for UDP."""
    addresses = socket.inet_aton(source[0]) + socket.inet_aton(target[0])
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_UDP, 0)
    return ip + addresses + struct.pack("!HHHH", source[1], target[1], 8 + len(data), 0) + data


def reply(at: str, given_up: str = "") -> bytes:
    """Return an answer to a knock that says that node 0 serves there, or why it does not."""
    reply_fields = {"serving": not given_up, "given_up": given_up, "relay": not given_up, "serves_at": at}
    return json.dumps({"protocol": "ncclcheck-knock-1", "answers_lost": False, **reply_fields}).encode()


@attack
def late_node_0_and_answers_to_broadcasts(field: Field) -> None:
    """Node 0 starts late; answer those who look for it by broadcast that it serves at a third address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("", field.port))
        while True:
            _, asker = receiver.recvfrom(65536)
            for data in (
                reply(field.third),
                reply(_HOSTILE),
                reply("", _HOSTILE),
                b"[" * 1000,
                os.urandom(900),
            ):
                receiver.sendto(data, asker)


@attack
def late_node_0_and_knocks(field: Field) -> None:
    """Node 0 starts late; meanwhile every node is told that the others cannot join."""
    datagrams(field, lambda: knock(field.random.randrange(3), "node2", "refused"), nodes=field.nodes)


# --- what was seen on the wire, once more ---


def captured(field: Field) -> None:
    """Keep what others send to the master port, by connection and by datagram, in files."""
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
    streams: dict[tuple[bytes, int], bytearray] = {}
    seen: set[bytes] = set()
    while True:
        frame = wire.recv(65536)
        if frame[12:14] != b"\x08\x00" or len(frame) < _HEADERS + 8 or frame[26:30] not in _members(field):
            continue
        segment, protocol = frame[_HEADERS:], frame[23]
        source, target = struct.unpack("!HH", segment[:4])
        if target != field.port:
            continue
        data = segment[8:] if protocol == socket.IPPROTO_UDP else segment[(segment[12] >> 4) * 4 :]
        if not data or frame in seen:
            continue
        seen.add(frame)
        place = frame[26:30], source
        if protocol == socket.IPPROTO_UDP:
            (field.folder / f"{len(seen)}.udp").write_bytes(data)
        elif protocol == socket.IPPROTO_TCP and not segment[13] & _FIN_OR_SYN:
            stream = streams.setdefault(place, bytearray())
            if len(stream) < 1 << 20:
                stream += data
                (field.folder / f"{place[0].hex()}-{source}.tcp").write_bytes(stream)


def _members(field: Field) -> set[bytes]:
    return {socket.inet_aton(node) for node in field.nodes}


def replay(field: Field) -> None:
    """Send again what the files hold."""
    for file in sorted(field.folder.glob("*.tcp")):
        with suppress(OSError), field.dial() as made:
            made.settimeout(0.2)
            made.sendall(file.read_bytes())
            while made.recv(65536):
                pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for file in sorted(field.folder.glob("*.udp")):
            with suppress(OSError):
                sender.sendto(file.read_bytes(), (field.host, field.port))


@attack
def replay_of_this_run(field: Field) -> None:
    """Send again what members sent in this run."""
    threading.Thread(target=captured, args=(field,), daemon=True).start()
    again(lambda: replay(field), threads=2, pause_s=0.05)


@attack
def replay_to_all_nodes(field: Field) -> None:
    """Send again what members sent in this run, to each of them."""
    threading.Thread(target=captured, args=(field,), daemon=True).start()
    fields = [Field(node, field.third, field.folder, field.nodes) for node in field.nodes]

    def replay_all() -> None:
        for node in fields:
            replay(node)

    again(replay_all, threads=2, pause_s=0.05)


@attack
def replay_of_another_run(field: Field) -> None:
    """Send again what members sent in the run before."""
    again(lambda: replay(field), threads=2, pause_s=0.05)
