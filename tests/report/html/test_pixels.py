"""Pictures that stand in the page itself, read back."""

from __future__ import annotations

from ncclcheck.report.html.pixels import png_address
from tests.report.html.png_reader import rows_of

PALETTE = ((0, 0, 0), (255, 0, 0), (0, 255, 0))


def test_a_picture_has_the_points_that_were_given() -> None:
    rows = [bytes((0, 1, 2)), bytes((2, 2, 1))]
    address = png_address(rows, PALETTE)
    assert address.startswith("data:image/png;base64,iVBOR")
    assert rows_of(address) == rows
