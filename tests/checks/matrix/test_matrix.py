"""What the checks of matrix share."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.matrix._matrix import unmeasured
from ncclcheck.checks.measured import measured
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import NotApplicable, NotKnown
from tests.builders import cluster
from tests.matrix_builders import fabric, with_matrix


def test_the_result_or_why_there_is_none() -> None:
    assert measured(with_matrix().matrix) == fabric()
    assert measured(cluster(4).matrix) is None
    assert list(unmeasured(with_matrix())) == []
    assert [type(answer) for answer in unmeasured(cluster(4))] == [NotApplicable]
    lost = replace(cluster(4), matrix=Missing("error", "the store was lost"))
    for snapshot in (lost, with_matrix(is_finished=False)):
        assert [type(answer) for answer in unmeasured(snapshot)] == [NotKnown]
