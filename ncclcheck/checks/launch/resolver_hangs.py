"""NC120 resolver-hangs."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.launch._master import saw
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC120", "resolver-hangs", "Names can be looked up at all", needs=("names",))
def resolver_hangs(snapshot: Snapshot) -> Iterator[Answer]:
    """Looking up a name ends on every node, and the files that every look-up reads can be read.

    ## Why it matters
    The C library reads /etc/hosts, /etc/resolv.conf and /etc/nsswitch.conf for each look-up, also of `localhost` and of
    addresses. If one of them is a FIFO, or is on a dead mount, every look-up hangs forever: so does torch's
    TCPStore, Gloo, and almost every other program on the node.

    ## How to fix
    Replace the file, or fix the mount that it is on. In a container check what is mounted over it.

    ## Source
    nsswitch.conf(5), hosts(5), resolv.conf(5); torch/csrc/distributed/c10d/socket.cpp asks for names of addresses.
    """
    hanging_files = {node.host: names.hanging for node, names in snapshot.known("names") if names.hanging}
    details = {
        sighting.host: sighting.path.detail
        for sighting in saw(snapshot, "resolver-hangs")
        if sighting.host not in hanging_files
    }
    details |= {host: f"reading {' and '.join(files)} hangs" for host, files in hanging_files.items()}
    if details:
        yield _finding(
            details, tuple(dict.fromkeys(file for files in hanging_files.values() for file in files))
        )
    yield from not_reported(snapshot)


def _finding(details: dict[str, str], files: tuple[str, ...]) -> Finding:
    hosts = tuple(details)
    shown = f" ({' and '.join(files)} {'hang' if len(files) > 1 else 'hangs'} when read)" if files else ""
    return Finding(
        "error",
        f"on {named(hosts)} looking up any name hangs{shown}: torch's store and almost every program "
        f"{verb(hosts, 'hangs', 'hang')} there with it",
        hosts,
        tuple(
            Evidence((host,), "looking up localhost", detail, "an answer", "getaddrinfo on this node")
            for host, detail in details.items()
        ),
        (
            Fix(
                "replace the file that hangs, or fix the mount that it is on",
                (f"stat {' '.join(files) or '/etc/hosts'}   # on {named(hosts)}: a FIFO, or no answer",),
            ),
        ),
    )
