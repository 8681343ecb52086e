"""mpirun: ranks, which tell no node unless all are on one, and the address of the first node."""

from __future__ import annotations

import pytest

from ncclcheck.launch.launchers.openmpi import detect_openmpi
from ncclcheck.launch.reading import DEFAULT_PORT
from ncclcheck.model.errors import UsageError
from ncclcheck.model.launch import Launch

MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "5",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}


def openmpi(**changes: str) -> Launch:
    launch = detect_openmpi({**MPIRUN, **changes})
    assert launch is not None
    return launch


def test_a_rank_tells_no_node_since_slots_need_not_be_even() -> None:
    launch = openmpi()
    assert (launch.rank, launch.world_size, launch.local_rank, launch.local_world_size) == (5, 8, 1, 2)
    assert (launch.told, launch.node_rank, launch.nnodes) == ("local-rank", 5, 7)
    assert (launch.master_addr, launch.master_port) == (None, DEFAULT_PORT)


def test_all_ranks_on_one_node_are_one_node() -> None:
    launch = openmpi(OMPI_COMM_WORLD_LOCAL_SIZE="8", OMPI_COMM_WORLD_LOCAL_RANK="5")
    assert (launch.told, launch.node_rank, launch.nnodes) == ("place", 0, 1)


@pytest.mark.parametrize(
    ("variable", "uri", "address"),
    [
        ("OMPI_MCA_orte_hnp_uri", "3871211520.0;tcp://10.77.0.1,172.17.0.1:47111", "10.77.0.1"),
        ("OMPI_MCA_orte_hnp_uri", "1.0;usock;tcp://192.168.0.9:5", "192.168.0.9"),
        ("PRTE_MCA_prte_hnp_uri", "prterun-n1-1@0.0;tcp://10.0.0.7:40001:24", "10.0.0.7"),
        ("OMPI_MCA_orte_hnp_uri", "1.0;tcp6://[fd00::1]:47111", None),
        ("OMPI_MCA_orte_hnp_uri", "", None),
    ],
)
def test_mpiruns_contact_tells_its_address(variable: str, uri: str, address: str | None) -> None:
    assert openmpi(**{variable: uri}).master_addr == address
    assert openmpi(**{variable: uri, "MASTER_ADDR": "head"}).master_addr == "head"


def test_two_jobs_have_two_ids() -> None:
    ids = {openmpi(PMIX_NAMESPACE=name).job_id for name in ("prterun-1", "prterun-2")}
    ids |= {openmpi(OMPI_MCA_ess_base_jobid="7").job_id}
    assert len(ids) == 3


def test_a_process_that_mpirun_did_not_start_is_none_of_its() -> None:
    assert (
        detect_openmpi({name: text for name, text in MPIRUN.items() if name != "OMPI_COMM_WORLD_RANK"})
        is None
    )


def test_one_process_alone_is_one_node() -> None:
    launch = detect_openmpi({"OMPI_COMM_WORLD_RANK": "0"})
    assert launch is not None
    assert (launch.world_size, launch.local_world_size, launch.nnodes, launch.node_rank) == (1, 1, 1, 0)


@pytest.mark.parametrize("name", MPIRUN)
def test_a_value_that_is_no_number_is_refused_by_name(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}='-1'"):
        openmpi(**{name: "-1"})
