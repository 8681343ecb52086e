"""What the options of `soak` ask for; every contradiction is refused here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ncclcheck import timeouts
from ncclcheck.cli.benchmarks.ops import given_ops
from ncclcheck.measure.soak.soak_limits import LEAST_BLOCKS, LEAST_DUTY, shortest_s
from ncclcheck.model.benchmarks.soak import LEAST_DROP, MOST_DROP, SoakRequest
from ncclcheck.model.errors import UsageError
from ncclcheck.model.units import parse_part, parse_sizes, parse_time_s, time_words


def soak_request(option_values: Mapping[str, Any]) -> SoakRequest:
    """Return what to soak. Raises UsageError."""
    if option_values.get("state") and option_values.get("resume"):
        raise UsageError("--state begins a series and --resume continues one: give one of them")
    resumes = bool(option_values.get("resume"))
    usual_folder = f"ncclcheck-soak-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    usual = SoakRequest()
    request = SoakRequest(
        duration_s=_seconds(
            option_values, "duration", usual.duration_s, (timeouts.SOAK_LEAST_S, timeouts.SOAK_LONGEST_S)
        )
        or usual.duration_s,
        every_s=_seconds(
            option_values, "every", None, (timeouts.SOAK_LEAST_BLOCK_S, timeouts.SOAK_LONGEST_BLOCK_S)
        ),
        drop=_part(option_values, "drop", (LEAST_DROP, MOST_DROP)),
        duty=_part(option_values, "duty", (LEAST_DUTY, 1.0)),
        ops=given_ops(option_values),
        size_bytes=_size(option_values),
        folder=option_values.get("resume") or option_values.get("state") or usual_folder,
        resumes=resumes,
        until_finding=bool(option_values.get("until_finding")),
    )
    _refuse_too_short(request)
    return request


def refuse_short(request: SoakRequest, timeout_s: float) -> None:
    """Nothing, if the run has time for the soak; else UsageError."""
    if timeout_s <= request.duration_s:
        raise UsageError(
            f"--timeout {timeout_s:g} ends the run before the soak of --duration {request.duration_s:g}s is over: "
            "give a longer one, or leave it out"
        )


def _refuse_too_short(request: SoakRequest) -> None:
    """Nothing, if the time suffices for a verdict; else UsageError. A resumed series has blocks already."""
    least_s = shortest_s(len(request.ops) or 1, request.every_s or timeouts.SOAK_BLOCK_S, request.duty or 1.0)
    if request.duration_s >= least_s or request.resumes:
        return
    kinds = f" of each of {len(request.ops)} collectives" if len(request.ops) > 1 else ""
    raise UsageError(
        f"--duration {time_words(request.duration_s)} is too short to tell anything: {LEAST_BLOCKS} blocks{kinds} of "
        f"{time_words(request.every_s or timeouts.SOAK_BLOCK_S)} and the rounds of pairs among them take "
        f"{_rounded_up(least_s)}: give a longer --duration, or a shorter --every"
    )


def _rounded_up(seconds: float) -> str:
    """Return a time as it may be given, not shorter than so many seconds."""
    whole_s, minute_s = math.ceil(seconds), 60
    return f"{whole_s}s" if whole_s < 2 * minute_s else f"{math.ceil(seconds / minute_s)}m"


def _seconds(
    option_values: Mapping[str, Any], option: str, usual: float | None, bounds: tuple[float, float]
) -> float | None:
    text = option_values.get(option)
    if text is None:
        return usual
    try:
        return parse_time_s(str(text), *bounds)
    except UsageError as error:
        raise UsageError(f"--{option} {error}") from error


def _part(option_values: Mapping[str, Any], option: str, bounds: tuple[float, float]) -> float | None:
    text = option_values.get(option)
    if text is None:
        return None
    try:
        return parse_part(str(text), *bounds)
    except UsageError as error:
        raise UsageError(f"--{option} {error}") from error


def _size(option_values: Mapping[str, Any]) -> int | None:
    if option_values.get("size") is None:
        return None
    sizes = parse_sizes(option_values["size"], option="--size")
    if len(sizes) != 1:
        raise UsageError(f"--size {option_values['size']!r}: a soak measures one size, for example 64M")
    return sizes[0]
