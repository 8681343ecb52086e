"""A process that was given a key which it does not use: it takes no part, and tells the others why.

Where the key itself could be read, it proves who says so, and nobody waits for this node. Where it could not, the
others hear a claim: they quote it, and wait on.
"""

from __future__ import annotations

from contextlib import closing

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import polls
from ncclcheck.exchange.join.knock import KnockListener
from ncclcheck.exchange.join.master import MasterSearch, ask, describe, resolve_master
from ncclcheck.exchange.trust.run_key import RefusedKey
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.run.context import Context
from ncclcheck.run.master_store import search_of

_LONGEST = 250  # of the reason, in a datagram


def take_no_part(context: Context, refused: RefusedKey) -> None:
    """Tell the other nodes of the job, as far as they can be told."""
    launch = context.launch
    if (
        context.is_alone
        or not launch.is_agent
        or not launch.master_addr
        or context.options.meet_in is not None
    ):
        return
    context.say(f"{refused.why}. This node takes no part, and tells the others")
    why = f"this node does not use its key: {refused.why[:_LONGEST]}"
    if launch.node_rank == 0:
        _stand_down(context, refused, why)
    else:
        _tell_node_0(context, refused, why)


def _stand_down(context: Context, refused: RefusedKey, why: str) -> None:
    launch = context.launch
    trust = Trust(refused.key)
    with closing(KnockListener(launch.master_port, launch.job_id, launch.most_node_ranks, trust)) as knocks:
        knocks.given_up, knocks.answers_unread = why, True
        knocks.wait_for_all(context.deadline.within(timeouts.STAND_DOWN_S))


def _tell_node_0(context: Context, refused: RefusedKey, why: str) -> None:
    """Knock until node 0 answers: with the key, where there is one, and without, where node 0 has none."""
    launch = context.launch
    deadline = context.join_deadline().within(timeouts.REFUSED_KEY_TOLD_S)
    search = search_of(context)
    addresses = resolve_master(launch.master_addr or "", deadline, context.say)
    if isinstance(addresses, Missing):
        return
    path = describe(launch.master_addr or "", launch.master_port, addresses, search.own_addresses)
    path = replace(path, outcome="other-key", detail=why)
    trusts = [Trust(refused.key), Trust()] if refused.key is not None else [Trust()]
    for _ in polls(deadline):
        if any(_is_heard(path, replace(search, trust=trust)) for trust in trusts):
            return


def _is_heard(path: MasterPath, search: MasterSearch) -> bool:
    return ask(path, search, final=True, everywhere=False).is_heard
