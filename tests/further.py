"""Of many cases of one claim some are tested always; the others are `further`, and run where time is left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

FURTHER = pytest.mark.further


def mostly_further(cases: Iterable[Any], always: int) -> list[Any]:
    """Return the cases as parameters, all but `always` of them, evenly spread from the first on, marked `further`.

    A tuple stands for several parameters. The file that calls it names `pytest.mark.further` itself, for example in a
    comment: `-m further` reads no other (tests/conftest.py).
    """
    listed = list(cases)
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if number * always % len(listed) < always else FURTHER,
        )
        for number, case in enumerate(listed)
    ]
