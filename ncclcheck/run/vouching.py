"""Whether a node may start a command on a verdict that stands in the store, where everybody can write one.

It may where node 0 itself, at the master address, confirms the verdict of this run, and judged exactly what this node
sent: its facts and its answers, with what its probes saw.
"""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.join.verdict import VerdictAsker, ask_verdict
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.recording import RecordingStore, digest_of, judged_messages
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.run.context import Context
from ncclcheck.run.state import RunState
from ncclcheck.run.steps.base import Participant, Vouch, believes_all
from ncclcheck.run.steps.finish import Finish

_MOST_DIGITS = 5


def vouch_of(context: Context, path: MasterPath, asker: VerdictAsker, state: RunState) -> Vouch:
    """Return what is asked before a verdict is believed; where no command follows, nothing."""
    if not context.options.starts or context.trust.key is not None:
        return believes_all  # what stands in a store with a key is by node 0

    def vouch(verdict: Finish) -> str:
        if verdict.exit_code != 0:
            return ""  # nothing starts on it
        port = asker.store.get(keys.VERDICT_PORT)
        if isinstance(port, Missing) or not port.isdigit() or len(port) > _MOST_DIGITS:
            return "finish: node 0 does not say where it confirms its verdict"
        confirmation = ask_verdict(path.name, int(port), asker, judged_messages(asker.store.written))
        if isinstance(confirmation, str):
            return f"finish: {confirmation}"
        if confirmation.exit_code != verdict.exit_code:
            return "finish: node 0 itself has not given this verdict"
        if confirmation.changed:
            return f"finish: node 0 judged something else than what this node sent ({confirmation.changed[0][:40]!a})"
        state.report_digest = confirmation.report
        return ""

    return vouch


def with_vouching(participant: Participant, path: MasterPath, state: RunState) -> Participant:
    """Give the participant a store that remembers what was sent, and what it asks before it believes a verdict."""
    store = RecordingStore(participant.store)
    asker = VerdictAsker(store, participant.nonce, participant.ticket)
    return replace(participant, store=store, vouch=vouch_of(participant.context, path, asker, state))


def belongs_to_verdict(state: RunState, report: bytes, exit_code: int) -> bool:
    """Return whether the report with this exit code is that of the verdict which this node believes."""
    if state.verdict is not None and state.verdict.exit_code != exit_code:
        return False
    return state.report_digest in (None, digest_of(report))
