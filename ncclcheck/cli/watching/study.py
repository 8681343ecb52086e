"""Looking closely at a job that stands still: two stacks of each rank, some seconds apart, and what they mean."""

from __future__ import annotations

import time

from msgspec import Struct

from ncclcheck.cli.watching.machine_view import ask_ras, view_machine
from ncclcheck.facts.bounded_call import start, within
from ncclcheck.facts.job.connections import connections_of
from ncclcheck.facts.job.rank_processes import RankProcess, look_at, own_pids_of
from ncclcheck.facts.job.rank_stacks import StacksRead, read_stacks
from ncclcheck.measure.watching.blocked import blocked_links
from ncclcheck.measure.watching.decision import decide
from ncclcheck.measure.watching.node_study import Studied, node_study
from ncclcheck.measure.watching.stacks import main_stack
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.job.together import NodeStudy
from ncclcheck.model.job.watched import BlockedLink, Connection, Frame, Watch, WatchedRank
from ncclcheck.timeouts import SOCK_DIAG_S, WATCH_RAS_S


class Question(Struct, frozen=True):
    """Which ranks to look at, and what is known before: for how long they stand, and who ended.

    `connected`: their connections when they stopped advancing. `ras`: where NCCL's RAS is asked, "" for not.
    `unheard_by`: node 0's address where only it does not hear this node, "" else.
    """

    host: str
    ranks: tuple[RankProcess, ...]
    apart_s: float
    still_s: float
    ended: tuple[WatchedRank, ...] = ()
    connected: tuple[Connection, ...] = ()
    ras: str = ""
    unheard_by: str = ""


class Answered(Struct, frozen=True):
    """The decision, and all threads' stacks as they were read the second time."""

    watch: Watch
    study: NodeStudy
    ranks: tuple[RankProcess, ...]
    documents: dict[int, bytes]
    files: dict[str, bytes]


def study(question: Question) -> Answered:
    """Read the stacks twice and decide."""
    pids = [rank.pid for rank in question.ranks]
    ras_before = start(ask_ras, question.ras)  # what disturbs the job least comes first
    connected = question.connected or read_connections(question.ranks)
    first = read_stacks(pids)
    before = look_at(question.ranks, time.monotonic())
    time.sleep(question.apart_s)
    after = look_at(question.ranks, time.monotonic())
    answer = ras_before.result(WATCH_RAS_S)
    ras_answer = b"" if isinstance(answer, Missing) else answer
    view = view_machine(question.host, question.ras, ras_answer, own_pids_of(question.ranks))
    blocked = blocked_links(question.host, connected, read_connections(question.ranks))
    second = read_stacks(pids)
    if question.unheard_by:
        blocked.append(BlockedLink(question.host, question.unheard_by, None, 0, heard=True))
    stacks, remarks = _main_stacks(second)
    studied = Studied(
        question.host,
        before,
        after,
        _main_stacks(first)[0],
        stacks,
        question.still_s + question.apart_s,
        max((rank.world_size for rank in question.ranks), default=0),
        question.ended,
        (*remarks, *view.remarks),
        tuple(blocked),
        view.advances,
    )
    documents = second.documents or first.documents
    return Answered(decide(studied), node_study(studied), question.ranks, documents, view.files)


def read_connections(ranks: tuple[RankProcess, ...]) -> tuple[Connection, ...]:
    """Return the ranks' connections to other machines; none where the kernel does not tell."""
    found = within(SOCK_DIAG_S * 2, connections_of, ranks)
    return () if isinstance(found, Missing) else found


def _main_stacks(read: StacksRead) -> tuple[dict[int, tuple[Frame, ...]], tuple[str, ...]]:
    frames: dict[int, tuple[Frame, ...]] = {}
    remarks = list(read.remarks)
    for pid, document in read.documents.items():
        try:
            frames[pid] = main_stack(document, pid)
        except DecodeError as error:
            remarks.append(f"no stack of process {pid}: {error}")
    return frames, tuple(remarks)
