"""NC938 stale-config."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.logs._causes import Confidence, Suspect, cause, suspect
from ncclcheck.checks.logs._network import virtual_processes
from ncclcheck.checks.logs._view import culprits, failures, is_local, remarks, settings, troubles
from ncclcheck.model.events import Log, Process, Remark
from ncclcheck.model.finding import Fix

_HARMFUL = (
    (
        "NCCL_IB_DISABLE",
        "1",
        "these nodes use sockets while the others use InfiniBand, and the two do not meet",
    ),
    (
        "NCCL_NET",
        "Socket",
        "these nodes use sockets while the others use InfiniBand, and the two do not meet",
    ),
    ("NCCL_P2P_DISABLE", "1", "the ranks disagree about how GPUs of a node reach each other"),
    ("NCCL_SHM_DISABLE", "1", "the ranks disagree about how processes of a node reach each other"),
    ("NCCL_CUMEM_ENABLE", "0", "the ranks disagree about how memory is shared"),
)
_SOCKETS_ONLY = ("NCCL_IB_DISABLE", "NCCL_NET")

_NEVER_SET = {  # in production, by NCCL's own authors
    "NCCL_GRAPH_FILE": "it forces the rings of another number or kind of GPUs; look for it in /etc/nccl.conf and "
    "~/.nccl.conf too",
}


@cause(
    "NC938",
    "stale-config",
    "A stale setting changes what NCCL does",
    explains=("rank-exception", "nccl-or-driver-bug"),
    fixes=(
        Fix(
            "unset the stale variable on all nodes (NCCL_COMM_ID, NCCL_IB_DISABLE, NCCL_P2P_DISABLE "
            "...); look into nccl.conf, /etc/profile.d and the image's environment",
            (
                "env | grep ^NCCL_; cat /etc/nccl.conf ~/.nccl.conf",
                "ncclcheck preflight --select env-differs,env-harmful",
            ),
        ),
    ),
)
def stale_config(log: Log) -> Iterator[Suspect]:
    """A stale variable, or an nccl.conf, makes NCCL behave differently than intended.

    ## Why it matters
    Profiles, images and scripts carry such settings over from a cluster where they made sense.

    ## How to fix
    Unset the variable everywhere, and look for it in /etc/nccl.conf, ~/.nccl.conf, profiles and images.

    ## Source
    NCCL prints each variable that it reads (`set by environment to`); NCCL_COMM_ID makes 2.26 and older look
    for an interface in the subnet of its address.
    """
    subnet = remarks(log, "no-subnet") if not remarks(log, "bind-elsewhere") else ()
    unfit = remarks(log, "setting-unfit")
    if unfit:
        yield suspect(
            "NCCL_ALGO or NCCL_PROTO forces an algorithm that NCCL cannot use here.",
            unfit,
            hosts=_hosts_with_setting(log, ("NCCL_ALGO", "NCCL_PROTO"))
            or culprits(log, [remark.place for remark in unfit]),
        )
    if subnet:
        yield suspect(
            "NCCL finds no interface in the subnet of a fixed address: NCCL_COMM_ID is set "
            "to an address of another network or job.",
            subnet,
            hosts=(),
            explains=("ifname-missing", "container-network", "wrong-interface", "rank-exception"),
        )
    yield from _in_a_file(log)
    yield from _topology(log)
    yield from _on_some_only(log)
    yield from _slowed(log)
    for name, why in _NEVER_SET.items():
        for value, setting in settings(log, name).items():
            if troubles(log):
                yield suspect(
                    f"{name}={value} is set: {why}.",
                    [_line(process, name, value) for process in setting[:4]],
                    confidence="likely",
                    hosts=culprits(log, [process.place for process in setting]),
                    explains=(),
                )
    for value, setting in settings(log, "NCCL_COMM_ID").items():
        if troubles(log) and not subnet:
            yield suspect(
                f"NCCL_COMM_ID={value} is set: torch creates its own ids, and this one may belong to another job.",
                [_line(process, "NCCL_COMM_ID", value) for process in setting[:4]],
                confidence=_sureness(log, value),
                hosts=culprits(log, [process.place for process in setting]),
                explains=(),
            )


def _topology(log: Log) -> Iterator[Suspect]:
    """Yield the topology file that NCCL was given and that lacks what NCCL wants to know."""
    lacking = [
        remark for remark in remarks(log, "nccl-warn") if remark.values.get("group") == "topology-attribute"
    ]
    if lacking and settings(log, "NCCL_TOPO_FILE"):
        yield suspect(
            "The file in NCCL_TOPO_FILE lacks a value that this NCCL needs: it is of another version, or damaged.",
            lacking,
            confidence="likely",
            hosts=culprits(log, [remark.place for remark in lacking[:1]]),
        )


def _hosts_with_setting(log: Log, names: Sequence[str]) -> tuple[str, ...]:
    """Return the hosts that have one of the settings, where others have none."""
    hosts = {
        process.host for name in names for setting in settings(log, name).values() for process in setting
    }
    return tuple(sorted(hosts)) if hosts < {process.host for process in log.processes} else ()


def _slowed(log: Log) -> Iterator[Suspect]:
    """Settings that turn a fast way off, in a log that says how fast the job should be."""
    slow = [remark for remark in remarks(log, "slow-word") if not remark.text.startswith("# Avg")]
    for name, value, _ in _HARMFUL[:4] if slow else ():
        set_on = settings(log, name).get(value, [])
        if set_on:
            yield suspect(
                f"{name}={value} is set, and the log says that the job is slower than it should be: look for it in "
                "/etc/nccl.conf and ~/.nccl.conf too.",
                [*(_line(process, name, value) for process in set_on[:4]), *slow],
                confidence="likely",
                hosts=culprits(log, [process.place for process in set_on]),
                explains=(),
            )
            return


def _on_some_only(log: Log) -> Iterator[Suspect]:
    """Settings that some hosts have and others lack, so that they do not meet."""
    for name, value, why in _HARMFUL:
        set_on = settings(log, name).get(value, [])
        without = [process for process in log.processes if process.network and process not in set_on]
        hosts = tuple(dict.fromkeys(process.host for process in set_on))
        if not set_on or not troubles(log) or {process.host for process in without} <= set(hosts):
            continue
        if name in _SOCKETS_ONLY and {process.network for process in without} == {"Socket"}:
            continue  # they do meet
        lacking = tuple(dict.fromkeys(process.host for process in without if process.host not in hosts))
        yield suspect(
            f"{name}={value} is set on {', '.join(hosts[:3])} only: {why}.",
            [_line(process, name, value) for process in set_on[:4]],
            confidence="certain"
            if name == "NCCL_IB_DISABLE" and any(process.network.startswith("IB") for process in without)
            else "likely",
            hosts=lacking if len(lacking) < len(hosts) else hosts,
            explains=(
                "ib-hca-selection",
                "rdma-userspace-missing",
                "slow-rank-timeout",
                "firewall-blocked-ports",
            ),
        )


def _sureness(log: Log, value: str) -> Confidence:
    """How sure it is that an id's address is to blame: it cannot be reached, it is loopback, or neither."""
    address = value.rpartition(":")[0]
    if any(
        failure.layer == "nccl" and failure.final and failure.address == address for failure in failures(log)
    ):
        return "certain"
    return "likely" if is_local(address) else "possible"


def _line(process: Process, name: str, value: str) -> Remark:
    """What NCCL said of the variable, as evidence."""
    return Remark(process.place, f"{name} set by environment to {value}", "setting")


def _in_a_file(log: Log) -> Iterator[Suspect]:
    """An interface that no other node reaches, which a configuration file names that the log shows."""
    shown = remarks(log, "conf-shown")
    for value, setting in settings(log, "NCCL_SOCKET_IFNAME").items():
        chosen = [
            process for process in setting if process in virtual_processes(log) or is_local(process.address)
        ]
        if shown and chosen and troubles(log):
            yield suspect(
                f"NCCL_SOCKET_IFNAME={value} stands in the configuration file of a node, and leads NCCL to "
                f"{chosen[0].interface}, which no other node reaches.",
                [*shown, *(_line(process, "NCCL_SOCKET_IFNAME", value) for process in chosen[:4])],
                confidence="certain",
                hosts=culprits(log, [process.place for process in chosen]),
                explains=(
                    "wrong-interface",
                    "loopback-interface",
                    "firewall-blocked-ports",
                    "container-network",
                ),
            )
            return
