"""The foreign program of `faults.hold_port`: `port_holder.py MODE ADDRESS PORT READY_FD` listens until it is killed."""

from __future__ import annotations

import os
import socket
import sys
import threading

_ANSWERS = {
    "silent": b"",
    "banner": b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
    "http": b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
}


def main(mode: str, address: str, port: int, ready: int) -> None:
    """Listen as `mode` says, write one byte to `ready`, and stay."""
    if mode == "tcpstore":
        from torch.distributed import TCPStore

        kept: object = TCPStore(address, port, is_master=True, wait_for_workers=False)
    elif mode == "full":
        kept = _full_queue(address, port)
    else:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = kept = socket.create_server((address, port), family=family, backlog=64)
        threading.Thread(target=_serve, args=(listener, mode), daemon=True).start()
    os.write(ready, b"1")
    threading.Event().wait()
    del kept


def _serve(listener: socket.socket, mode: str) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_answer, args=(connection, mode), daemon=True).start()


def _answer(connection: socket.socket, mode: str) -> None:
    with connection:
        try:
            if mode == "banner":  # servers of this kind speak first
                connection.sendall(_ANSWERS[mode])
            while connection.recv(1 << 16):
                if mode == "http":
                    connection.sendall(_ANSWERS[mode])
                    return
        except OSError:  # the other end is gone
            return


def _full_queue(address: str, port: int) -> list[socket.socket]:
    listener = socket.create_server((address, port), backlog=0)
    kept = [listener]
    for _ in range(4):  # the kernel takes backlog + 1 connections, then ignores further attempts
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(listener.getsockname())
        kept.append(client)
    return kept


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
