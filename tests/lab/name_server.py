"""A name server for the lab: `python name_server.py ADDRESS NAME=ADDRESS...` answers A queries over UDP."""

from __future__ import annotations

import socket
import struct
import sys


def serve(address: str, names: dict[str, str]) -> None:
    """Answer for ever: these names have these addresses, all others do not exist."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, 53))
    while True:
        query, asker = server.recvfrom(512)
        server.sendto(_answer(query, names), asker)


def _answer(query: bytes, names: dict[str, str]) -> bytes:
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode().lower())
        at += query[at] + 1
    name, kind = ".".join(labels), struct.unpack(">H", query[at + 1 : at + 3])[0]
    found = [names[name]] if name in names and kind == 1 else []  # 1: an A record
    code = 0 if name in names else 3  # 3: no such name
    head = query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(found), 0, 0)
    records = [b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 5, 4) + socket.inet_aton(each) for each in found]
    return head + query[12 : at + 5] + b"".join(records)


if __name__ == "__main__":
    serve(sys.argv[1], dict(pair.split("=") for pair in sys.argv[2:]))
