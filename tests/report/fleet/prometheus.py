"""What reads our metrics: both parsers of prometheus_client, and promtool where it is installed."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Iterable
from typing import Any

from prometheus_client import parser as prometheus
from prometheus_client.openmetrics import parser as openmetrics

PROMTOOL_MISSING = "promtool is not installed (Debian package prometheus)"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    """The samples by name and labels, the same for both parsers; each series stands there once."""
    plain = _samples(prometheus.text_string_to_metric_families(text))
    assert plain == _samples(openmetrics.text_string_to_metric_families(text))
    return plain


def _samples(families: Iterable[Any]) -> Samples:
    found: Samples = {}
    for family in families:
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, key
            assert sample.timestamp is None
            found[key] = sample.value
    return found


def value(text: str, name: str, **labels: str) -> float:
    """The value of one series."""
    return samples(text)[f"ncclcheck_{name}", frozenset(labels.items())]


@functools.cache
def promtool() -> str | None:
    """The program, where it is installed."""
    return shutil.which("promtool")


def complaints_of_promtool(text: str) -> str:
    """What `promtool check metrics` says of the text: nothing where it accepts and likes it."""
    tool = promtool()
    assert tool is not None
    done = subprocess.run(
        [tool, "check", "metrics"],
        input=text.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    said = done.stdout.decode()
    return said if done.returncode or said else ""
