"""NC605 env-contradiction."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ncclcheck.checks.environment._settings import (
    EnvironmentPlace,
    Judged,
    OneAnswer,
    SettingFault,
    findings,
    shown,
    unset,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Fix, Severity
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import ifname, versions
from ncclcheck.nccl.environment import files_read
from ncclcheck.nccl.variables.variables import TABLE

_MOST_SOCKETS = 64  # MAX_SOCKETS of src/transport/net_socket.cc
_MOST_THREADS = 16
_PAIRS = (
    ("NCCL_MIN_CTAS", "NCCL_MAX_CTAS"),
    ("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"),
    ("NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS"),
    ("NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS"),
)
_OF_RDMA_ONLY = (
    "NCCL_IB_HCA",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_ADDR_RANGE",
    "NCCL_IB_TC",
    "NCCL_IB_QPS_PER_CONNECTION",
)


@check(
    "NC605",
    "env-contradiction",
    "No settings contradict each other",
    needs=("environment", "nccl"),
    alike=("environment", "gpus", "interfaces", "nccl", "rdma", "software"),
    by_node=True,
    image=True,
)
def env_contradiction(snapshot: Snapshot) -> Iterator[Answer]:
    """No setting excludes or overrides another.

    ## Why it matters
    NCCL does not report settings that exclude each other: one of them wins, often not the one that was set last.
    NCCL_COMM_ID disables NCCL_SOCKET_IFNAME; NCCL_NET=IB with NCCL_IB_DISABLE=1 fails the job; without peer-to-peer
    and shared memory, even GPUs of one node communicate through the network card. NCCL 2.29 uses a wrong interface if
    NCCL_COMM_ID is set.

    ## How to fix
    Remove one of the two settings.

    ## Source
    NCCL src/bootstrap.cc, src/misc/socket.cc, src/init.cc, src/transport/net_socket.cc, src/transport/net_ib,
    src/plugin/net.cc; torch's ProcessGroupNCCL.cpp.
    """
    yield from findings(snapshot, _judge)


def _judge(place: EnvironmentPlace) -> Iterator[Judged]:
    for rule in _RULES:
        yield from rule(place)


def _case(
    place: EnvironmentPlace, severity: Severity, names: tuple[str, ...], why: str, source: str, fix: Fix
) -> SettingFault:
    what = " with ".join(shown(name, place.environment[name]) for name in names)
    return SettingFault(severity, names, what, why, "settings that do not exclude each other", source, fix)


def _on(place: EnvironmentPlace, name: str) -> bool:
    """True where the variable is set to a number other than 0."""
    return place.number(name, 0) != 0


# --- NCCL_COMM_ID -----------------------------------------------------------------------------------------------------


def _comm_id(place: EnvironmentPlace) -> Iterator[Judged]:
    if place.value("NCCL_COMM_ID") is None:
        return
    verdicts = {versions.is_comm_id_inverted(versions.parse(version)) for version in place.versions()}
    if verdicts == {True}:
        yield _case(
            place,
            "error",
            ("NCCL_COMM_ID",),
            f"NCCL {place.nccl} has a bug: with NCCL_COMM_ID it uses the first interface NOT in "
            "that subnet, mostly lo (fixed in 2.30.3)",
            "NCCL 2.29 src/misc/socket.cc (matchSubnet)",
            unset("NCCL_COMM_ID", text="remove it: torch does not need it"),
        )
    elif True in verdicts:
        yield OneAnswer(
            "NCCL_COMM_ID is set, and whether NCCL is 2.29, which has a bug with it, is not known"
        )
    if ifname.is_set(place.value("NCCL_SOCKET_IFNAME")):
        yield _case(
            place,
            "warning",
            ("NCCL_COMM_ID", "NCCL_SOCKET_IFNAME"),
            "with NCCL_COMM_ID the bootstrap uses the interface in that subnet and ignores NCCL_SOCKET_IFNAME",
            "NCCL src/bootstrap.cc (bootstrapNetInit)",
            unset("NCCL_COMM_ID", text="remove it: torch does not need it"),
        )


# --- networks ---------------------------------------------------------------------------------------------------------


def _network_and_ib(place: EnvironmentPlace) -> Iterator[Judged]:
    network = (place.value("NCCL_NET") or "").lower()
    is_off = _on(place, "NCCL_IB_DISABLE")
    settings = tuple(
        name for name in _OF_RDMA_ONLY if place.value(name) and (name != "NCCL_IB_GID_INDEX" or network)
    )
    if network == "ib" and is_off:
        yield _case(
            place,
            "error",
            ("NCCL_NET", "NCCL_IB_DISABLE"),
            "the only allowed network is turned off, so NCCL finds none and fails",
            "NCCL src/init.cc, src/transport/net_ib",
            unset("NCCL_IB_DISABLE"),
        )
    elif is_off and "NCCL_IB_HCA" in settings and network != "socket":
        yield _case(
            place,
            "warning",
            ("NCCL_IB_DISABLE", "NCCL_IB_HCA"),
            "it names devices, but RDMA is turned off: NCCL uses TCP",
            "NCCL src/transport/net_ib (ncclIbInit)",
            unset("NCCL_IB_DISABLE", text="remove one of them; without NCCL_IB_DISABLE, NCCL uses RDMA"),
        )
    elif network == "socket" and settings:
        yield _case(
            place,
            "warning",
            ("NCCL_NET", *settings),
            "NCCL_NET=Socket allows TCP only, so the settings for RDMA have no effect",
            "NCCL src/init.cc",
            unset(
                "NCCL_NET",
                text="remove one of them; without NCCL_NET, NCCL uses RDMA where available",
            ),
        )


def _network_and_plugin(place: EnvironmentPlace) -> Iterator[Judged]:
    network, plugin = place.value("NCCL_NET"), place.value("NCCL_NET_PLUGIN")
    if (
        network is None
        or plugin is None
        or network.lower() in {"ib", "socket", ""}
        or plugin.lower() != "none"
    ):
        return
    yield _case(
        place,
        "error",
        ("NCCL_NET", "NCCL_NET_PLUGIN"),
        f"{network!r} comes from a plug-in, and no plug-in is loaded, so NCCL finds no such network and fails",
        "NCCL src/plugin/net.cc (before 2.28 'none' is a file that is not there)",
        unset("NCCL_NET_PLUGIN"),
    )


def _gid(place: EnvironmentPlace) -> Iterator[Judged]:
    index, address_range = place.value("NCCL_IB_GID_INDEX"), place.value("NCCL_IB_ADDR_RANGE")
    if index and address_range and place.number("NCCL_IB_GID_INDEX", -1) >= 0:
        yield _case(
            place,
            "warning",
            ("NCCL_IB_GID_INDEX", "NCCL_IB_ADDR_RANGE"),
            "NCCL uses a forced index as it is, so the range has no effect",
            "NCCL src/transport/net_ib (ncclIbGetGidIndex)",
            unset("NCCL_IB_GID_INDEX"),
        )


def _family(place: EnvironmentPlace) -> Iterator[Judged]:
    """NCCL_SOCKET_FAMILY against the addresses of the interfaces that are named."""
    family_setting, names = place.value("NCCL_SOCKET_FAMILY"), place.value("NCCL_SOCKET_IFNAME")
    interfaces = place.facts.interfaces
    if family_setting not in {"AF_INET", "AF_INET6"} or names is None or not ifname.is_set(names):
        return
    if isinstance(interfaces, Missing) or place.value("NCCL_COMM_ID") is not None:
        return
    pattern = ifname.parse(names)
    named = [interface for interface in interfaces if interface.addresses and pattern.matches(interface.name)]
    families = {address.family for interface in named for address in interface.addresses}
    family = "inet" if family_setting == "AF_INET" else "inet6"
    if named and family not in families:
        have = "IPv6" if family == "inet" else "IPv4"
        yield _case(
            place,
            "error",
            ("NCCL_SOCKET_FAMILY", "NCCL_SOCKET_IFNAME"),
            f"{', '.join(interface.name for interface in named[:4])} has only {have} addresses: "
            "NCCL finds no interface and fails",
            "NCCL src/misc/socket.cc (findInterfaces)",
            unset("NCCL_SOCKET_FAMILY"),
        )


def _interfaces_of_gloo(place: EnvironmentPlace) -> Iterator[Judged]:
    """NCCL and Gloo on different networks: fine where both reach, and worth knowing where one does not."""
    nccl, gloo = place.value("NCCL_SOCKET_IFNAME"), ifname.parse_gloo(place.value("GLOO_SOCKET_IFNAME"))
    if nccl is None or not ifname.is_set(nccl) or not gloo or any(name[:1] in "^=" for name in gloo):
        return
    pattern = ifname.parse(nccl)
    if not any(pattern.matches(name) for name in gloo):
        yield _case(
            place,
            "info",
            ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"),
            "NCCL and Gloo use different interfaces, which works as long as both reach the other nodes",
            "NCCL src/misc/socket.cc; gloo/transport/tcp/device.cc",
            Fix("name the same interface for both, unless they are meant to differ"),
        )


# --- numbers ----------------------------------------------------------------------------------------------------------


def _sockets(place: EnvironmentPlace) -> Iterator[Judged]:
    names = ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")
    threads, sockets = (place.number(name, 0) for name in names)
    if threads > 0 and sockets > 0 and min(threads, _MOST_THREADS) * sockets > _MOST_SOCKETS:
        sockets_per_thread = _MOST_SOCKETS // min(threads, _MOST_THREADS)
        yield _case(
            place,
            "warning",
            names,
            f"that is {threads * sockets} sockets, and NCCL opens at most {_MOST_SOCKETS}: it uses "
            f"{sockets_per_thread} per thread",
            "NCCL src/transport/net_socket.cc (ncclNetSocketGetNsockNthread)",
            Fix(
                f"set NCCL_NSOCKS_PERTHREAD={sockets_per_thread} or less",
                (),
                {"NCCL_NSOCKS_PERTHREAD": str(sockets_per_thread)},
            ),
        )


def _limits(place: EnvironmentPlace) -> Iterator[Judged]:
    for least, most in _PAIRS:
        low, high = place.number(least, 0), place.number(most, 0)
        if low > high > 0:
            yield _case(
                place,
                "warning",
                (least, most),
                "the minimum is larger than the maximum, so NCCL ignores one of the two",
                "NCCL src/init.cc, src/graph/connect.cc",
                Fix(f"set {least} to at most {most}", (f"unset {least}",)),
            )


def _local_transports(place: EnvironmentPlace) -> Iterator[Judged]:
    names = ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE")
    gpus = place.facts.gpus
    if not isinstance(gpus, Missing) and len(gpus) == 1:
        return
    if place.number(names[0], 0) == 1 and _on(place, names[1]):
        yield _case(
            place,
            "warning",
            names,
            "with both off, GPUs of one node can only communicate through the network card, the "
            "slowest transport",
            "NCCL src/graph/paths.cc, src/transport/shm.cc",
            unset(*names),
        )


# --- torch ------------------------------------------------------------------------------------------------------------


def _torch_waits(place: EnvironmentPlace) -> Iterator[Judged]:
    wait = next(
        (name for name in ("TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT") if _is_true(place, name)), None
    )
    names = ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING")
    handling = next((name for name in names if place.value(name) and _on(place, name)), None)
    if wait is not None and handling is not None:
        yield _case(
            place,
            "warning",
            (wait, handling),
            "a blocking wait overrides error handling, so the watchdog does not end a job that hangs",
            "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp",
            unset(wait),
        )


def _is_true(place: EnvironmentPlace, name: str) -> bool:
    return (place.value(name) or "").lower() in {"1", "y", "yes", "t", "true"}


def _old_and_new_name(place: EnvironmentPlace) -> Iterator[Judged]:
    """An old name of torch and its successor with different values: the new name wins."""
    for name in place.environment:
        variable = TABLE.get(name)
        if variable is None or variable.owner != "torch" or not variable.successor:
            continue
        old, new = place.value(name), place.value(variable.successor)
        if old is not None and new is not None and old != new:
            yield _case(
                place,
                "warning",
                (name, variable.successor),
                f"both names are the same setting; {variable.successor} wins",
                "torch/csrc/distributed/c10d/Utils.hpp",
                unset(name),
            )


# --- files ------------------------------------------------------------------------------------------------------------


def _environment_and_file(place: EnvironmentPlace) -> Iterator[Judged]:
    """A variable that is set in the environment and otherwise in a file, or differently in two files."""
    choice = place.facts.nccl
    if isinstance(choice, Missing) or isinstance(place.facts.environment, Missing):
        return
    version = place.nccl or versions.NEWEST
    files = files_read(place.environment, choice.config_files, version, home_set=choice.home_set)
    for file in files:
        if isinstance(file.settings, Missing):
            continue
        for name, text in sorted(file.settings.items()):
            value, origin = place.value(name), place.sources.get(name, "")
            cleaned = text.removesuffix("\r")
            if value is None or origin == file.path or value.removesuffix("\r") == cleaned:
                continue
            winner = "the environment" if origin == "environment" else origin
            yield SettingFault(
                "info",
                (name,),
                f"{shown(name, value)} in {winner} and {shown(name, cleaned)} in {file.path}",
                f"{winner} wins, so what {file.path} says is not used",
                "one value",
                "NCCL src/misc/param.cc (setEnvFile)",
                Fix("remove the wrong one"),
            )


_RULES: tuple[Callable[[EnvironmentPlace], Iterator[Judged]], ...] = (
    _comm_id,
    _network_and_ib,
    _network_and_plugin,
    _gid,
    _family,
    _interfaces_of_gloo,
    _sockets,
    _limits,
    _local_transports,
    _torch_waits,
    _old_and_new_name,
    _environment_and_file,
)
