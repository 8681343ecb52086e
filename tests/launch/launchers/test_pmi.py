"""PMI launchers: ranks, and local ranks where the launcher adds them."""

from __future__ import annotations

from ncclcheck.launch.launchers.pmi import detect_pmi


def test_a_process_that_no_pmi_launcher_started() -> None:
    assert detect_pmi({"PMI_RANK": "0"}) is None
    assert detect_pmi({"PMI_SIZE": "1"}) is None


HYDRA = {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2", "PMI_ID": "3"}


def test_hydra_adds_the_local_rank() -> None:
    launch = detect_pmi({**HYDRA, "MASTER_ADDR": "head", "MASTER_PORT": "4000"})
    assert launch is not None
    assert (launch.source, launch.rank, launch.local_rank, launch.told) == ("pmi", 3, 1, "local-rank")
    assert (launch.master_addr, launch.master_port) == ("head", 4000)


def test_the_id_of_a_process_is_no_id_of_the_job() -> None:
    jobs = {detect_pmi({**HYDRA, "PMI_ID": number, "PMI_RANK": number}) for number in ("2", "3")}
    assert len({launch.job_id for launch in jobs if launch}) == 1


def test_plain_pmi_tells_the_rank_alone() -> None:
    launch = detect_pmi({"PMI_RANK": "3", "PMI_SIZE": "4"})
    assert launch is not None
    assert (launch.local_rank, launch.told, launch.nnodes, launch.master_addr) == (0, "rank", 4, None)


def test_crays_launcher_has_names_of_its_own() -> None:
    cray = {"PMI_RANK": "3", "PMI_SIZE": "4", "PALS_LOCAL_RANKID": "1", "PALS_LOCAL_SIZE": "4"}
    launch = detect_pmi(cray)
    assert launch is not None
    assert (launch.local_rank, launch.told, launch.nnodes) == (1, "place", 1)
