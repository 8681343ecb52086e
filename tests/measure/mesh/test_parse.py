"""`--mesh` and `--mesh-order`."""

from __future__ import annotations

import pytest

from ncclcheck.measure.mesh.groups import order_of
from ncclcheck.measure.mesh.parse import parse_mesh
from ncclcheck.model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "order", "means"),
    [
        ("pp=2,dp=4,tp=8", None, "pp=2,dp=4,tp=8"),
        (" dp=-1, tp=8", None, "dp=-1,tp=8"),
        ("tp=8,dp=4,pp=2", "tp-dp-pp", "pp=2,dp=4,tp=8"),
        ("tp=8,dp=4,pp=2", "tp-cp-ep-dp-pp", "pp=2,dp=4,ep=1,cp=1,tp=8"),
        ("dp=4,tp=2,ep=8@dp,tp", None, "dp=4,tp=2,ep=8@dp+tp"),
        ("ep=4@dp+tp,dp=4,tp=2", None, "dp=4,tp=2,ep=4@dp+tp"),
    ],
)
def test_what_it_means_in_torchs_order(text: str, order: str | None, means: str) -> None:
    assert order_of(parse_mesh(text, order)) == means


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("", None), ("tp", None), ("tp=0", None), ("tp=-2", None), ("tp=8,tp=2", None), ("a=-1,b=-1", None),
        ("tp=8;dp=2", None), ("ep=8@dp", None), ("dp=4,ep=-1@dp", None), ("tp=8,dp=4", "tp-pp"), ("tp=8", "tp-tp"),
        (",".join(f"d{number}=1" for number in range(13)), None), ("tp=99999999999", None),
    ],
)  # fmt: skip
def test_what_is_no_mesh_is_refused_with_its_own_words(text: str, order: str | None) -> None:
    with pytest.raises(UsageError, match="--mesh"):
        parse_mesh(text, order)


def test_an_order_may_name_what_megatron_has_and_nothing_else() -> None:
    parse_mesh("tp=2,dp=2", "tp-cp-ep-dp-pp")
    with pytest.raises(UsageError, match="foo is no dimension of --mesh"):
        parse_mesh("tp=2,dp=2", "tp-foo-dp")
    parse_mesh("rows=2,columns=2", "columns-rows")
