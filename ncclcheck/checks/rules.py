"""What a policy says of the checks themselves: which must run, and which exceptions are in force."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ncclcheck.checks.registry import Check, Selection, all_checks, matching
from ncclcheck.model.policy.expected import PolicyRule
from ncclcheck.model.snapshot import Snapshot


def in_force(selection: Selection, snapshot: Snapshot) -> Selection:
    """Return the selection with the rules of the snapshot's policy that have not expired.

    What the policy demands must be judged: a check that could not tell is then no pass. An image cannot be asked for
    what only a node has.
    """
    rules = [rule for rule in snapshot.expected.rules if not snapshot.expected.is_over(rule)]
    ignored = matching((*selection.ignore, *_names(rules, "ignore")))
    chosen = matching(selection.select or ["NC"])
    demanded = [
        check.slug
        for check in _judging(snapshot)
        if check.code not in ignored and check.code in chosen and (snapshot.of != "image" or check.image)
    ]
    return replace(
        selection,
        ignore=_joined(selection.ignore, _names(rules, "ignore")),
        demote=_joined(selection.demote, _names(rules, "demote")),
        require=_joined(selection.require, _names(rules, "require"), demanded),
        why={**selection.why, **{rule.check: rule_text(rule) for rule in rules if rule.kind != "require"}},
    )


def rule_text(rule: PolicyRule) -> str:
    """`ignored by site.toml, line 4 until 2026-12-31: known board`."""
    verb = {"ignore": "ignored", "demote": "demoted to a warning", "require": "required"}[rule.kind]
    until = f" until {rule.until}" if rule.until else ""
    return f"{verb} by {rule.source}{until}{f': {rule.reason}' if rule.reason else ''}"


def _names(rules: Iterable[PolicyRule], kind: str) -> tuple[str, ...]:
    return tuple(rule.check for rule in rules if rule.kind == kind)


def _judging(snapshot: Snapshot) -> list[Check]:
    """Return the checks that judge a demand of this policy."""
    keys = {
        name
        for expectation in snapshot.expected.expectations
        for name in (expectation.key, expectation.key.partition(".")[0])
    }
    return [check for check in all_checks() if keys.intersection(check.demands)]


def _joined(*lists: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in lists for name in names))
