"""Share: is a `--shared-dir` shared: every node leaves a mark, all look for all marks, and every mark is removed."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.nodes.bench_order import MOST_RANKS
from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.messages import SCHEMA, SMALL_LIMIT_BYTES, TOOL_VERSION
from ncclcheck.exchange.shared_views import SharedFolder, views_of
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.facts.bounded_call import start
from ncclcheck.facts.storage.run_marks import MarksSeen, look_for, mark_of, seen_or
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import SharedView, Snapshot
from ncclcheck.run.session import Session, ask
from ncclcheck.run.steps.base import Bounds, Participant, Step
from ncclcheck.timeouts import (
    SHARE_LOOK_S,
    SHARE_REMOVE_S,
    SHARE_S,
    SHARE_START_S,
    SHARE_WRITE_S,
)

MOST_PATHS = 256
_NOT_OURS = Missing("denied", "this node's own command line does not name it as --shared-dir")


class ShareOrder(Struct, frozen=True, forbid_unknown_fields=True, tag="share"):
    """Leave a mark in each of these folders, see which marks of the others are there, and remove it."""

    paths: tuple[str, ...]
    tickets: tuple[int, ...]


class Shared(Struct, frozen=True, forbid_unknown_fields=True):
    """What this node found in each folder."""

    schema_version: str
    tool_version: str
    folders: tuple[SharedFolder, ...]


# The coordinator


def _lead(session: Session) -> Snapshot:
    """Ask all nodes that are not silent about every shared folder of node 0."""
    snapshot, paths = session.snapshot, session.context.options.shared_paths
    gone = {silent.host for silent in snapshot.silent}
    there = tuple(agent for agent in session.agents if agent.host not in gone)
    if len(there) <= 1:
        return snapshot
    if session.deadline.left() < SHARE_S:
        late = Missing("timeout", "no time was left to try the shared folders")
        return replace(snapshot, shared=late)
    answers = ask(session, SHARE, ShareOrder(paths, tuple(agent.ticket for agent in there)), there)
    hosts = {agent.ticket: agent.host for agent in there}
    views: list[SharedView] = []
    for agent in there:
        silence = Missing("timeout", f"{agent.host} did not tell what it found")
        answer = answers.of(agent, silence)
        views += views_of(agent, hosts, answer if isinstance(answer, Missing) else answer.folders, paths)
    return replace(snapshot, shared=tuple(views))


# A participant


def follow_share(participant: Participant, order: ShareOrder) -> Shared:
    """Try the folders that this node's own command line names. Its marks are gone afterwards, whatever happens."""
    own_paths, nonce = participant.context.options.shared_paths, participant.nonce
    store, count = participant.store, len(order.tickets)
    ours = {readable(path): path for path in own_paths if readable(path) in order.paths}
    deadline = Deadline(SHARE_WRITE_S)
    marks = {path: mark_of(folder, nonce, participant.ticket) for path, folder in ours.items()}
    wrote: dict[str, Missing | None] = {}
    saw: dict[str, MarksSeen] = {}
    try:
        wrote = {path: mark.written(deadline.left()) for path, mark in marks.items()}
        _meet(store, keys.share_wrote(nonce), count, Deadline(deadline.left() + SHARE_START_S))
        looks = {path: start(look_for, mark, nonce, order.tickets) for path, mark in marks.items()}
        saw = {path: seen_or(look.result(SHARE_LOOK_S + SHARE_START_S)) for path, look in looks.items()}
        _meet(store, keys.share_looked(nonce), count, Deadline(SHARE_LOOK_S))
    finally:
        ends = {path: start(mark.close) for path, mark in marks.items()}
        left = {path: end.result(SHARE_REMOVE_S) for path, end in ends.items()}
    folders = [
        SharedFolder(path, wrote[path], *saw[path], left=str(left[path]))
        if path in ours
        else SharedFolder(path, _NOT_OURS, _NOT_OURS)
        for path in order.paths
    ]
    return Shared(SCHEMA, TOOL_VERSION, tuple(folders))


def _meet(store: Store, key: str, count: int, deadline: Deadline) -> None:
    """Wait until every node has come here, or the time is over."""
    if isinstance(store.add(key, 1), Missing):
        return
    for _ in polls(deadline):
        value = store.get(key)
        if isinstance(value, Missing) or (value.isdigit() and int(value) >= count):
            return


def _faults(order: ShareOrder, _: Bounds) -> Iterator[str]:
    if len(order.paths) > MOST_PATHS or len(order.tickets) > MOST_RANKS:
        yield f"{len(order.paths)} folders of {len(order.tickets)} nodes"


SHARE = Step(
    "share",
    SHARE_S,
    applies=lambda session: session.probes_network and bool(session.context.options.shared_paths),
    lead=_lead,
    order=ShareOrder,
    answer=Shared,
    follow=follow_share,
    doing="the test of the shared folders",
    faults=_faults,
    limit_bytes=SMALL_LIMIT_BYTES,
)
