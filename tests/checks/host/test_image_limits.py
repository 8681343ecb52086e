"""NC714 image-limits."""

from __future__ import annotations

import pytest

from ncclcheck.model.image import SetLimit
from tests.checks.running import finding, is_silent
from tests.image_builders import healthy_image

FILE = "/etc/security/limits.d/90-site.conf"


@pytest.mark.parametrize(
    ("item", "value", "severity"),
    [
        ("memlock", "64", "error"),
        ("memlock", "262144", "warning"),
        ("nofile", "1024", "warning"),
        ("nproc", "100", "warning"),
    ],
)
def test_a_line_that_lowers_a_limit_is_named(item: str, value: str, severity: str) -> None:
    found = finding("image-limits", healthy_image(limits=(SetLimit(FILE, 3, "*", item, value),)))
    assert found.severity == severity
    assert f"{FILE} in the image on builder sets {item} of * to {value}" in found.summary
    assert found.evidence[0].source == f"{FILE}, line 3"


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ("memlock", "unlimited"),
        ("memlock", "1048576"),
        ("nofile", "-1"),
        ("nofile", "65536"),
        ("nproc", "hard"),
    ],
)
def test_a_line_that_does_not_is_silent(item: str, value: str) -> None:
    assert is_silent("image-limits", healthy_image(limits=(SetLimit(FILE, 3, "*", item, value),)))
