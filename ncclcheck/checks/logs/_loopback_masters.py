"""What a log says of masters and stores at loopback addresses, where several machines look for them."""

from __future__ import annotations

import re

from msgspec.structs import replace

from ncclcheck.checks.logs._causes import Suspect, suspect
from ncclcheck.checks.logs._view import culprits, exceptions, is_local, registered, remarks, troubles
from ncclcheck.checks.logs._works import shows_work
from ncclcheck.model.events import Log, Remark

_SEVERAL_NODES = re.compile(r"--(?:nnodes|num[-_]machines)[ =](?:\d{1,5}:)?(?:[2-9]|[1-9]\d)")
_LATER_NODE = re.compile(r"--(?:node|machine)[-_]rank[ =][1-9]")
_LATER_RANK = re.compile(r"(?<![\w-])(?:global_)?rank[ =:]{1,2}[1-9]")


def store_at_loopback(log: Log) -> list[Suspect]:
    """Return torchrun's word to several nodes that the store is at a loopback address: its host's own name is one."""
    results = remarks(log, "rendezvous-result")
    nodes = max((int(remark.values["nodes"]) for remark in results if "nodes" in remark.values), default=1)
    local = [remark for remark in results if is_local(remark.values.get("address", ""))]
    if nodes == 1 or not local or not troubles(log):
        return []
    return [
        suspect(
            f"torchrun told {nodes} nodes that the store is at {local[0].values['address']}: on the node where it is, "
            "the host's own name is a loopback address (/etc/hosts).",
            local,
            explains=(
                "firewall-blocked-ports",
                "world-size-mismatch",
                "rank-exception",
                "hostname-resolution",
            ),
        )
    ]


def endpoint_at_loopback(log: Log) -> list[Suspect]:
    """Return the agents of several hosts whose endpoint is their own machine, so that none joined another."""
    endpoints = [line for line in remarks(log, "rendezvous-endpoint") if is_local(line.values["address"])]
    hosts = {line.place.host for line in endpoints} - {None}
    alone = [event for event in exceptions(log, "after-effect") if "Rendezvous" in event.class_name]
    if len(hosts) == 1 or len({line.values["port"] for line in endpoints}) != 1 or not (hosts and alone):
        return []
    found = suspect(
        f"torchrun on {len(hosts)} hosts was told to meet at "
        f"{endpoints[0].values['address']}:{endpoints[0].values['port']}, "
        "each on its own machine.",
        [*endpoints, *alone],
        confidence="likely",
        explains=("firewall-blocked-ports", "world-size-mismatch", "slow-rank-timeout"),
    )
    return [replace(found, blames_nobody=True)]


def init_at_loopback(log: Log) -> list[Suspect]:
    """Return the workers of several hosts that look for the store on their own machine."""
    inits = [remark for remark in remarks(log, "init-method") if is_local(remark.values["address"])]
    hosts, ports = {remark.place.host for remark in inits}, {remark.values["port"] for remark in inits}
    missing = [
        registration for registration in registered(log) if registration.joined < registration.expected
    ]
    if len(hosts) == 1 or len(ports) > 1 or not inits or not missing:
        return []  # of several ports each is of an engine of its own
    return [
        suspect(
            f"Workers of several machines look for the store at {inits[0].values['address']}, each on its own machine.",
            [*inits, *missing],
            confidence="likely",
            explains=("firewall-blocked-ports", "world-size-mismatch", "slow-rank-timeout"),
        )
    ]


def later_node_at_loopback(log: Log) -> list[Suspect]:
    """Return the nodes after the first that were told a loopback master, where several nodes were to meet."""
    configured = remarks(log, "rdzv-endpoint", "init-method")
    local = [
        remark
        for remark in configured
        if is_local(master_in(remark))
        and (
            (_SEVERAL_NODES.search(remark.text) and _LATER_NODE.search(remark.text))
            or (_LATER_RANK.search(remark.text) and not all(is_local(master_in(line)) for line in configured))
        )
    ]
    if not local or not troubles(log) or shows_work(log):
        return []
    return [
        suspect(
            f"A node that is not the first was told that the master is at {master_in(local[0])}: it looks for the "
            "store on its own machine.",
            [*local, *registered(log)],
            confidence="likely",
            hosts=culprits(log, [remark.place for remark in local]),
            explains=("firewall-blocked-ports", "world-size-mismatch", "slow-rank-timeout", "rank-exception"),
        )
    ]


def cluster_at_loopback(log: Log) -> list[Suspect]:
    """Return TensorFlow's configuration on several machines that puts all processes of the job on its own."""
    clusters = remarks(log, "cluster-at-loopback")
    hosts = {line.place.host for line in clusters} - {None}
    if len(hosts) == 1 or not hosts or shows_work(log):
        return []
    found = suspect(
        f"TF_CONFIG says on {len(hosts)} machines that the processes are at loopback addresses, so each looks for the "
        "others on itself.",
        clusters,
        confidence="likely",
        explains=("firewall-blocked-ports", "world-size-mismatch", "slow-rank-timeout", "rank-exception"),
    )
    return [replace(found, blames_nobody=True)]


def master_in(remark: Remark) -> str:
    """Return the host of the master that the line names, without its port."""
    return (remark.values.get("address") or remark.values.get("master", "")).partition(":")[0]
