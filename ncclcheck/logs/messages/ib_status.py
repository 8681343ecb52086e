"""What the number of a failed RDMA work request means: libibverbs' ibv_wc_status, one meaning each.

Source: libibverbs verbs.h and ibv_poll_cq(3); NCCL's own hints (transport/net_ib/common.h) for 4, 5 and 12.
"""

from __future__ import annotations

from msgspec import Struct


class Status(Struct, frozen=True):
    """Name and meaning of a status, and its cause; no cause where it only follows from another error."""

    name: str
    means: str
    cause: str = ""


STATUSES: dict[int, Status] = {
    0: Status("success", "the request worked"),
    1: Status(
        "local length error",
        "a message was longer than the buffer that waited for it: the ranks do not agree about sizes",
        "collective-mismatch",
    ),
    2: Status("local QP operation error", "the adapter found the request or its queue pair inconsistent"),
    3: Status("local EE context operation error", "the adapter found the request inconsistent"),
    4: Status(
        "local protection error",
        "the adapter could not access the memory of the request, mostly GPU memory that ACS, the IOMMU or "
        "peer memory keep from it",
        "gdr-unavailable",
    ),
    5: Status("work request flushed", "another error on this queue pair came first, or the peer closed it"),
    6: Status("memory window bind error", "a memory window could not be bound"),
    7: Status("bad response", "the peer's adapter answered something unexpected", "ib-link-or-fabric"),
    8: Status("local access error", "the adapter could not write into the local buffer", "gdr-unavailable"),
    9: Status(
        "remote invalid request",
        "the peer's adapter rejects the request: it is larger than the buffer there, or not allowed",
        "collective-mismatch",
    ),
    10: Status(
        "remote access error",
        "the peer's adapter may not access the memory there: its registration is gone (the process ended) or "
        "the GPU memory is kept from it (ACS, IOMMU, peer memory)",
        "gdr-unavailable",
    ),
    11: Status(
        "remote operation error",
        "the peer's adapter could not carry out the request: look for the error in the peer's own log",
    ),
    12: Status(
        "transport retries exceeded",
        "the peer's adapter did not answer: a link, switch or GID between the two, or the peer's process ended",
        "ib-link-or-fabric",
    ),
    13: Status(
        "receiver not ready",
        "the peer did not post a buffer in time: its process is late, stopped or ended",
        "ib-link-or-fabric",
    ),
    14: Status("local RDD violation", "the queue pair is of the wrong kind"),
    15: Status("remote invalid RD request", "the peer's adapter rejects the request"),
    16: Status("remote abort", "the peer aborted the operation"),
    17: Status("invalid EE context number", "the queue pair is of the wrong kind"),
    18: Status("invalid EE context state", "the queue pair is of the wrong kind"),
    19: Status("fatal error", "the adapter failed", "ib-link-or-fabric"),
    20: Status("response timeout", "the peer's adapter did not respond in time", "ib-link-or-fabric"),
    21: Status("general error", "the adapter reports an error of no other kind", "ib-link-or-fabric"),
}


def status_of(number: str) -> Status | None:
    """Return what the status means; None for a number that libibverbs does not have."""
    return STATUSES.get(int(number)) if number.isdecimal() and len(number) < 4 else None  # noqa: PLR2004 (digits)
