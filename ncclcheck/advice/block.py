"""The advice: settings with their proof, and notes that say why there are none."""

from __future__ import annotations

from ncclcheck.advice.effect import with_effect
from ncclcheck.advice.proof import Part, settle
from ncclcheck.advice.trials import with_trials
from ncclcheck.model.report import Advice, Setting
from ncclcheck.model.snapshot import Snapshot


def advise(snapshot: Snapshot) -> Advice:
    """Return the environment to use. Each setting has a proof or a source; `notes` say what is left out and why."""
    settled = settle(snapshot)
    parts, notes = with_effect(snapshot, settled)
    settings = [setting for part in parts for setting in _settings(part)]
    return with_trials(Advice(tuple(settings), (*settled.notes, *notes)), snapshot)


def _settings(part: Part) -> list[Setting]:
    """One setting per variable and value; without hosts where it is the same on all."""
    found = []
    for name in dict.fromkeys(name for env in part.env_by_host.values() for name in env):
        hosts_by_value: dict[str | None, list[str]] = {}
        for host, env in part.env_by_host.items():
            if name in env:
                hosts_by_value.setdefault(env[name], []).append(host)
        for value, hosts in hosts_by_value.items():
            everywhere = len(hosts) == len(part.env_by_host)
            found.append(
                Setting(name, value, () if everywhere else tuple(hosts), part.why, part.proof, part.evidence)
            )
    return found
