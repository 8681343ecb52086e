"""Attacks on torch's store, where runs without a key meet: forged, replaced and erased messages."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from scripts.attacking.field import ATTACKS, PREFIX, THIRD_PORT, TOOL, Field, again, attack


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


def put_all(store: Any, documents: Mapping[str, Any]) -> None:
    """Put each document at its key."""
    for key, document in documents.items():
        put(store, key, document)


def hello(host: str, rank: int) -> dict[str, Any]:
    """Return a hello of a node that is not one."""
    launch = {
        "source": "flags", "rank": rank, "world_size": 3, "local_rank": 0, "local_world_size": 1, "node_rank": rank,
        "nnodes": 3, "master_addr": "node1", "master_port": 29500,
    }  # fmt: skip
    return {**TOOL, "host": host, "launch": launch}


def _documents(name: str, documents: dict[str, Any]) -> None:
    def run(field: Field) -> None:
        in_store(field, lambda store: put_all(store, documents))

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
    in_store(field, lambda store: put_all(store, dict.fromkeys(_STEPS[:3], order)))


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


def _while_measuring(name: str, spoil: Callable[[Any, str], Any]) -> None:
    """Spoil every key that is there, as soon as ranks measure."""

    def run(field: Field) -> None:
        measures: list[bool] = []

        def write(store: Any) -> None:
            keys = store.list_keys()
            measures.extend(
                [True] if any("/bench/point/" in key or "pairs/answer/1" in key for key in keys) else []
            )
            for key in keys if measures else ():
                spoil(store, key)

        in_store(field, write, 0.003)

    ATTACKS[name] = run


_while_measuring("measuring-all-keys-erased", lambda store, key: store.delete_key(key))
_while_measuring("measuring-all-keys-garbled", lambda store, key: store.set(key, os.urandom(40)))
_while_measuring("isolating-all-keys-erased", lambda store, key: store.delete_key(key))
_while_measuring("isolating-all-keys-garbled", lambda store, key: store.set(key, os.urandom(40)))


@attack
def isolating_first_answers_erased(field: Field) -> None:
    """Erase what one node says of the first round of pairs, before anybody has read it."""
    erased: list[str] = []

    def write(store: Any) -> None:
        found = [key for key in store.list_keys() if "pairs/answer/1/" in key]
        for key in found[:1]:
            store.delete_key(key)
            erased.append(key)

    in_store(field, write, 0.0005)


@attack
def hellos_of_many_ranks(field: Field) -> None:
    """Say hello in the name of many nodes, each with thousands of further ranks that never come."""
    _many_hellos(field, local_world_size=1 << 12, world_size=1 << 18)


@attack
def hellos_of_a_huge_job(field: Field) -> None:
    """Say hello as processes that know their rank alone, in a job of 262,144 processes."""
    _many_hellos(field, told="rank", world_size=1 << 18, nnodes=1 << 18)


def _many_hellos(field: Field, **told: Any) -> None:
    def write(store: Any) -> None:
        run = hashlib.sha256(bytes(store.get(f"{PREFIX}serving"))).hexdigest()
        if int(store.add(f"{PREFIX}tickets", 0)) < 3 * 8:
            ticket = int(store.add(f"{PREFIX}tickets", 1))
            message = hello(f"evil{ticket}", ticket + 1)
            put(store, f"hello/{ticket}", {**message, "launch": {**message["launch"], **told}, "run": run})

    in_store(field, write)


# --- what later parts of a run write ---


def _claim(rank: int, **told: Any) -> dict[str, Any]:
    absent = {"missing": "absent"}
    master = {
        "name": "node1", "port": 29500, "addresses": absent, "is_local": False, "source_address": absent,
        "interface": absent, "outcome": "filtered", **told,
    }  # fmt: skip
    return {
        **TOOL,
        "knock": {"host": f"node{rank + 1}", "node_rank": rank, "master": master, "relay": "node2"},
    }


@attack
def forged_relayed_claims(field: Field) -> None:
    """Write in the name of node2 that it has heard node3 say that it cannot join."""

    def write(store: Any) -> None:
        for number in range(int(store.add(f"{PREFIX}relayed", 2)) + 1):
            put(store, f"relayed/{number}", _claim(2))

    in_store(field, write)


@attack
def huge_relayed_claims(field: Field) -> None:
    """Draw numbers without end, and write megabytes and garbage under them."""

    def write(store: Any) -> None:
        number = int(store.add(f"{PREFIX}relayed", 1000)) % 256
        for value in (b"=" + b"[" * (6 << 20), b"1023", b"9" * 100):
            store.set(f"{PREFIX}relayed/{number}", value)

    in_store(field, write)


_calls("relayed-numbers", lambda store: store.add(PREFIX + "relayed", 10**9))
_calls("ranks-drawn", lambda store: store.add(PREFIX + "ranks", 1000))
_documents("forged-common-facts", {"common": {"python": "2.7", "hostname": "evil"}})
_documents("garbage-as-common-facts", {"common": b"[" * 1_000_000})
_documents("forged-byes", {f"bye/{ticket}": b"1" for ticket in range(1, 5)})
_documents(
    "forged-refusals",
    {f"refused/{ticket}": {**TOOL, "orders": [["\x1b[2J::error::x", "y" * 9000]] * 500} for ticket in (2, 3)},
)
_documents("forged-recount-order", dict.fromkeys(_STEPS, _order(type="recount")))
_documents(
    "forged-counters",
    {
        key: {**TOOL, "ports": [], "links": [{"interface": "eth0", "before": {"rx_errors": 10**18}}]}
        for key in _ANSWERS
    },
)
_documents(
    "forged-pairs-order",
    dict.fromkeys(
        _STEPS,
        _order(type="pairs", backend="gloo", most_bytes=1 << 40, nonce="ab", environments={"2": _EVIL}),
    ),
)
_calls(
    "erased-answers",
    lambda store: [
        store.delete_key(PREFIX + f"answer/{number}/{ticket}") for number in range(12) for ticket in (2, 3)
    ],
)


@attack
def packed_bombs(field: Field) -> None:
    """Write what unpacks to 300 MB in the place of facts, answers and orders."""
    bombs = dict.fromkeys(("facts/2", *_ANSWERS, *_STEPS[:4]), zlib.compress(bytes(300 << 20)))
    in_store(field, lambda store: put_all(store, bombs))


@attack
def verdict_questions(field: Field) -> None:
    """Ask node 0 for its verdict: garbage, endless lines, and a question that names 1,000 documents."""
    store = store_of(field)
    while not store.check([f"{PREFIX}verdict-port"]):
        time.sleep(0.01)
    port = int(store.get(f"{PREFIX}verdict-port"))
    question = {"protocol": "ncclcheck-verdict-1", "challenge": "x" * 900, "nonce": "ab", "ticket": 2}
    named = {f"facts/{number}": "00" for number in range(1000)}
    message = (
        json.dumps({**question, "sent": named}).encode() + b"\n",
        b"[" * 60_000 + b"\n",
        b"{" * 60_000,
        b"",
    )
    open_connections: list[socket.socket] = []

    def once() -> None:
        made = field.dial(port=port)
        open_connections.append(made)
        made.sendall(field.random.choice(message))

    again(once)
