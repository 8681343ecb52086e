"""NC305 rdma-ignored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ncclcheck.checks.hosts import named, not_reported
from ncclcheck.checks.rdma_ports import (
    Surveyed,
    file_of,
    has_gpus,
    is_verbs,
    not_surveyed,
    surveyed,
    without_devices,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import network
from ncclcheck.nccl.explanation import network_choice
from ncclcheck.nccl.prediction import Prediction
from ncclcheck.nccl.rdma import hca


class _Ignored(Struct, frozen=True):
    """A node that has RDMA ports of which NCCL uses none. `finding_slug`: the check that says why."""

    node: Surveyed
    ports: tuple[RdmaPort, ...]
    reason: str
    fails: bool
    finding_slug: str = ""


@check("NC305", "rdma-ignored", "NCCL uses the available RDMA devices", needs=("rdma",))
def rdma_ignored(snapshot: Snapshot) -> Iterator[Answer]:
    """On a node with usable RDMA ports, NCCL chooses InfiniBand, RoCE or a plug-in, and not sockets.

    Ports that NCCL_IB_HCA excludes are the user's choice, as long as one remains.

    ## Why it matters
    NCCL reports no error when it cannot use RDMA: it falls back to TCP sockets, which are often ten times slower and
    load the CPU. The usual causes are a container without libibverbs, a list in NCCL_IB_HCA that matches no device, a
    variable left over from a debugging session, and a network plug-in (EFA) that is not in the image.

    ## How to fix
    The message gives NCCL's reason. libibverbs: install rdma-core in the image. NCCL_IB_HCA, NCCL_IB_DISABLE, NCCL_NET:
    correct or unset the variable on all nodes. EFA: install aws-ofi-nccl.

    ## Source
    NCCL src/transport/net_ib.cc (ncclIbInit), src/net.cc; `ncclcheck predict` shows the whole choice. The library
    itself can be asked only with a GPU, so this is ncclcheck's model of it.
    """
    nodes = surveyed(snapshot)
    yield from without_devices(nodes)
    facts_of = {node.host: node.facts for node in snapshot.nodes}
    ignored, using = [], []
    for surveyed_node in nodes:
        if not surveyed_node.rdma.ports:
            continue
        choice = network_choice(facts_of[surveyed_node.host])
        if isinstance(choice, Missing):
            yield NotKnown(f"what NCCL uses: {choice}", (surveyed_node.host,))
        elif choice.network == network.SOCKET or choice.fails:
            answer = _judged(surveyed_node, choice)
            if isinstance(answer, NotKnown):
                yield answer
            else:
                ignored.append(answer)
        elif choice.network is None:
            yield NotKnown(f"which network NCCL uses: {choice.network_reason}", (surveyed_node.host,))
        else:
            using.append(surveyed_node.host)
            if isinstance(surveyed_node.rdma.device_files, Missing) and any(
                map(is_verbs, surveyed_node.rdma.ports)
            ):
                yield NotKnown(
                    f"whether the devices can be opened: {surveyed_node.rdma.device_files}",
                    (surveyed_node.host,),
                )
    yield from _findings(ignored, using)
    yield from not_surveyed(snapshot)
    yield from not_reported(snapshot)


def _judged(node: Surveyed, choice: Prediction) -> _Ignored | NotKnown:
    reason = choice.network_reason or choice.reason
    verbs = tuple(port for port in node.rdma.ports if is_verbs(port))
    if not verbs:
        return _without_plugin(node, reason, fails=choice.fails)
    active = tuple(port for port in verbs if port.state == "ACTIVE")
    if not active:
        return _Ignored(node, verbs, reason, choice.fails, "rdma-port-down")
    usable = tuple(port for port in active if not network.is_closed(port, node.rdma))
    if not usable and not node.is_switched_off:
        return _Ignored(node, active, reason, choice.fails, "rdma-no-device-files")
    return _Ignored(node, usable or active, reason, choice.fails)


def _without_plugin(node: Surveyed, reason: str, *, fails: bool) -> _Ignored | NotKnown:
    """Return that NCCL lacks the plug-in for EFA, or that its plug-ins are not known."""
    choice = node.facts.nccl
    plugins = choice if isinstance(choice, Missing) else choice.plugins
    if isinstance(plugins, Missing):
        return NotKnown(f"whether NCCL finds the plug-in for EFA: {plugins}", (node.host,))
    return _Ignored(
        node,
        node.rdma.ports,
        f"EFA needs the plug-in aws-ofi-nccl, and NCCL finds no plug-in that it could use ({reason})",
        fails,
    )


def _findings(ignored: Sequence[_Ignored], using: Sequence[str]) -> Iterator[Finding]:
    groups: dict[tuple[str, Severity, tuple[str, ...]], list[_Ignored]] = {}
    for node in ignored:
        names = tuple(hca.name_of(port) for port in node.ports)
        groups.setdefault((node.reason, _severity(node, using), names), []).append(node)
    for (reason, severity, names), group in groups.items():
        hosts = tuple(node.node.host for node in group)
        first = group[0]
        cost = "the job fails at its start" if first.fails else "all traffic goes through TCP sockets"
        if using and not first.fails:
            cost = (
                f"it uses sockets where {named(using)} {'uses' if len(using) == 1 else 'use'} another network"
            )
        see = f" (see {first.finding_slug})" if first.finding_slug else ""
        yield Finding(
            severity,
            f"NCCL ignores the RDMA ports {listed(names)} of {named(hosts)}: {reason}{see}: {cost}",
            hosts,
            (
                Evidence(
                    hosts,
                    "network NCCL uses",
                    "none" if first.fails else network.SOCKET,
                    "IB, or a plug-in",
                    "ncclcheck's model of NCCL",
                ),
                Evidence(
                    hosts,
                    listed(names),
                    str(first.ports[0].state),
                    "used",
                    file_of(first.ports[0], "state"),
                ),
            ),
            (_fix(first),),
        )


def _severity(ignored: _Ignored, using: Sequence[str]) -> Severity:
    if ignored.finding_slug:
        return "info"
    if using or ignored.fails:
        return "error"
    return "warning" if ignored.node.is_switched_off or has_gpus(ignored.node.facts) is False else "error"


def _fix(ignored: _Ignored) -> Fix:
    environment, look = ignored.node.environment, "ncclcheck predict"
    if ignored.finding_slug:
        return Fix(f"see the finding {ignored.finding_slug}", (f"ncclcheck checks {ignored.finding_slug}",))
    if ignored.node.is_switched_off:
        names = [name for name in ("NCCL_IB_DISABLE", "NCCL_NET") if environment.get(name)]
        return Fix(
            f"unset {' and '.join(names)} on all nodes if RDMA is to be used",
            (f"unset {' '.join(names)}", look),
        )
    if not any(is_verbs(port) for port in ignored.ports):
        return Fix(
            "install aws-ofi-nccl and libfabric in the image, with their folders in LD_LIBRARY_PATH",
            ("fi_info -p efa", look),
        )
    if network.is_unloadable(ignored.node.rdma.verbs_library):
        return Fix(
            "install libibverbs in the image",
            ("apt-get install -y libibverbs1 ibverbs-providers", "ibv_devices"),
        )
    if environment.get("NCCL_IB_HCA"):
        return Fix(
            "correct NCCL_IB_HCA or unset it: it is a list of device names (prefixes, unless it begins with `=`)",
            ("ls /sys/class/infiniband", "unset NCCL_IB_HCA", look),
        )
    return Fix("remove the cause given above", (look,))
