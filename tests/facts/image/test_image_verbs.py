"""libibverbs and its providers in an image."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.facts.image.image_verbs import abi_of, own_machine, provider_abi, read_verbs
from ncclcheck.facts.software.needed_libraries import LoaderSearch
from ncclcheck.facts.tree import machine
from ncclcheck.model.fact import Missing
from tests.facts.compiled import needs_compiler, shared_library

SOURCE = 'const char *suffix = "%s-rdmav34.so"; int ibv_get_device_list(void) { return 0; }'


@needs_compiler
def test_library_version_abi_providers_and_drivers_are_read(tmp_path: Path) -> None:
    real = tmp_path / "lib/libibverbs.so.1.14.44.0"
    shared_library(real, SOURCE, "-Wl,-soname,libibverbs.so.1")
    (tmp_path / "lib/libibverbs.so.1").symlink_to(real.name)
    provider = tmp_path / "lib/libibverbs/libmlx5-rdmav34.so"
    shared_library(provider, "int mlx5;")
    (tmp_path / "etc/libibverbs.d").mkdir(parents=True)
    (tmp_path / "etc/libibverbs.d/mlx5.driver").write_text("driver mlx5\n")
    search = LoaderSearch({"LD_LIBRARY_PATH": str(tmp_path / "lib")}, {})
    verbs = read_verbs(search, machine(tmp_path), own_machine())
    assert verbs.library == str(tmp_path / "lib/libibverbs.so.1")
    assert (verbs.version, verbs.abi, verbs.drivers) == ("1.14.44.0", 34, ("mlx5",))
    assert verbs.providers == (str(provider),)


def test_without_a_library_all_of_it_is_absent(tmp_path: Path) -> None:
    verbs = read_verbs(
        LoaderSearch({}, {}, folders=()), machine(tmp_path), 183 if own_machine() == 62 else 62
    )
    assert isinstance(verbs.library, Missing)
    assert verbs.library.missing == "absent"


def test_a_library_that_names_no_suffix_tells_no_abi(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"nothing")
    assert isinstance(provider_abi(tmp_path / "a"), Missing)
    assert isinstance(provider_abi(tmp_path / "b"), Missing)
    assert (abi_of("/x/libmlx5-rdmav34.so"), abi_of("/x/libmlx5.so.1")) == (34, None)
