"""A process that does not use the key it was given: whom it tells, and who is told nothing."""

from __future__ import annotations

import threading
import time

from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.knock import KnockListener
from ncclcheck.exchange.trust.run_key import RefusedKey, RunKey, new_key
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.launch.detect import detect
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.launch import Launch
from ncclcheck.run.context import Context
from ncclcheck.run.options import RunOptions
from ncclcheck.run.roles.refused_key import take_no_part
from tests.ports import free_port

KEY = new_key("--key-file")


def launch(node_rank: int) -> Launch:
    flags = LaunchFlags(
        nnodes=2, node_rank=node_rank, master_addr="127.0.0.1", master_port=free_port(), nproc_per_node=1
    )
    return detect({}, flags)


def context(place: Launch, said: list[str]) -> Context:
    return Context(RunOptions("preflight"), {}, place, f"node{place.node_rank}", Deadline(10), said.append)


def node_0(place: Launch, key: RunKey | None) -> KnockListener:
    return KnockListener(place.master_port, place.job_id, 2, Trust(key))


def test_node_0_hears_it_with_the_key_and_where_it_has_none() -> None:
    for key in (KEY, None):
        place = launch(1)
        listener = node_0(place, key)
        take_no_part(context(place, []), RefusedKey("it is public", KEY))
        heard = listener.final()[1]
        listener.close()
        assert (heard.master.outcome, heard.master.detail) == (
            "other-key",
            "this node does not use its key: it is public",
        )


def test_what_node_0_cannot_verify_gives_no_node_up() -> None:
    place = launch(1)
    listener = node_0(place, KEY)
    take_no_part(context(place, []), RefusedKey("there is none"))
    assert listener.final() == {}
    listener.close()


def test_node_0_tells_who_asks() -> None:
    place = launch(0)
    standing_down = threading.Thread(
        target=take_no_part, args=(context(place, []), RefusedKey("it is public", KEY))
    )
    standing_down.start()
    asking = replace(place, node_rank=1)
    began = time.monotonic()
    take_no_part(context(asking, []), RefusedKey("it is public", KEY))  # it knocks until it is heard
    standing_down.join(10)
    assert not standing_down.is_alive()
    assert time.monotonic() - began < 6  # both ended as soon as they had heard of each other


def test_one_node_has_nobody_to_tell() -> None:
    said: list[str] = []
    alone = detect({}, LaunchFlags())
    take_no_part(context(alone, said), RefusedKey("it is public", KEY))
    assert said == []
