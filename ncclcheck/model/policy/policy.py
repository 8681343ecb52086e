"""The `--expect` policy: what the operator demands of a run, written as TOML and read strictly."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.model.bench_demands import Floor, parse_floor
from ncclcheck.model.errors import UsageError
from ncclcheck.model.formats.choices import FAIL_ON, FailOn
from ncclcheck.model.policy import policy_values as values
from ncclcheck.model.policy.expected import Expectation, Expected, Number, PolicyRule, Profile
from ncclcheck.model.policy.policy_values import COUNTS, MEASURING, SECTIONS, WrongValueError
from ncclcheck.model.policy.toml_lines import Path, lines_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RuleKind = Literal["require", "ignore", "demote"]
_RULES: tuple[RuleKind, ...] = get_args(RuleKind)
_JOB = (
    "nodes",
    "fail_on",
    "select",
    *_RULES,
    "floors",
    *MEASURING,
)  # of the whole run, so not for some of its nodes
_TOP = ("nodes", *COUNTS, "fail_on", "select", *_RULES, *SECTIONS, "floors", *MEASURING)
_MATCH = ("hosts", "gpu_model")
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LIMIT_BYTES = 1 << 20
_MOST_DOTS = 100  # in a line, outside of strings
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'')
_SHOWN = 80


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """The demands of a policy file; None and empty: nothing demanded. Check names are codes, prefixes or slugs."""

    nodes: int | None = None
    gpus_per_node: int | None = None
    fail_on: FailOn | None = None
    select: tuple[str, ...] = ()
    floors: tuple[Floor, ...] = ()
    expected: Expected = Expected()
    options: dict[str, str] = {}  # of what is measured: "soak.drop" -> as it is written


def parse_policy(text: str, file: str, profile: str | None = None) -> Policy:
    """Return the policy in `text`, with what its profile of that name says instead.

    Without a name, profiles that say for which hosts or GPUs they are hold there, and the others nowhere. Raises
    UsageError, which names `file`, the line, the key and its value, and what would be right.
    """
    document = _PolicyDocument(text, file)
    profiles = document.table.get("profile", {})
    if not isinstance(profiles, dict) or not all(isinstance(table, dict) for table in profiles.values()):
        raise document.error(("profile",), profiles, "expected tables, like [profile.h100]")
    parts = {name: _part(document, profiles[name], ("profile", name)) for name in profiles}
    base = _part(document, {key: value for key, value in document.table.items() if key != "profile"}, ())
    if profile is not None and profile not in parts:
        raise UsageError(f"--profile {profile!r}: {file} has no such profile: {_right_name(profile, parts)}")
    if profile is not None:
        return _policy([base, parts[profile]], ())
    matched = [(name, part) for name, part in parts.items() if part.match is not None]
    return _policy([base], matched)


class _Part(Struct, frozen=True):
    """What one part of the file says: the file itself, or a profile."""

    job: dict[str, Any]
    floors: dict[str, Floor]
    rules: tuple[PolicyRule, ...]
    expectations: tuple[Expectation, ...]
    match: Profile | None = None
    options: dict[str, str] = {}


def _deep_key(text: str) -> int | None:
    """Return the line, from 1, of a key with endless parts, over which TOML's parser takes quadratic time."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > _MOST_DOTS and _STRING.sub("", line).partition("#")[0].count(".") > _MOST_DOTS:
            return number
    return None


class _PolicyDocument:
    """The file, and the sentence about a mistake in it."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        wrong = f"--expect {file}: not valid TOML:"
        if len(text) > _LIMIT_BYTES:
            raise UsageError(f"--expect {file}: more than {_LIMIT_BYTES >> 20} MiB, which no policy has")
        if line := _deep_key(text):
            raise UsageError(f"{wrong} a key of more than {_MOST_DOTS} parts (at line {line})")
        try:
            self.table = tomllib.loads(text)
            self._lines = lines_of(text)
        except tomllib.TOMLDecodeError as error:  # its text ends in "(at line 3, column 7)"
            end = f"(at the end, line {len(text.splitlines())})"
            raise UsageError(f"{wrong} {str(error).replace('(at end of document)', end)}") from error
        except RecursionError as error:
            raise UsageError(f"{wrong} nested too deeply") from error
        except ValueError as error:  # a number of thousands of digits, a date that is none
            raise UsageError(f"{wrong} a number or date in it is impossible") from error

    def source(self, path: Path) -> str:
        """Return where the key is, or the nearest table around it: `site.toml, line 12`."""
        line = self._line(path)
        return f"{self.file}, line {line}" if line else self.file

    def _line(self, path: Path) -> int:
        return next(
            (
                self._lines[path[:length]]
                for length in range(len(path), 0, -1)
                if path[:length] in self._lines
            ),
            0,
        )

    def _place(self, path: Path) -> str:
        line = self._line(path)
        return f" (line {line})" if line else ""

    def error(self, path: Path, value: Any, right: str) -> UsageError:
        """Return the error for a value that the key cannot have."""
        if right.startswith("impossible: "):
            right = f"is {right}"
            return UsageError(
                f"--expect {self.file}: {_dotted(path)} = {_shown(value)}{self._place(path)} {right}"
            )
        return UsageError(
            f"--expect {self.file}: {_dotted(path)} = {_shown(value)}{self._place(path)}: {right}"
        )

    def unknown(self, path: Path, known: Iterable[str]) -> UsageError:
        """Return the error for a key that does not exist."""
        right = _right_name(str(path[-1]), tuple(known))
        return UsageError(f"--expect {self.file}: unknown key {_dotted(path)!r}{self._place(path)}: {right}")

    def keys(self, table: Mapping[str, Any], path: Path, known: Iterable[str]) -> None:
        """Raise UsageError where the table has an unknown key."""
        for key in table:
            if key not in known:
                raise self.unknown((*path, key), known)


def _part(document: _PolicyDocument, table: dict[str, Any], path: Path) -> _Part:
    known = (*_TOP, *_MATCH) if path else (*_TOP, "profile")
    document.keys(table, path, known)
    job: dict[str, Any] = {}
    if "nodes" in table:
        job["nodes"] = _read(document, (*path, "nodes"), table["nodes"], _nodes)
    if "fail_on" in table:
        job["fail_on"] = _read(document, (*path, "fail_on"), table["fail_on"], _fail_on)
    if "select" in table:
        job["select"] = tuple(rule.check for rule in _rules(document, table, path, "select"))
    options = _options(document, table, path)
    part = _Part(
        job,
        _floors(document, table.get("floors", {}), (*path, "floors")),
        tuple(rule for kind in _RULES for rule in _rules(document, table, path, kind)),
        tuple(_expectations(document, table, path)),
        _match(document, table, path),
        options,
    )
    if part.match is not None:
        for key in _JOB:
            if key in table:
                raise document.error(
                    (*path, key),
                    table[key],
                    "of the whole run, but this profile is for the nodes that hosts or gpu_model name: move it to "
                    f"the top, or leave those out and choose the profile with --profile {path[-1]}",
                )
    return part


def _read(document: _PolicyDocument, path: Path, value: Any, read: Any) -> Any:
    try:
        return read(value)
    except WrongValueError as error:
        raise document.error(path, value, str(error)) from error


def _nodes(value: Any) -> int:
    return values.whole_number(value, 1, 65536, 4)  # as on the command line


def _fail_on(value: Any) -> str:
    return values.choice(value, *FAIL_ON)


def _match(document: _PolicyDocument, table: Mapping[str, Any], path: Path) -> Profile | None:
    """Return for which nodes the profile is; None where it does not say so."""
    found: dict[str, tuple[str, ...]] = {}
    for key, what, like in (("hosts", "a host", '"node*"'), ("gpu_model", "a model", '"*H100*"')):
        if path and key in table:
            found[key] = _read(
                document,
                (*path, key),
                table[key],
                lambda value, what=what, like=like: values.patterns(value, what, like),
            )
    if not found:
        return None
    return Profile(str(path[-1]), found.get("hosts", ()), found.get("gpu_model", ()), document.source(path))


def _rules(
    document: _PolicyDocument, table: Mapping[str, Any], above: Path, kind: str
) -> Iterator[PolicyRule]:
    path = (*above, kind)
    entries = table.get(kind, [])
    if not isinstance(entries, list):
        raise document.error(path, entries, 'expected a list of checks, like ["gpu-count", "NC2"]')
    for number, entry in enumerate(entries):
        place = (*path, number)
        if isinstance(entry, str) and entry:
            yield PolicyRule(_kind(kind), entry, document.source(place))
        elif isinstance(entry, dict) and kind != "select":
            yield _rule(document, entry, place, _kind(kind))
        else:
            like = ' or {check = "gpu-count", reason = "...", until = 2026-12-31}' if kind != "select" else ""
            raise document.error(place, entry, f'expected the name of a check, like "gpu-count"{like}')


def _kind(kind: str) -> RuleKind:
    return next((rule for rule in _RULES if rule == kind), "require")  # of `select` only the names are used


def _rule(document: _PolicyDocument, table: dict[str, Any], path: Path, kind: RuleKind) -> PolicyRule:
    document.keys(table, path, ("check", "reason", "until"))
    for key, like in (("check", '"gpu-count"'), ("reason", '"ticket 4711: replaced next week"')):
        if key in table and not (isinstance(table[key], str) and table[key].strip()):
            raise document.error((*path, key), table[key], f"expected a text, like {like}")
    until = table.get("until")
    if until is not None and (isinstance(until, str) or not _DATE.fullmatch(str(until))):
        raise document.error((*path, "until"), until, "expected a date without quotes, like 2026-12-31")
    needed = ("check",) if kind == "require" else ("check", "reason", "until")
    for key in needed:
        if key not in table:
            why = "" if key == "check" else ": an exception says why, and when it ends"
            raise document.error(path, table, f"{key} is missing{why}")
    reason = " ".join(table.get("reason", "").split())
    return PolicyRule(kind, table["check"], document.source(path), reason, str(until or ""))


def _options(document: _PolicyDocument, table: Mapping[str, Any], path: Path) -> dict[str, str]:
    """Return what the tables of what is measured say, as it is written: `soak.duration` -> 2h."""
    found: dict[str, str] = {}
    for section, kinds in MEASURING.items():
        place, section_table = (*path, section), table.get(section, {})
        if not isinstance(section_table, dict):
            raise document.error(place, section_table, f"expected a table, like [{_dotted(place)}]")
        document.keys(section_table, place, kinds)
        for option, value in section_table.items():
            found[f"{section}.{option}"] = str(_read(document, (*place, option), value, kinds[option].read))
    return found


def _floors(document: _PolicyDocument, table: Any, path: Path) -> dict[str, Floor]:
    if not isinstance(table, dict):
        raise document.error(path, table, 'expected a table, like [floors] with "all_reduce@1G" = 300')
    found: dict[str, Floor] = {}
    for place, value in table.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise document.error((*path, place), value, "expected GB/s of bus bandwidth, a number like 300")
        rule = f"{value!r}" if place == "any" else f"{place}={value!r}"
        try:
            floor = parse_floor(rule)
        except UsageError as error:
            why = str(error).partition(f"{rule!r}: ")[2] or str(error)
            right = 'name it any, all_reduce, "@1G" or "all_reduce@1G"'
            raise document.error((*path, place), value, f"{why.partition(';')[0]}: {right}") from error
        name = str(floor).rpartition("=")[0]
        if name in found:
            raise document.error((*path, place), value, f"said twice: it is the same floor as {found[name]}")
        found[name] = floor
    return found


def _expectations(document: _PolicyDocument, table: Mapping[str, Any], path: Path) -> Iterator[Expectation]:
    profile = str(path[-1]) if path else ""

    def expectation(place: Path, value: Any, kind: values.Kind) -> Expectation:
        expected_value = _read(document, place, value, kind.read)
        key = ".".join(str(part) for part in place[len(path) :])
        return Expectation(key, expected_value, document.source(place), profile)

    for count, kind in COUNTS.items():
        if count in table:
            yield expectation((*path, count), table[count], kind)
    for section, kinds in SECTIONS.items():
        section_table = table.get(section, {})
        place = (*path, section)
        if not isinstance(section_table, dict):
            raise document.error(place, section_table, f"expected a table, like [{_dotted(place)}]")
        for key, value in section_table.items():
            if section == "environment":
                if not values.is_variable(key):
                    raise document.error((*place, key), value, "this can be no name of a variable")
                yield expectation((*place, key), value, values.VARIABLE)
            elif key in kinds:
                yield expectation((*place, key), value, kinds[key])
            else:
                raise document.unknown((*place, key), kinds)


def _policy(parts: list[_Part], matched: list[tuple[str, _Part]] | tuple[()]) -> Policy:
    """Return the parts one over the other, for every node, and the profiles that hold for some nodes only."""
    job: dict[str, Any] = {}
    floors: dict[str, Floor] = {}
    options: dict[str, str] = {}
    rules: dict[tuple[str, str], PolicyRule] = {}
    expectations: dict[str, Expectation] = {}
    for part in parts:
        job |= part.job
        floors |= part.floors
        options |= part.options
        rules |= {(rule.kind, rule.check): rule for rule in part.rules}
        expectations |= {
            expectation.key: replace(expectation, profile="") for expectation in part.expectations
        }
    of_profiles = [expectation for _, part in matched for expectation in part.expectations]
    count = expectations.get("gpus_per_node")
    if count is not None and not any(profile.key == "gpus_per_node" for profile in of_profiles):
        del expectations["gpus_per_node"]  # the same for all: the check gpu-count knows what to do with it
        if isinstance(count.wanted, Number) and count.wanted.value is not None:
            job["gpus_per_node"] = int(count.wanted.value)
    return Policy(
        **job,
        floors=tuple(floors.values()),
        expected=Expected(
            (*expectations.values(), *of_profiles),
            tuple(part.match for _, part in matched if part.match is not None),
            tuple(rules.values()),
        ),
        options=options,
    )


def _right_name(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name.replace("-", "_").lower(), names, 1) or difflib.get_close_matches(
        name, names, 1
    )
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are {', '.join(names)}" if names else "there is none"


def _dotted(path: Path) -> str:
    """Return a path as `profile.h100.versions.torch`, `ignore[0].until`."""
    text = ""
    for part in path:
        plain = str(part) if isinstance(part, int) or re.fullmatch(r"[\w-]+", part) else f'"{part}"'
        text += f"[{plain}]" if isinstance(part, int) else f".{plain}" if text else plain
    return text


def _shown(value: Any) -> str:
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    if not isinstance(value, str | int | float | list | dict):
        text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
