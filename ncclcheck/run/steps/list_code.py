"""List code: where `--code` differs, nodes with different contents list their files, so that these are named."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.messages import LISTING_LIMIT_BYTES, SCHEMA, TOOL_VERSION
from ncclcheck.facts.software.code import list_own
from ncclcheck.measure.file_lists import differences, to_compare
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.session import Session, ask
from ncclcheck.run.steps.base import Participant, Step
from ncclcheck.timeouts import ANSWER_S, CODE_S


class ListCodeOrder(Struct, frozen=True, forbid_unknown_fields=True, tag="list-code"):
    """Say which files are below these `--code` paths: for each ticket its paths."""

    paths_of: dict[str, tuple[str, ...]]


class CodeListed(Struct, frozen=True, forbid_unknown_fields=True):
    """A short digest of each file by its name, by path; a path that could not be listed is left out."""

    schema_version: str
    tool_version: str
    files: dict[str, dict[str, str]]


def _lead(session: Session) -> Snapshot:
    hosts_by_path = to_compare(session.snapshot)
    paths = {
        agent: tuple(path for path, hosts in hosts_by_path.items() if agent.host in hosts)
        for agent in session.agents
    }
    asked = tuple(agent for agent, agent_paths in paths.items() if agent_paths)
    order = ListCodeOrder({str(agent.ticket): paths[agent] for agent in asked})
    if session.deadline.left() < CODE_S + ANSWER_S:
        return session.snapshot
    listed = ask(session, LIST_CODE, order, asked).accepted
    hosts = {agent.ticket: agent.host for agent in asked}
    listings = {
        (hosts[ticket], path): files
        for ticket, answer in listed.items()
        for path, files in answer.files.items()
    }
    return replace(session.snapshot, code_differences=differences(hosts_by_path, listings))


def _follow(participant: Participant, order: ListCodeOrder) -> CodeListed:
    asked_paths = order.paths_of.get(str(participant.ticket), ())
    return CodeListed(SCHEMA, TOOL_VERSION, list_own(participant.context.options.code_paths, asked_paths))


LIST_CODE = Step(
    "list-code",
    CODE_S + ANSWER_S,
    applies=lambda session: session.probes_network and bool(to_compare(session.snapshot)),
    lead=_lead,
    order=ListCodeOrder,
    answer=CodeListed,
    follow=_follow,
    doing="the comparison of the code",
    limit_bytes=LISTING_LIMIT_BYTES,
)
