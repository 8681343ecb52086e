"""What a check says: findings with evidence and fixes, and the outcome of its run."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Severity: TypeAlias = Literal["error", "warning", "info"]
Outcome: TypeAlias = Literal["passed", "found", "unknown", "not_applicable", "ignored", "crashed"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Evidence(Struct, frozen=True, forbid_unknown_fields=True):
    """What was observed on which hosts, what was expected, and where it was read."""

    hosts: tuple[str, ...]
    subject: str
    observed: str
    expected: str
    source: str


class Fix(Struct, frozen=True, forbid_unknown_fields=True):
    """What to do: words, commands to copy, environment to set, and what could go wrong."""

    text: str
    commands: tuple[str, ...] = ()
    env: dict[str, str] = {}
    risk: str = ""


class Finding(Struct, frozen=True, forbid_unknown_fields=True):
    """A fault with the hosts it is on. The summary says what is, and why it matters."""

    severity: Severity
    summary: str
    hosts: tuple[str, ...]
    evidence: tuple[Evidence, ...] = ()
    fixes: tuple[Fix, ...] = ()
    code: str = ""  # filled in by the registry
    slug: str = ""


class NotKnown(Struct, frozen=True):
    """Yielded by a check that could not tell: its outcome is then unknown, never passed.

    `section`: the section of the hosts' facts that could not be read, if that alone is why. The registry says so itself
    of the sections that a check needs.
    """

    reason: str
    hosts: tuple[str, ...] = ()
    section: str = ""


class NotApplicable(Struct, frozen=True):
    """Yielded by a check whose question does not arise here."""

    reason: str


class CheckRun(Struct, frozen=True, forbid_unknown_fields=True):
    """How one check ended."""

    code: str
    slug: str
    title: str
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
