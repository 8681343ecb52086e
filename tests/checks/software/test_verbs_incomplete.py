"""NC515 verbs-incomplete."""

from __future__ import annotations

from typing import Any

import pytest

from ncclcheck.model.fact import Missing
from ncclcheck.model.image import Verbs
from tests.checks.running import finding, run
from tests.fact_builders import GONE
from tests.image_builders import PROVIDER, healthy_image

NONE = Missing("absent", "not there")


def verbs(**changes: Any) -> Verbs:
    healthy = {
        "library": "/usr/lib/libibverbs.so.1",
        "version": "1.14.44.0",
        "abi": 34,
        "providers": (PROVIDER,),
        "drivers": ("mlx5",),
    }
    return Verbs(**{**healthy, **changes})


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (verbs(library=NONE), "there is no libibverbs"),
        (verbs(providers=()), "loads providers named *-rdmav34.so, and there is none (there: none)"),
        (verbs(abi=25), "loads providers named *-rdmav25.so, and there is none (there: libmlx5-rdmav34.so)"),
        (verbs(drivers=NONE), "no /etc/libibverbs.d that registers them"),
        (verbs(drivers=("efa",)), "none of the providers of libibverbs 1.14.44.0 (mlx5) is registered"),
    ],
)
def test_what_is_missing_is_named(part: Verbs, words: str) -> None:
    found = finding("verbs-incomplete", healthy_image(verbs=part))
    assert found.severity == "warning"
    assert words in found.summary


@pytest.mark.parametrize("part", [verbs(library=GONE), verbs(abi=GONE), verbs(drivers=GONE)])
def test_what_was_not_read_is_not_known(part: Verbs) -> None:
    assert run("verbs-incomplete", healthy_image(verbs=part)).outcome == "unknown"
