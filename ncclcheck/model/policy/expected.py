"""What a policy expects of the nodes of a run, each with the line that says so, and its exceptions from the checks."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

_STEP = 1024


class Text(Struct, frozen=True, forbid_unknown_fields=True, tag="text"):
    """One of these texts. `pattern`: they are shell patterns, where `*` stands for anything."""

    any_of: tuple[str, ...]
    pattern: bool = False

    def __str__(self) -> str:
        return " or ".join(self.any_of)


class VersionRange(Struct, frozen=True, forbid_unknown_fields=True, tag="version"):
    """A version: exactly this one, or a range as in PEP 440 (`>=2.27,<2.30`)."""

    versions: str

    def __str__(self) -> str:
        return self.versions


class Number(Struct, frozen=True, forbid_unknown_fields=True, tag="number"):
    """A number in `unit`: exactly this one, or, with `at_least`, this one or more. None: without limit."""

    value: float | None
    unit: str = ""
    at_least: bool = False

    def __str__(self) -> str:
        if self.value is None:
            return "unlimited"
        value, unit = self.value, self.unit
        for larger in ("MiB", "GiB"):
            if unit[1:] == "iB" and value >= _STEP:
                value, unit = value / _STEP, larger
        return f"{'at least ' if self.at_least else ''}{value:.6g}{' ' if unit else ''}{unit}"


class Subnet(Struct, frozen=True, forbid_unknown_fields=True, tag="subnet"):
    """An address in one of these networks (`10.0.0.0/16`)."""

    any_of: tuple[str, ...]

    def __str__(self) -> str:
        return f"an address in {' or '.join(self.any_of)}"


class Presence(Struct, frozen=True, forbid_unknown_fields=True, tag="presence"):
    """A variable that must be set, whatever its value, or must not be set."""

    is_set: bool

    def __str__(self) -> str:
        return "set" if self.is_set else "not set"


Wanted: TypeAlias = Text | VersionRange | Number | Subnet | Presence


class Expectation(Struct, frozen=True, forbid_unknown_fields=True):
    """One demand. `key` as the policy writes it (`versions.torch`), `source` its file and line.

    `profile` is the profile that it belongs to; empty: the policy itself, for every node.
    """

    key: str
    wanted: Wanted
    source: str
    profile: str = ""


class Profile(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the policy for some nodes: those with one of these host names, or with GPUs of one of these models.

    Both are shell patterns; where both are given, both must fit. What a profile says of a key is said instead of what
    the policy itself says; of several that fit, the last counts.
    """

    name: str
    hosts: tuple[str, ...]
    gpu_models: tuple[str, ...]
    source: str


class PolicyRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A check that is required, or an exception from one: it is ignored, or its errors are demoted to warnings.

    `check` is a code, a prefix or a slug. After the day `until` (2026-12-31) an exception does not count any more;
    empty: it has no end.
    """

    kind: Literal["require", "ignore", "demote"]
    check: str
    source: str
    reason: str = ""
    until: str = ""


class Expected(Struct, frozen=True, forbid_unknown_fields=True):
    """The part of a policy that travels with what was seen. `on` is the day of the run, by which rules are judged."""

    expectations: tuple[Expectation, ...] = ()
    profiles: tuple[Profile, ...] = ()
    rules: tuple[PolicyRule, ...] = ()
    on: str = ""

    def is_over(self, rule: PolicyRule) -> bool:
        """Return whether the rule has expired by the day of the run (in UTC)."""
        return bool(rule.until and self.on and rule.until < self.on)
