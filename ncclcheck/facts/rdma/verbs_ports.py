"""What only libibverbs reports of RDMA ports: the MTU in use, asked in a child process that may be abandoned."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.child import end_child, python_command, read_child, start_child
from ncclcheck.model.fact import Fact, Missing, Why
from ncclcheck.model.hardware import Rdma, RdmaPort

_MODULE = "ncclcheck.facts.rdma.verbs_ports_child"


class _PortLine(Struct):
    port: str
    active_mtu: int | None = None
    why: Why = "error"
    detail: str = ""

    def as_fact(self) -> Fact[int]:
        """Return the MTU, or why there is none."""
        return Missing(self.why, self.detail) if self.active_mtu is None else self.active_mtu


def with_active_mtu(rdma: Rdma, environ: Mapping[str, str], deadline_s: float, module: str = _MODULE) -> Rdma:
    """Return the RDMA section with the active MTU of every port that libibverbs lets us ask.

    Devices are opened as every program that uses them does, and nothing is changed. What hangs or crashes costs the
    ports that were not asked by then.
    """
    if isinstance(rdma.verbs_library, Missing) or not rdma.ports:
        why = rdma.verbs_library if isinstance(rdma.verbs_library, Missing) else Missing("absent")
        return _with(rdma, {}, Missing(why.missing, f"libibverbs: {why.detail}"))
    names = [_name(port) for port in rdma.ports]
    mtu_by_port, otherwise = _ask([rdma.verbs_library, *names], environ, deadline_s, module)
    return _with(rdma, mtu_by_port, otherwise)


def _with(rdma: Rdma, mtu_by_port: Mapping[str, Fact[int]], otherwise: Missing) -> Rdma:
    ports = tuple(replace(port, active_mtu=mtu_by_port.get(_name(port), otherwise)) for port in rdma.ports)
    return replace(rdma, ports=ports)


def _name(port: RdmaPort) -> str:
    return f"{port.device}:{port.port}"


def _ask(
    arguments: list[str], environ: Mapping[str, str], deadline_s: float, module: str
) -> tuple[dict[str, Fact[int]], Missing]:
    """Return the MTU by port, and what is to be said of a port that is not in it."""
    deadline = time.monotonic() + deadline_s
    try:
        process = start_child(python_command(module, arguments), environ)
    except (OSError, ValueError) as error:
        return {}, missing_for(error, module)
    output: dict[int, bytearray] = {}
    ending = "late"
    try:
        ending = read_child(process, output, deadline)
    finally:
        gone = end_child(process)
    mtu_by_port: dict[str, Fact[int]] = {}
    for text in bytes(next(iter(output.values()), bytearray())).split(b"\n"):
        try:
            line: Any = msgspec.json.decode(text, type=_PortLine)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # cut by the end, or printed by a provider of libibverbs
        mtu_by_port[line.port] = line.as_fact()
    if ending == "late":
        left = "" if gone else f"; process {process.pid}, which asked, was left behind"
        return mtu_by_port, Missing("timeout", f"libibverbs: no answer within {deadline_s:g} s{left}")
    return mtu_by_port, Missing("error", f"libibverbs: the child that asked ended with {process.returncode}")
