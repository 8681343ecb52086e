"""When nodes spoke, by two clocks: how long node 0 listened in vain, and before which moment a node did not say more.

The first stands still while node 0 does not look: where a machine, or node 0 alone, was stopped or had no core for a
while, that is no silence of the other nodes. The second never does: who spoke last before the pause has not denied
what others said in it.
"""

from __future__ import annotations

from ncclcheck.timeouts import LONGEST_GAP_S


class WordTimes:
    """The times of the last words of nodes. State: both clocks. Times are those of `time.monotonic`."""

    def __init__(self, now_s: float) -> None:
        self.listened_s = 0.0
        self._began_s = self._looked_at_s = self._said_after_s = now_s
        self._gap_ended_s = now_s - LONGEST_GAP_S
        self._heard: dict[int, float] = {}  # by `listened_s`
        self._said: dict[int, float] = {}  # each node's last word was said after that moment

    def look(self, now_s: float) -> None:
        """Note that node 0 looks now.

        A new word was said after the look before. After a pause that holds only once what waited for node 0 in the
        meantime has been read: until then, it may be from before the pause.
        """
        gap_s = now_s - self._looked_at_s
        self.listened_s += min(gap_s, LONGEST_GAP_S)
        if gap_s > LONGEST_GAP_S:
            self._gap_ended_s = now_s
        is_catching_up = 0 < now_s - self._gap_ended_s < LONGEST_GAP_S
        if not is_catching_up:
            self._said_after_s = self._looked_at_s
        self._looked_at_s = now_s

    def hear(self, ticket: int) -> None:
        """Note that this look found a new word of the node."""
        self._heard[ticket] = self.listened_s
        self._said[ticket] = self._said_after_s

    def silence_s(self, ticket: int) -> float:
        """Return how long node 0 listened since, or from the beginning on."""
        return self.listened_s - self._heard.get(ticket, 0.0)

    def unsaid_s(self, ticket: int) -> float:
        """Return how long ago the last word may have been said: pauses of node 0 count."""
        return self._looked_at_s - self._said.get(ticket, self._began_s)
