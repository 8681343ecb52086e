"""NC118 place-contested."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import job_size, named, not_heard_to_the_end
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import Snapshot


@check("NC118", "place-contested", "Nobody else answers in the place of a node")
def place_contested(snapshot: Snapshot) -> Iterator[Answer]:
    """For each place in the job one process answers, and its messages are those that it announced.

    ## Why it matters
    Every machine that reaches the master port of a run without a key can write messages in the name of a node. Where
    two messages for one place contradict each other, this check says so, and the node is not blamed for their
    content.

    ## How to fix
    Let only the nodes of the job reach the master port, or give the run a key (`--key-file`, `NCCLCHECK_KEY`). A job
    that was started twice with the same master address and port looks the same.

    ## Source
    ncclcheck's own rule: a place is a node rank and a local rank, and each process writes its messages once.
    """
    if snapshot.contested:
        hosts = tuple(dict.fromkeys(place.host for place in snapshot.contested))
        first = snapshot.contested[0]
        yield Finding(
            "error",
            f"somebody else answers for {named(hosts)}: {first.detail}; another program writes into the store of "
            "this run, which has no key",
            hosts,
            tuple(
                Evidence(
                    (place.host,),
                    f"messages of node rank {place.node_rank} ({place.what})",
                    place.detail,
                    "one process, whose messages fit together",
                    "the store, which every machine that reaches the master port can write to",
                )
                for place in snapshot.contested
            ),
            (Fix("allow only the nodes of the job to connect to the master port, or use --key-file"),),
        )
    if job_size(snapshot) == 1:
        yield NotApplicable("one node sends no messages")
    yield from not_heard_to_the_end(snapshot)
