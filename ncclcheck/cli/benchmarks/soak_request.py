"""What the options of `soak` ask for; every contradiction is refused here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ncclcheck import timeouts
from ncclcheck.cli.benchmarks.ops import given_ops
from ncclcheck.measure.soak.plan import LEAST_DROP, LEAST_DUTY, MOST_DROP
from ncclcheck.model.benchmarks.soak import SoakRequest
from ncclcheck.model.errors import UsageError
from ncclcheck.model.units import parse_sizes

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": timeouts.HOUR_S, "d": 24 * timeouts.HOUR_S}
_TIME = re.compile(r"(\d{1,7}(?:\.\d{0,3})?) ?(s|m|h|d|)", re.ASCII)


def soak_request(given: Mapping[str, Any]) -> SoakRequest:
    """Return what to soak. Raises UsageError."""
    if given.get("state") and given.get("resume"):
        raise UsageError("--state begins a series and --resume continues one: give one of them")
    resumes = bool(given.get("resume"))
    own = f"ncclcheck-soak-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    usual = SoakRequest()
    return SoakRequest(
        duration_s=_seconds(
            given, "duration", usual.duration_s, (timeouts.SOAK_LEAST_S, timeouts.SOAK_LONGEST_S)
        )
        or usual.duration_s,
        every_s=_seconds(given, "every", None, (timeouts.SOAK_LEAST_BLOCK_S, timeouts.SOAK_LONGEST_BLOCK_S)),
        drop=_part(given, "drop", (LEAST_DROP, MOST_DROP)),
        duty=_part(given, "duty", (LEAST_DUTY, 1.0)),
        ops=given_ops(given),
        size_bytes=_size(given),
        folder=given.get("resume") or given.get("state") or own,
        resumes=resumes,
        until_finding=bool(given.get("until_finding")),
    )


def refuse_short(request: SoakRequest, timeout_s: float) -> None:
    """Nothing, if the run has time for the soak; else UsageError."""
    if timeout_s <= request.duration_s:
        raise UsageError(
            f"--timeout {timeout_s:g} ends the run before the soak of --duration {request.duration_s:g}s is over: "
            "give a longer one, or leave it out"
        )


def _seconds(
    given: Mapping[str, Any], option: str, usual: float | None, bounds: tuple[float, float]
) -> float | None:
    """Return the seconds of a time as people write it: 90, 30s, 10m, 2h, 1d."""
    text = given.get(option)
    if text is None:
        return usual
    match = _TIME.fullmatch(str(text).strip().lower())
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not bounds[0] <= seconds <= bounds[1]:
        raise UsageError(
            f"--{option} {text!r}: expected a time from {bounds[0]:g}s to {_words(bounds[1])}, "
            "for example 30s, 10m or 2h"
        )
    return seconds


def _words(seconds: float) -> str:
    return f"{seconds / _UNITS['m']:g}m" if seconds < timeouts.HOUR_S else f"{seconds / timeouts.HOUR_S:.3g}h"


def _part(given: Mapping[str, Any], option: str, bounds: tuple[float, float]) -> float | None:
    """Return the part that so many per cent are."""
    text = given.get(option)
    if text is None:
        return None
    try:
        part = float(str(text).removesuffix("%")) / 100
    except ValueError:
        part = -1.0
    if not bounds[0] <= part <= bounds[1]:
        raise UsageError(
            f"--{option} {text!r}: expected per cent from {100 * bounds[0]:g} to {100 * bounds[1]:g}"
        )
    return part


def _size(given: Mapping[str, Any]) -> int | None:
    if given.get("size") is None:
        return None
    sizes = parse_sizes(given["size"], option="--size")
    if len(sizes) != 1:
        raise UsageError(f"--size {given['size']!r}: a soak measures one size, for example 64M")
    return sizes[0]
