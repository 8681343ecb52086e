"""Connections that could not be made or broke, and workers that registered: NCCL, Gloo and c10d's store.

Source: NCCL misc/socket.cc 2.14 to 2.32, gloo transport/tcp/{pair,socket,debug_logger}.cc, torch c10d/socket.cpp and
TCPStore.cpp 2.0 to 2.13, torch/distributed/distributed_c10d.py (_store_based_barrier).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ncclcheck.logs.patterns.literals import needles
from ncclcheck.logs.readers.numbers import address_and_port, reason_of, whole
from ncclcheck.model.events import ConnectFailure, Event, LogPosition, Registered

_NCCL = re.compile(
    r"(?:Net : |socket\w+: |Call to )?connect (?:from \S{1,300} )?(?:to )?"
    r"(?P<address>\[?[\w.:%-]{1,255}\]?<\d{1,5}>)(?: "
    r"\([^)]*\))? (?:failed|returned)"
    r"(?: ?:| with)? ?(?P<why>.{1,120})",
    re.IGNORECASE,
)
_NCCL_RECV = re.compile(
    r"(?:Call to )?(?:recv|send|read|write)\w*(?: from| to)? (?P<address>\[?[\w.:%-]{1,255}\]?<\d{1,5}>) "
    r"failed ?: ?(?P<why>.{1,80})",
    re.IGNORECASE,
)
_TRIES_AGAIN = re.compile(r"retry|retries left|try(?:ing)? again|attempt \d", re.IGNORECASE)
_NCCL_BLIND = re.compile(
    r"NCCL WARN Call to connect (?:failed|timeout) ?: ?(?P<why>.{1,80})"
)  # 2.9 and older
_NCCL_AGAIN = re.compile(r"retry|errno 115|exceeded", re.IGNORECASE)
_GLOO_TRY = re.compile(
    r"failed to connect.{0,200}?local=(?P<local>\S+?), remote=(?P<address>[^\s,]+), error=(?:SO_ERROR: "
    r")?(?P<why>[^,]{1,80})"
)
_GLOO_FINAL = re.compile(
    r"(?:(?:timed out connecting|connect(?:FullMesh failed.{0,200}?| timeout|ion failed)): ?(?:SO_ERROR: )?|"
    r"gloo/transport/tcp/pair\.cc:\d{1,5}\] )(?P<why>[^,]{1,80}), remote=(?P<address>\S+)"
)
_GLOO_OLD = re.compile(
    r"gloo/transport/tcp/\S+ (?:connect(?: timeout| to)? |Connect timeout "
    r")\[?(?P<address>[\w.:]+)\]?:?(?P<port>\d*)(?:(?: failed,|:) ?(?P<why>.{1,60}))?",
    re.IGNORECASE,
)
_GLOO_READ = re.compile(
    r"(?:Read|Write|writev?|readv?) (?:error )?(?P<address>\[[\w.:]+\]:\d+): (?P<why>[^.]{1,80})"
)
_STORE_TRY = re.compile(
    r"client socket has failed to connect to (?P<address>\S+) \((?:errno|error): (?P<why>[^)]{1,80})\)",
    re.IGNORECASE,
)
_PADDLE_TRY = re.compile(
    r"Retry to connect to (?P<address>[\w.:-]{1,255}) while the server is (?P<why>not yet listening)"
)
_STORE_FINAL = re.compile(
    r"client socket has timed out after (?P<time>\w+) while trying to connect to "
    r"\(?(?P<address>[^,():\s]{1,255})(?:, ?|:)(?P<port>\d{1,5})\b"
)
_STORE_NONE = re.compile(
    r"client socket has failed to connect to any network address of \((?P<address>[^,()]{1,255}), (?P<port>\d{1,5})\)"
)
_GRPC = re.compile(r"ipv[46]:(?P<address>\S{1,255}): Failed to connect to remote host: (?P<why>[^;]{1,80})")
# What any other program says of a connection: verb, address and port, then the reason (`timeout 30 s` is a setting).
_ANY = re.compile(
    r"(?:connect(?:ion|ing)?|dial tcp|HTTPConnectionPool)\b(?:\(fd=\d{1,6}, )?[^0-9\n]{1,60}"
    r"(?P<address>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?:'|\b)"
    r"(?:(?::|, ?(?:port=)?|<| port )(?P<port>\d{2,5}))?[^\n]{0,240}?"
    r"\b(?P<why>timed out|timeout(?![\s:=(]{0,3}\d)|refused|no route to host|"
    r"(?:network|host) is unreachable)",
    re.IGNORECASE,
)
_STORE_OLD = re.compile(
    r"RuntimeError: (?:connect\(\) failed\. Last error: )?"
    r"(?P<why>Connection (?:timed out|refused)|(?<=Last error: ).{1,60}|connect\(\) timed out)"
)
_LOST = re.compile(
    r"\b(?:recvmsg|readv?|recv|sendmsg): ?[Cc]onnection timed out"
)  # of an established connection
_HYDRA = re.compile(
    r"unable to connect from \"[^\"]{1,253}\" to \"(?P<address>[^\"]{1,253})\" \((?P<why>[^)]{1,80})"
)
_JOINED = re.compile(r"waiting for clients\.? (?P<joined>\d+)/(?P<expected>\d+) clients joined")
_JAX = re.compile(
    r"(?:PjRT_Client_Connect|Wait_for_all_tasks).{0,400}reached the barrier: (?P<joined>\d+)/(?P<expected>\d+)"
)
_BARRIER_PASSED = re.compile(
    r"Completed store-based barrier for key:store_based_barrier_key:\d{1,6} with (?P<expected>\d{1,6}) nodes"
)
_BARRIER = re.compile(r"world_size=(?P<expected>\d+), (?:worker_count|num_workers_joined)=(?P<joined>\d+)")
PATTERNS = tuple(
    pattern.pattern
    for pattern in (
        _NCCL, _NCCL_RECV, _NCCL_BLIND, _GLOO_TRY, _GLOO_FINAL, _GLOO_OLD, _GLOO_READ,
        _STORE_TRY, _PADDLE_TRY, _STORE_FINAL, _STORE_NONE, _GRPC, _ANY, _LOST, _HYDRA, _STORE_OLD, _JOINED, _BARRIER,
        _JAX, _BARRIER_PASSED,
    )
)  # fmt: skip
_may_match = re.compile(needles(PATTERNS)).search


def read(text: str, place: LogPosition) -> Iterator[Event]:
    """Yield the failed connections and the counts of workers that `text` reports."""
    if not _may_match(text.lower()):
        return
    known = [failure for reader in (_nccl, _gloo, _store) for failure in islice(reader(text, place), 1)]
    yield from known or _of_any_program(text, place)
    for pattern in (_JOINED, _BARRIER, _JAX):
        if match := pattern.search(text):
            joined, expected = whole(match["joined"]), whole(match["expected"])
            if joined is not None and expected is not None:
                yield Registered(place=place, text=text, joined=joined, expected=expected)
    if match := _BARRIER_PASSED.search(text):
        all_of_them = int(match["expected"])
        yield Registered(place=place, text=text, joined=all_of_them, expected=all_of_them)


def _nccl(text: str, place: LogPosition) -> Iterator[Event]:
    if match := _NCCL_BLIND.search(text):
        yield ConnectFailure(
            place=place, text=text, layer="nccl", address="a peer", port=0, reason=reason_of(match["why"])
        )
    for pattern, established in ((_NCCL_RECV, True), (_NCCL, False)):
        if match := pattern.search(text):
            address, port = address_and_port(match["address"])
            yield ConnectFailure(
                place=place,
                text=text,
                layer="nccl",
                address=address,
                port=port,
                reason=reason_of(match["why"]),
                final=_is_final(text, match["why"]),
                established=established,
            )


def _is_final(text: str, why: str) -> bool:
    """Return True if NCCL gives the connection up: what it will try again it says at level INFO, or says so."""
    if "exceeded" in why or (" NCCL WARN " in text and "retry" not in why):
        return True
    return not _NCCL_AGAIN.search(why)


def _gloo(text: str, place: LogPosition) -> Iterator[Event]:
    for pattern, final, established in (
        (_GLOO_TRY, False, False),
        (_GLOO_FINAL, True, False),
        (_GLOO_READ, True, True),
    ):
        if match := pattern.search(text):
            reason = reason_of(match["why"])
            if established and reason == "reset":
                return  # the other end went away: an after-effect, which is a topic of its own
            address, port = address_and_port(match["address"].partition("$")[0])
            local = address_and_port(match["local"])[0] if pattern is _GLOO_TRY else ""
            yield ConnectFailure(
                place=place,
                text=text,
                layer="gloo",
                address=address,
                port=port,
                reason=reason,
                final=final,
                established=established,
                local=local,
            )
    if match := _GLOO_OLD.search(text):
        why = match["why"] or "timed out"
        address, port = address_and_port(match["address"])
        if f"[{match['address']}]" in match[0]:  # of IPv6: its colons are its own
            address = match["address"]
        yield ConnectFailure(
            place=place,
            text=text,
            layer="gloo",
            address=address,
            port=whole(match["port"]) or port,
            reason=reason_of(why),
        )


def _store(text: str, place: LogPosition) -> Iterator[Event]:
    if match := _STORE_FINAL.search(text) or _STORE_NONE.search(text):
        yield ConnectFailure(
            place=place,
            text=text,
            layer="store",
            address=match["address"].strip(),
            port=whole(match["port"]) or 0,
            reason="refused" if "refused" in text else "timed-out",
        )
    elif match := _STORE_OLD.search(text):
        yield ConnectFailure(
            place=place,
            text=text,
            layer="store",
            address="MASTER_ADDR",
            port=0,
            reason=reason_of(match["why"]),
        )
    elif match := _STORE_TRY.search(text) or _PADDLE_TRY.search(text) or _GRPC.search(text):
        address, port = address_and_port(match["address"])
        yield ConnectFailure(
            place=place,
            text=text,
            layer="store",
            address=address,
            port=port,
            reason="refused" if match.re is _PADDLE_TRY else reason_of(match["why"]),
            final=match.re is _GRPC,
        )


def _of_any_program(text: str, place: LogPosition) -> Iterator[Event]:
    """Yield the connection that another program could not make, or lost. One that was refused may be made later."""
    if _LOST.search(text):
        yield ConnectFailure(
            place=place,
            text=text,
            layer="other",
            address="a peer",
            port=0,
            reason="timed-out",
            established=True,
        )
        return
    if match := _HYDRA.search(text) or _ANY.search(text):
        reason = reason_of(match["why"])
        yield ConnectFailure(
            place=place,
            text=text,
            layer="other",
            address=match["address"],
            port=whole(match.groupdict().get("port")) or 0,
            reason=reason,
            final=reason != "refused" and not _TRIES_AGAIN.search(text),
        )
