"""The exceptions of ncclcheck: raised for the caller's mistakes, never for a sick cluster (that is a finding)."""

from __future__ import annotations


class NcclcheckError(Exception):
    """Base of every error that ncclcheck raises on purpose; its text is one sentence for the user."""


class UsageError(NcclcheckError):
    """Wrong usage or configuration: the command ends with exit code 2 and this sentence."""


class DecodeError(NcclcheckError):
    """A document or message is not what it claims to be: wrong JSON, wrong shape, too large, unknown version."""
