"""NC913 roce-gid."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import chosen_apart, rails_apart, uses_roce
from ncclcheck.checks.logs._reruns import helped
from ncclcheck.checks.logs._view import culprits, remarks, settings
from ncclcheck.checks.logs._works import went_on_after
from ncclcheck.model.events import Log, Remark
from ncclcheck.model.finding import Fix

_ADDRESSING = re.compile(
    r"\b(?:19|22|61|101|110|113)\b|Invalid argument|timed out|unreachable|No (?:route|such device|data available)",
    re.IGNORECASE,
)
_IN_INFINIBAND = re.compile(r"/IB\b")
_ETHERNET = re.compile(r"Ethernet", re.IGNORECASE)
_LINK_LOCAL = re.compile(
    r"localGid fe80|GID \d+ \((?:80FE|fe80)|remoteGids? ?fe80|Gids? ?::ffff:169\.254\.", re.IGNORECASE
)


@cause(
    "NC913",
    "roce-gid",
    "RoCE uses the wrong GID",
    explains=("ib-link-or-fabric", "rank-exception", "firewall-blocked-ports"),
    between_nodes=True,
    fixes=(
        Fix(
            "choose the RoCE v2 GID of the routable address: NCCL_IB_GID_INDEX=3 on most systems with NCCL "
            "before 2.21, unset it with newer ones",
            (
                "show_gids",
                "ncclcheck preflight --select rdma-gid",
            ),
        ),
    ),
)
def roce_gid(log: Log) -> Iterator[Suspect]:
    """RoCE used a wrong GID: a link-local one, one of the wrong version, or one that does not exist.

    ## Why it matters
    With a link-local or RoCE v1 GID packets do not leave their segment; queue pairs cannot be set up or lose
    every packet.

    ## How to fix
    Remove NCCL_IB_GID_INDEX where NCCL is 2.21 or newer; with older versions set it to the index of the RoCE v2
    GID of the IPv4 address.

    ## Source
    NCCL transport/net_ib: GID choice before and since 2.21, ibv_modify_qp errors EINVAL and ETIMEDOUT,
    completion status 12.
    """
    if known := _with_another_index(log) or _printed_useless(log):
        yield known
        return
    broken = [
        remark for remark in remarks(log, "ib-completion") if remark.values.get("status") in ("12", "13")
    ]
    setup = [
        remark
        for remark in remarks(log, "ib-modify-qp")
        if _ADDRESSING.search(remark.values.get("error", ""))
    ]
    link_local = [remark for remark in (*broken, *setup) if _LINK_LOCAL.search(remark.text)]
    if not link_local and (to_link_local := remarks(log, "ucx-link-local")):
        yield _by_ucx(to_link_local)
        return
    listed = [row for row in remarks(log, "gid-listing") if _is_link_local(row)]
    fixed = settings(log, "NCCL_IB_GID_INDEX")
    only_infiniband = any(
        _IN_INFINIBAND.search(device) for process in log.processes for device in process.devices
    )
    moved = _moved(log, broken) if not (link_local or setup) else []
    if not (broken or setup) or (
        not moved and not uses_roce(log) and not listed and (not setup or only_infiniband)
    ):
        return
    if setup and not link_local and (rails_apart(setup[0].text) or (not fixed and chosen_apart(log, setup))):
        return  # the GIDs are routable ones: the adapters are of networks that do not meet
    if moved:
        yield suspect(
            "The GIDs of the adapter changed while the job ran, and its connections were lost after that: an address "
            "of its interface was added or removed.",
            [*moved, *broken],
            confidence="likely",
            hosts=culprits(log, [remark.place for remark in moved]),
        )
    elif link_local or setup or fixed:
        yield suspect(
            "RoCE used a GID that does not reach the peer"
            + (" (a link-local one)" if link_local else "")
            + (f"; NCCL_IB_GID_INDEX is {', '.join(fixed)}." if fixed else "."),
            [*setup, *link_local, *broken, *listed],
            confidence="certain" if link_local and uses_roce(log) else "likely",
            hosts=culprits(log, [remark.place for remark in setup[:1]]),
        )


def _with_another_index(log: Log) -> Suspect | None:
    """Return that a later command ended well with another GID."""
    index = helped(log, "NCCL_IB_GID_INDEX")
    what = "The job failed, and ended well with another GID (NCCL_IB_GID_INDEX)."
    return suspect(what, index, confidence="likely", hosts=()) if index else None


def _is_link_local(row: Remark) -> bool:
    return row.values["gid"].lower().startswith("fe80")


def _moved(log: Log, broken: Sequence[Remark]) -> list[Remark]:
    """Return NCCL's notes that a host's GIDs changed, before one of its connections broke."""
    return [
        note
        for note in remarks(log, "nccl-warn")
        if "GID table change" in note.text
        and not went_on_after(log, note.place)
        and any(
            (loss.place.file, loss.place.host) == (note.place.file, note.place.host)
            and loss.place.line > note.place.line
            for loss in broken
        )
    ]


def _printed_useless(log: Log) -> Suspect | None:
    """Return that a program printed, or was told to use, a GID that reaches nothing, and a verb failed after it."""
    broken = remarks(log, "verbs-failed")
    if not broken or went_on_after(log, broken[-1].place):
        return None
    zero = [remark for remark in remarks(log, "gid-useless") if "zero" in remark.values]
    local = [remark for remark in remarks(log, "gid-useless") if "local" in remark.values]
    chosen = {remark.values["index"] for remark in remarks(log, "gid-chosen")}
    rows = [remark for remark in remarks(log, "gid-listing") if remark.values["index"] in chosen]
    rows = [row for row in rows if row.values["version"] == "v1" or _is_link_local(row)]
    if zero:
        what = (
            "A queue pair got an empty GID (all zeros): the adapter has no address in this network namespace"
        )
    elif local and any(_ETHERNET.search(remark.text) for remark in remarks(log, "link-layer")):
        what = "A queue pair over Ethernet got a link-local GID (fe80::), which is not routed"
    elif rows:
        what = (
            f"The GID with the index {rows[0].values['index']}, which was chosen, is link-local or of RoCE v1"
        )
    else:
        return None
    return suspect(
        f"{what}, and the connection failed.",
        [*(zero or local or rows), *broken],
        confidence="likely",
        hosts=(),
        explains=("ib-link-or-fabric", "net-plugin-config", "rank-exception"),
    )


def _by_ucx(to_link_local: Sequence[Remark]) -> Suspect:
    """Return that UCX sends to a link-local GID, and nothing answers."""
    return suspect(
        "UCX sends to a link-local GID (fe80::), which is not routed: the adapters of the nodes are in no common "
        "RoCE network, or UCX_IB_GID_INDEX names the wrong one.",
        to_link_local,
        confidence="likely",
        hosts=(),
        explains=("ib-link-or-fabric", "net-plugin-config", "rank-exception"),
    )
