"""NC202 ifname-excludes-into-loopback."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import job_size, named
from ncclcheck.checks.ifname_settings import (
    NCCL_VARIABLE,
    IfnameSetting,
    excludes_into_loopback,
    not_settled,
    settings,
    settings_of_ranks,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check(
    "NC202",
    "ifname-excludes-into-loopback",
    "An exclusion in NCCL_SOCKET_IFNAME does not make NCCL use lo",
    needs=("interfaces", "environment", "nccl"),
)
def ifname_excludes_into_loopback(snapshot: Snapshot) -> Iterator[Answer]:
    """`NCCL_SOCKET_IFNAME=^docker0` and the like do not make NCCL choose the loopback interface.

    ## Why it matters
    An explicit exclusion replaces NCCL's own list of exclusions (docker, lo). `lo` comes first in the kernel's order,
    so NCCL takes 127.0.0.1. On one node that works; on several nodes the job hangs or connections are refused.

    ## How to fix
    Exclude lo too: `NCCL_SOCKET_IFNAME=^docker,lo`. Better: name what to use, such as `=eth0`.

    ## Source
    NCCL src/misc/socket.cc, ncclFindInterfaces; seen with the real library from 2.18.3 to 2.32.3.
    """
    several = job_size(snapshot) > 1
    groups: dict[str, list[IfnameSetting]] = {}
    for setting in (*settings(snapshot), *settings_of_ranks(snapshot)):
        if excludes_into_loopback(setting):
            groups.setdefault(setting.nccl or "", []).append(setting)
    for value, caught in groups.items():
        hosts = tuple(dict.fromkeys(choice.host for choice in caught))
        yield Finding(
            "error" if several else "warning",
            f"{NCCL_VARIABLE}={value!r} makes NCCL choose {caught[0].choice.interface} ({caught[0].choice.address}) on "
            f"{named(hosts)}: the exclusion replaces NCCL's default, which excludes lo, so "
            + ("no other node can connect" if several else "the setting breaks jobs with several nodes"),
            hosts,
            tuple(_evidence(choice) for choice in caught),
            (Fix("exclude lo too, or name the interface to use", env={NCCL_VARIABLE: _mended(value)}),),
        )
    yield from not_settled(snapshot)


def _mended(value: str) -> str:
    """The exclusion with lo in it, and without what NCCL would take as part of a name."""
    body = value.removeprefix("^").removeprefix("=")
    names = [part.strip().strip("\"'").lstrip("^=").rstrip("*").strip() for part in body.split(",")]
    return (
        f"^{value[1:2] if value[1:2] == '=' else ''}{','.join(dict.fromkeys((*filter(None, names), 'lo')))}"
    )


def _evidence(setting: IfnameSetting) -> Evidence:
    return Evidence(
        (setting.host,),
        f"{NCCL_VARIABLE}={setting.nccl}{setting.of_rank} ({setting.nccl_source})",
        f"{setting.choice.interface} {setting.choice.address}",
        "an interface that other nodes reach",
        f"{setting.choice.source}: {setting.choice.library or 'model of NCCL'}",
    )
