"""What holds for every check of images, and what becomes of the others there."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from ncclcheck.checks.images import judged
from ncclcheck.checks.registry import Check, all_checks, run_check
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.image import Image
from ncclcheck.model.snapshot import Snapshot
from tests.fact_builders import GONE, some
from tests.hardware_builders import rdma_cluster
from tests.image_builders import healthy_image, with_sections

OF_IMAGES = [check for check in all_checks() if check.image]
ONLY = [check for check in all_checks() if check.image == "only"]
OF_NODES = [check for check in all_checks() if not check.image]
PARTS = {
    "library-missing": "libraries",
    "nccl-missing": "torch",
    "packages-inconsistent": "packages",
    "cuda-stub": "driver_libraries",
    "verbs-incomplete": "verbs",
    "image-limits": "limits",
}


def by_slug(check: Check) -> str:
    return check.slug


@pytest.mark.parametrize("check", OF_IMAGES, ids=by_slug)
def test_a_healthy_image_gives_no_finding(check: Check) -> None:
    result = run_check(check, healthy_image())
    assert (result.outcome, result.findings) in [("passed", ()), ("not_applicable", ())], result


@pytest.mark.parametrize("check", ONLY, ids=by_slug)
def test_a_healthy_image_passes_what_is_asked_of_images(check: Check) -> None:
    result = run_check(check, healthy_image())
    assert (result.outcome, result.reason) == ("passed", "")


@pytest.mark.parametrize("check", OF_NODES, ids=by_slug)
def test_what_needs_a_node_says_why_an_image_cannot_be_asked(check: Check) -> None:
    result = run_check(check, healthy_image())
    assert (result.outcome, result.reason) == ("not_applicable", check.not_in_image)


@pytest.mark.parametrize("check", ONLY, ids=by_slug)
def test_a_node_is_not_asked_what_is_asked_of_images(check: Check) -> None:
    result = run_check(check, rdma_cluster(2))
    assert result.outcome == "not_applicable"
    assert "preflight --image" in result.reason


@pytest.mark.parametrize("check", ONLY, ids=by_slug)
def test_an_image_that_could_not_be_read_is_unknown(check: Check) -> None:
    assert run_check(check, with_sections(healthy_image(), image=GONE)).outcome == "unknown"
    part = PARTS[check.slug]
    assert run_check(check, healthy_image(**{part: GONE})).outcome == "unknown"
    assert run_check(check, Snapshot(nodes=(), of="image")).outcome == "unknown"


def test_every_part_of_an_image_is_judged_by_a_check() -> None:
    assert {*PARTS.values(), "imports"} == set(structs.asdict(some(image_of(healthy_image()))))


def image_of(snapshot: Snapshot) -> Any:
    return snapshot.nodes[0].facts.image


def test_a_healthy_image_survives_json() -> None:
    assert decode(encode(healthy_image()), Snapshot) == healthy_image()


def test_a_part_that_was_not_read_is_told_with_its_name() -> None:
    def read(image: Image) -> Missing:
        del image
        return GONE

    (answer,) = judged(healthy_image(), "the parts", read, lambda *_: iter(()))
    assert "the parts: timeout" in str(answer)
