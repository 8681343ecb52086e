"""A topic: what a line can be about, the words that say it, and what such a line means for the job."""

from __future__ import annotations

from msgspec import Struct


class Topic(Struct, frozen=True):
    """A topic and its patterns, of which one is enough.

    `alarms`: such a line says that something of the job failed for good. `ends_the_job`: no program
    goes on after it; after all others it may have taken another way.
    `at_info`: the line counts at NCCL's level INFO too, where all other topics are news. `has_own_cause`: an exception
    with these words has a cause of its own, so it is not the `rank-exception`.
    """

    name: str
    patterns: tuple[str, ...]
    alarms: bool = True
    ends_the_job: bool = False
    at_info: bool = False
    has_own_cause: bool = False
