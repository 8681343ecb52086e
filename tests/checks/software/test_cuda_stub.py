"""NC514 cuda-stub."""

from __future__ import annotations

import pytest

from ncclcheck.model.image import DriverLibrary
from tests.checks.running import finding, is_silent
from tests.fact_builders import software
from tests.image_builders import healthy_image, with_sections

STUB = DriverLibrary("/usr/local/cuda/lib64/stubs/libcuda.so.1", "stub", "LD_LIBRARY_PATH")
COMPAT = DriverLibrary("/usr/local/cuda/compat/libcuda.so.1", "compat", "LD_LIBRARY_PATH")
DRIVER = DriverLibrary("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "driver", "a default folder of the loader")


@pytest.mark.parametrize(
    ("library", "severity", "words"),
    [
        (STUB, "error", "is a stub"),
        (COMPAT, "info", "forward compatibility"),
        (DRIVER, "warning", "belongs to one driver version"),
    ],
)
def test_a_library_of_the_driver_is_told_with_the_way_to_it(
    library: DriverLibrary, severity: str, words: str
) -> None:
    found = finding("cuda-stub", healthy_image(driver_libraries=(library,)))
    assert found.severity == severity
    assert words in found.summary
    assert found.evidence[0].source == library.found_by


def test_on_a_build_machine_with_a_driver_its_own_library_is_mounted() -> None:
    snapshot = with_sections(healthy_image(driver_libraries=(DRIVER,)), software=software())
    assert is_silent("cuda-stub", snapshot)
