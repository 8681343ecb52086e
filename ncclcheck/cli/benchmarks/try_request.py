"""What `bench --try` and `--try-file` ask for; what cannot be tried is refused here."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from ncclcheck.cli.files import read_text
from ncclcheck.model.benchmarks.trials import GAIN, LEAST_GAIN, MOST_ARMS, MOST_GAIN, TryRequest
from ncclcheck.model.errors import UsageError
from ncclcheck.model.policy.expected import Presence, Text
from ncclcheck.model.policy.policy import Policy
from ncclcheck.model.units import parse_part
from ncclcheck.nccl.settable import refusal, shown
from ncclcheck.nccl.variables.forbidden import forbidden
from ncclcheck.nccl.variables.trying import not_tried, unread

_OF_TRY = ("gain", "seed")
_WITHOUT = ("isolate", "mesh", "cuda_graph")
# A comma ends a setting where the name of the next one follows: NCCL_IB_HCA=mlx5_0,mlx5_1 is one.
_NEXT = re.compile(r",(?=[A-Za-z_][A-Za-z0-9_]*=)", re.ASCII)


def try_request(option_values: Mapping[str, Any]) -> TryRequest | None:
    """Return the arms, in the order given; None where nothing is to be tried. Raises UsageError."""
    arms = list(_arms(option_values))
    if not arms:
        for name in _OF_TRY:
            if (
                "try_" in option_values and option_values.get(name) is not None
            ):  # isolate has a seed of its own
                raise UsageError(f"--{name} is for --try: add --try NAME=VALUE")
        return None
    for name in _WITHOUT:
        if option_values.get(name):
            raise UsageError(f"--{name.replace('_', '-')} and --try exclude each other: give one of them")
    for arm in arms if option_values.get("backend") in ("gloo", "nccl") else ():
        if why := unread(arm, option_values["backend"]):
            raise UsageError(f"--try: {why}: leave it out")
    seed = option_values.get("seed")
    return TryRequest(
        tuple(arms), _gain(option_values.get("gain")), secrets.randbelow(1 << 31) if seed is None else seed
    )


def refuse_against_policy(tries: TryRequest | None, policy: Policy) -> None:
    """Nothing, if the policy allows every setting that is to be tried; else UsageError with its line."""
    settings = [] if tries is None else [setting for arm in tries.arms for setting in arm.items()]
    for expectation in policy.expected.expectations:
        for name, value in settings:
            expected = expectation.wanted
            is_allowed = (
                value in expected.any_of if isinstance(expected, Text) else expected != Presence(is_set=False)
            )
            if expectation.key == f"environment.{name}" and not is_allowed:
                raise UsageError(
                    f"--try {name}={value}: {expectation.source} wants it {expected}: it could not be kept"
                )


def _arms(option_values: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    words = [("--try", text) for text in option_values.get("try_") or ()]
    if option_values.get("try_file"):
        file = option_values["try_file"]
        lines = enumerate((line.strip() for line in read_text(file, "--try-file").splitlines()), 1)
        settings = [(number, line) for number, line in lines if line and not line.startswith("#")]
        if not settings:
            raise UsageError(f"--try-file {file}: there is no setting in it: one NAME=VALUE[,...] per line")
        words += [(f"--try-file {file}, line {number}:", line) for number, line in settings]
    if len(words) > MOST_ARMS:
        raise UsageError(f"{len(words)} settings to try: {MOST_ARMS} at most, or the budget decides nothing")
    known: list[dict[str, str]] = []
    for option, text in words:
        arm = _settings(text, option)
        if arm in known:
            raise UsageError(f"{option} {shown(text)}: this is tried already: leave it out")
        known.append(arm)
        yield arm


def _settings(text: str, option: str) -> dict[str, str]:
    arm: dict[str, str] = {}
    where = f"{option} {shown(text)}"
    for part in _NEXT.split(text):
        name, equals, value = part.partition("=")
        if not equals or not value:
            raise UsageError(f"{where}: expected NAME=VALUE, or several of them with commas")
        if name in arm:
            raise UsageError(f"{where}: {name} is in it twice")
        why = not_tried(name) or refusal(name, value)
        if why:
            raise UsageError(f"{where}: {why}")
        arm[name] = value
    if why := forbidden(arm):
        raise UsageError(f"{where}: {why}")
    return arm


def _gain(text: str | None) -> float:
    if text is None:
        return GAIN
    try:
        return parse_part(text, LEAST_GAIN, MOST_GAIN)
    except UsageError as error:
        raise UsageError(f"--gain {error}") from error
