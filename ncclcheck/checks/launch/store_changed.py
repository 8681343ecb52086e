"""NC123 store-changed."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import job_size, named, not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Snapshot

_MOST_NAMED = 3


@check("NC123", "store-changed", "Nobody else changes what the nodes wrote into the store of this run")
def store_changed(snapshot: Snapshot) -> Iterator[Answer]:
    """What a node wrote into the store of this run, or has read there, stays as it is until the end.

    ## Why it matters
    Every machine that reaches the master port of a run without a key can erase and overwrite messages. An erased
    message looks like a node that hangs. So nothing that follows from missing messages is said of any node: what was
    measured through them is dropped, and the run ends with exit code 3 (inconclusive).

    ## How to fix
    Let only the nodes of the job reach the master port, or give the run a key (`--key-file`, `NCCLCHECK_KEY`), and
    run it again. Another job that uses the same master address and port looks the same.

    ## Source
    ncclcheck's own rule: a node looks again at what it wrote itself; no process of a run erases anything.
    """
    if snapshot.store_changed:
        hosts = tuple(dict.fromkeys(change.host for change in snapshot.store_changed))
        changes = [f"{change.key} {change.what}" for change in snapshot.store_changed]
        yield Finding(
            "warning",
            f"another program writes into the store of this run: of what {named(hosts)} wrote or had read there, "
            f"{listed(changes, _MOST_NAMED)}; no node is judged by messages that are missing",
            (),
            tuple(
                Evidence(
                    (change.host,),
                    f"key {change.key!r}",
                    change.what,
                    "what it wrote or read before",
                    "the store, which every machine that reaches the master port can write to",
                )
                for change in snapshot.store_changed
            ),
            (
                Fix("allow only the nodes of the job to connect to the master port, or use --key-file"),
                Fix("look for another job with the same master address and port"),
            ),
        )
    if job_size(snapshot) == 1:
        yield NotApplicable("one node sends no messages")
    yield from not_reported(snapshot)
