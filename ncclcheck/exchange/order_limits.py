"""What any order may ask of a node: a deadline, and the settings of an environment, within bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ncclcheck.nccl.settable import first_refusal
from ncclcheck.timeouts import LONGEST_OPTION_S

MOST_SETTINGS = 64
MOST_ENVIRONMENTS = 64


def seconds_faults(seconds: float, longest_s: float = LONGEST_OPTION_S) -> Iterator[str]:
    """Yield why a node does not accept this deadline."""
    if not 0.0 <= seconds <= longest_s:
        yield f"a deadline of {seconds:.3g} s"


def environment_faults(environments: Sequence[Mapping[str, str | None]]) -> Iterator[str]:
    """Yield why a node does not set these environments."""
    if len(environments) > MOST_ENVIRONMENTS:
        yield f"{len(environments)} environments, {MOST_ENVIRONMENTS} are accepted"
    for environment in environments:
        if len(environment) > MOST_SETTINGS:
            yield f"{len(environment)} settings, {MOST_SETTINGS} are accepted"
        reason = first_refusal(environment)
        if reason is not None:
            yield reason
