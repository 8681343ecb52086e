"""The table of variables: whole, consistent, and true to the real libraries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ncclcheck.nccl import variables, versions
from ncclcheck.nccl.variables.variables import FAMILIES, TABLE, lookup
from ncclcheck.nccl.variables.variables_types import Family, Variable
from tests.nccl.test_against_library import libraries

FOLDER = Path(variables.__file__).parent
# Names of constants and of log categories, which the libraries hold as texts too.
_NO_VARIABLES = re.compile(
    r"NCCL_(ALL|ALLOC|ALLOC_HOST|BOOTSTRAP|CALL|COLL|DESTROY|ENV|INIT|NET|NVLS|P2P|PROFILE|PROXY|RAS|REG|SHM|TUNING"
    r"|SIGNAL|SIGNAL_NONE|CFT|CFT_NONE|CFT_MULTIMEM|PAT_NDIMS|NVLS_UB_SIZE|IB_MLX_VENDOR_ID|IB_(SL|TC)_DEFAULT"
    r"|NUM_RMA_INT_CTX_DEFAULT|GIN_MAX_TYPES|NETDEVS_POLICY_\w+|NET_MERGE_POLICY_\w+|IB_RAIL_POLICY_\w+"
    r"|(LOG|IPC|NET_DEVICE|PARAM_FLAG|PARAM_TYPE|PROFILER_THREAD|CRYPT|ENCRYPTION|SYMK|DEV_WORK|CFT_TEAM"
    r"|GIN_TYPE|GIN_CONNECTION|GIN_IB_ALL|GIN_GDAKI_GPU|GIN_PROXY_GPU)_?\w*)"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "library", libraries() or [None], ids=lambda path: path.parts[-5] if path else "none"
)
def test_every_name_in_a_real_library_is_in_the_table(library: Path | None) -> None:
    if library is None:
        pytest.skip("no NCCL library: set NCCLCHECK_TEST_NCCL_LIBRARIES")
    names = {one.decode() for one in re.findall(rb"\0(NCCL_[A-Z0-9_]+)(?=\0)", library.read_bytes())}
    unknown = {name for name in names if name not in TABLE and not _NO_VARIABLES.fullmatch(name)}
    assert len(names) > 100
    assert unknown == set()


def test_no_name_is_there_twice() -> None:
    files = [(FOLDER / file).read_text() for file in ("nccl.toml", "others.toml")]
    names = [name for text in files for name in re.findall(r"^(\w+) = ", text, re.MULTILINE)]
    assert len(names) == len(set(names)) == len(TABLE)


def test_the_variables_of_nccl_are_sorted_by_name() -> None:
    names = [variable.name for variable in TABLE.values() if variable.owner == "NCCL"]
    assert names == sorted(names)


@pytest.mark.parametrize("variable", TABLE.values(), ids=lambda one: str(one.name))
def test_each_entry_is_whole(variable: Variable) -> None:
    assert variable.source
    for version in (variable.since, variable.until, variable.obsolete_since):
        assert not version or versions.is_version(version)
    if variable.since and variable.until:
        assert versions.parse(variable.since) <= versions.parse(variable.until)
    for part in variable.default.split(";")[1:]:
        assert versions.is_version(part.strip().partition(": ")[0])
    if variable.successor:
        assert variable.successor in TABLE
    if variable.lowest is not None and variable.highest is not None:
        assert variable.lowest <= variable.highest
    assert bool(variable.values) == (
        variable.kind in {"word", "words", "level"} and variable.name != "NCCL_IB_GDR_LEVEL"
    )


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("NCCL_IB_HCA", "NCCL"),
        ("NCCL_RUN_DIAGNOSTICS", "NCCL"),
        ("NCCL_PROGRESS_COUNTERS", "NCCL"),
        ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "torch"),
        ("NCCL_BLOCKING_WAIT", "torch"),
        ("GLOO_SOCKET_IFNAME", "Gloo"),
        ("NCCL_FASTRAK_IFNAME", "Google plug-in"),
        ("NCCL_GPUDIRECTTCPX_SOCKET_IFNAME", "Google plug-in"),
        ("OFI_NCCL_PROTOCOL", "aws-ofi-nccl"),
        ("NCCL_UCX_TLS", "HPC-X plug-in"),
        ("NCCL_INSPECTOR_ENABLE", "NCCL plug-in"),
        ("NCCL_TESTS_DEVICE", "nccl-tests"),
        ("NCCL_CTRAN_ENABLE", "ncclx"),
        ("NCCL_VERSION", "builds and images"),
        ("FI_PROVIDER", "libfabric"),
        ("UCX_NET_DEVICES", "UCX"),
    ],
)
def test_each_name_has_its_owner(name: str, owner: str) -> None:
    found = lookup(name)
    assert isinstance(found, Variable | Family)
    assert found.owner == owner


@pytest.mark.parametrize(
    "name", ["NCCL_TIMEOUT", "NCCL_IB_HCAS", "GLOO_TIMEOUT", "NCCL_PROFIL", "TORCH_NCCL_TIMEOUT"]
)
def test_a_name_that_nobody_reads_has_none(name: str) -> None:
    assert lookup(name) is None


def test_families_hide_no_variable_of_nccl() -> None:
    names = [variable.name for variable in TABLE.values() if variable.owner == "NCCL"]
    assert [name for name in names for family in FAMILIES if name.startswith(family.prefix)] == []
