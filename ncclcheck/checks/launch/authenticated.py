"""NC117 authenticated."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import job_size, named, not_reported
from ncclcheck.checks.launch._master import path_evidence, saw
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.authentication import Foreign
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Snapshot

_MOST_SENDERS = 4
_FIX = Fix(
    "give every node the same key: the same --key-file, or the same NCCLCHECK_KEY, or none on all of them",
    ("openssl rand -hex 32 > key && chmod 600 key   # then the same file on every node",),
)


@check("NC117", "authenticated", "All nodes have the same key, by which their messages are authenticated")
def authenticated(snapshot: Snapshot) -> Iterator[Answer]:
    """The run has a key, every node has the same one, and each message carries an HMAC made with it.

    ## Why it matters
    Without a key, every machine that reaches the master port can write into the run: it cannot run or set anything on
    the nodes, but it can disturb the run, and get a healthy node blamed. `--require authenticated` gives exit code 3
    for such a run.

    A node with another key than node 0, or with none where node 0 has one, cannot take part.

    ## How to fix
    Set the same NCCLCHECK_KEY on all nodes, or give them the same file with `--key-file`. With `--hosts`, in the folder
    of `--meet-in`, and under Slurm with munge, nothing has to be set up.

    ## Source
    ncclcheck's own rule (docs/security.md): HMAC-SHA256 with keys that HKDF (RFC 5869) derives for one run.
    """
    apart = saw(snapshot, "other-key")
    if apart:
        hosts = tuple(dict.fromkeys(sighting.host for sighting in apart))
        yield Finding(
            "error",
            f"{named(hosts)} cannot take part: {apart[0].path.detail}",
            hosts,
            path_evidence(apart, "node 0 with the key of this node"),
            (_FIX,),
        )
    else:
        yield from _claimed(snapshot)
    if job_size(snapshot) == 1:
        yield NotApplicable("one node sends no messages")
        return
    if not snapshot.authentication.by and not apart:
        yield NotApplicable("the run has no key: its messages were not authenticated")
        return
    yield from not_reported(snapshot)


def _claimed(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the nodes that did not come, and whose place somebody without the key claims."""
    silent = {node.node_rank: node.host for node in snapshot.silent}
    senders = [foreign for foreign in snapshot.authentication.foreign if foreign.node_rank in silent]
    if not senders:
        return
    senders.sort(key=lambda foreign: foreign.node_rank)
    hosts = tuple(dict.fromkeys(silent[foreign.node_rank] for foreign in senders))
    is_one = len(hosts) == 1
    whose = (
        "a process that says it is this node has"
        if is_one
        else "processes that say they are these nodes have"
    )
    yield Finding(
        "error",
        f"{named(hosts)} did not join, and {whose} {'another key' if is_one else 'other keys'}, or none: "
        f"{listed(dict.fromkeys(map(_sender_text, senders)), _MOST_SENDERS)}",
        hosts,
        tuple(
            Evidence(
                (silent[foreign.node_rank],),
                f"introduction of {_sender_text(foreign)}, which nothing proves",
                "another key" if foreign.cause == "other-key" else "no key",
                "the key of this run",
                "the master port of node 0",
            )
            for foreign in senders
        ),
        (_FIX,),
    )


def _sender_text(foreign: Foreign) -> str:
    why = f" ({foreign.refuses})" if foreign.refuses else ""
    return f"{foreign.said or 'a process'} at {foreign.origin}{why}"
