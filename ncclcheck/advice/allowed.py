"""Advice that somebody else wrote, in a report or as node 0: only settings that a message may make are taken."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.report import Advice
from ncclcheck.nccl.settable import refusal


def only_allowed(advice: Advice) -> tuple[Advice, tuple[str, ...]]:
    """Return the advice without what a message may not set, and why each setting that is left out was refused."""
    reasons = [refusal(setting.name, setting.value) for setting in advice.env]
    allowed = tuple(setting for setting, reason in zip(advice.env, reasons, strict=True) if reason is None)
    return replace(advice, env=allowed), tuple(reason for reason in reasons if reason is not None)
