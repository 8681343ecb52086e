"""A node's side of the exchange with node 0, which a test steps through."""

from __future__ import annotations

import pytest

from ncclcheck.cli.watching.peers import Peers
from ncclcheck.cli.watching.watch_coordinator import LeadPlan
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.model.codec import decode
from ncclcheck.model.fact import Missing
from ncclcheck.model.job.together import Beat


def test_the_last_word_is_sent_though_it_comes_while_the_beat_before_is_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peers = Peers(lambda: None, LeadPlan(1.0, 10.0, 1.0), lambda _: None)
    store = within_process(MemoryBackend(), 0)
    peers.post(Beat("node2", peers.watcher, 1, 0.0), None)
    read = store.get

    def leaving(key: str) -> bytes | Missing:
        peers.post(Beat("node2", peers.watcher, 2, 0.0, left=True), None)
        peers.close(lambda: True)
        return read(key)

    monkeypatch.setattr(store, "get", leaving)
    peers._exchange(store, 1)
    sent = read(keys.watch_beat(1))
    assert isinstance(sent, bytes)
    assert decode(sent, Beat, limit_bytes=1 << 20).left
