"""PMI launchers: places, and nodes counted from local sizes."""

from __future__ import annotations

from ncclcheck.launch.launchers.pmi import detect_pmi


def test_a_process_that_no_pmi_launcher_started() -> None:
    assert detect_pmi({"PMI_RANK": "0"}) is None
    assert detect_pmi({"PMI_SIZE": "1"}) is None


def test_hydra_adds_the_local_rank() -> None:
    hydra = {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2", "PMI_ID": "3"}
    launch = detect_pmi({**hydra, "MASTER_ADDR": "head", "MASTER_PORT": "4000"})
    assert launch is not None
    assert (launch.source, launch.rank, launch.local_rank, launch.node_rank, launch.nnodes) == (
        "pmi",
        3,
        1,
        1,
        2,
    )
    assert (launch.master_addr, launch.master_port) == ("head", 4000)


def test_plain_pmi_is_one_process_per_node() -> None:
    launch = detect_pmi({"PMI_RANK": "3", "PMI_SIZE": "4"})
    assert launch is not None
    assert (launch.local_rank, launch.node_rank, launch.nnodes, launch.master_addr) == (0, 3, 4, None)
