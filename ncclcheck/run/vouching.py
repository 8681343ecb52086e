"""Whether a node may start a command on a verdict that stands in the store, where everybody can write one.

It may where node 0 itself, at the master address, confirms the verdict of this run, and judged exactly what this node
sent: its facts and its answers, with what its probes saw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ncclcheck.exchange.join.verdict import VerdictAsker, ask_verdict
from ncclcheck.exchange.messages import Finish
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.recording import digest_of
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.run.context import Context, Seen

Vouch: TypeAlias = Callable[[Finish], str]  # why the verdict is not believed; empty where it is
_MOST_DIGITS = 5


def judged_messages(digests: Mapping[str, str]) -> dict[str, str]:
    """Return those of the digests that belong to facts and answers, on which a verdict rests."""
    return {key: digest for key, digest in digests.items() if key.startswith(keys.JUDGED)}


def believes_all(_: Finish) -> str:
    """Believe the verdict: nothing is started on it."""
    return ""


def vouch_of(context: Context, way: MasterPath, asker: VerdictAsker, seen: Seen) -> Vouch:
    """Return what is asked before a verdict is believed; where no command follows, nothing."""
    if not context.options.starts:
        return believes_all

    def vouch(verdict: Finish) -> str:
        if verdict.exit_code != 0:
            return ""  # nothing starts on it
        port = asker.store.get(keys.VERDICT_PORT)
        if isinstance(port, Missing) or not port.isdigit() or len(port) > _MOST_DIGITS:
            return "finish: node 0 does not say where it confirms its verdict"
        told = ask_verdict(way.name, int(port), asker, judged_messages(asker.store.written))
        if isinstance(told, str):
            return f"finish: {told}"
        if told.exit_code != verdict.exit_code:
            return "finish: node 0 itself has not given this verdict"
        if told.changed:
            return f"finish: node 0 judged something else than what this node sent ({told.changed[0][:40]!a})"
        seen.report_digest = told.report
        return ""

    return vouch


def belongs_to_verdict(seen: Seen, report: bytes, exit_code: int) -> bool:
    """Return whether the report with this exit code is that of the verdict which this node believes."""
    if seen.verdict is not None and seen.verdict.exit_code != exit_code:
        return False
    return seen.report_digest in (None, digest_of(report))
