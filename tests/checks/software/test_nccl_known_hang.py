"""NC517 nccl-known-hang."""

from __future__ import annotations

from ncclcheck.model.fact import Missing
from tests.builders import cluster, with_software
from tests.checks.running import finding, is_silent, run

SLUG = "nccl-known-hang"


def test_a_release_that_hangs_on_grace_is_named_with_its_source() -> None:
    found = finding(SLUG, with_software(cluster(4), "node03", nccl="2.28.9", machine="aarch64"))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "node03 loads NCCL 2.28.9, which is known to hang on aarch64" in found.summary
    assert "NVIDIA/nccl#2353" in found.evidence[0].source
    assert "2.29.3" in str(found.fixes)


def test_the_same_release_elsewhere_and_others_there_are_silent() -> None:
    assert is_silent(SLUG, with_software(cluster(2), "node02", nccl="2.28.9"))
    assert is_silent(SLUG, with_software(cluster(2), "node02", nccl="2.29.3", machine="aarch64"))


def test_a_version_that_was_not_read_is_unknown() -> None:
    assert (
        run(SLUG, with_software(cluster(2), "node02", nccl=Missing("timeout", "late"))).outcome == "unknown"
    )
