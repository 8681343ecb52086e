"""Who am I: every launcher, flags on top, and contradictions named."""

from __future__ import annotations

import pytest
from msgspec import structs

from ncclcheck.launch.detect import detect
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.launch.line.launch_line import LaunchLine
from ncclcheck.model.errors import UsageError
from ncclcheck.model.launch import NOT_RANKED

SLURM = {
    "SLURM_PROCID": "5",
    "SLURM_STEP_ID": "0",
    "SLURM_JOB_ID": "17",
    "SLURM_NTASKS": "8",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "2",
    "SLURM_STEP_NUM_NODES": "4",
    "SLURM_STEP_TASKS_PER_NODE": "2(x4)",
    "SLURM_STEP_NODELIST": "gpu[3-5],login1",
}
TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "job",
    "TORCHELASTIC_USE_AGENT_STORE": "True",
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "GROUP_RANK": "1",
    "GROUP_WORLD_SIZE": "2",
    "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "29511",
}
OPENMPI = {
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
    "OMPI_MCA_orte_hnp_uri": "3871211520.0;tcp://10.77.0.1,172.17.0.1:47111",
}
NONE = LaunchFlags()


def test_nobody_launched_is_one_node() -> None:
    launch = detect({}, NONE)
    assert (launch.source, launch.nnodes, launch.node_rank, launch.world_size) == ("none", 1, 0, 1)


def test_slurm_step() -> None:
    launch = detect(SLURM, NONE)
    assert (launch.source, launch.rank, launch.world_size) == ("slurm", 5, 8)
    assert (launch.local_rank, launch.local_world_size, launch.node_rank, launch.nnodes) == (1, 2, 2, 4)
    assert launch.hosts == ("gpu3", "gpu4", "gpu5", "login1")
    assert launch.master_addr == "gpu3"
    assert not launch.is_agent


def test_a_batch_script_is_no_step_and_so_one_node() -> None:
    batch = {name: value for name, value in SLURM.items() if name != "SLURM_STEP_ID"}
    assert detect(batch, NONE).source == "none"


def test_slurm_jobs_that_share_a_node_do_not_share_a_port() -> None:
    assert detect(SLURM, NONE).master_port != detect({**SLURM, "SLURM_JOB_ID": "18"}, NONE).master_port


def test_torchrun_and_its_store() -> None:
    launch = detect(TORCHRUN, NONE)
    assert (launch.source, launch.rank, launch.node_rank, launch.nnodes) == ("torchrun", 3, 1, 2)
    assert launch.shared_store
    assert launch.nproc_per_node == 2


def test_torchrun_inside_srun_wins_and_agrees() -> None:
    inside = {**SLURM, **TORCHRUN, "SLURM_STEP_NUM_NODES": "2", "SLURM_NTASKS": "2"}
    launch = detect(inside, NONE)
    assert launch.source == "torchrun"
    assert launch.contradictions == ()


def test_openmpi_finds_the_first_node_in_mpiruns_contact() -> None:
    launch = detect(OPENMPI, NONE)
    assert (launch.source, launch.node_rank, launch.nnodes, launch.master_addr) == (
        "openmpi",
        2,
        4,
        "10.77.0.1",
    )


def test_pmi_without_an_address_is_a_usage_error_that_says_what_to_give() -> None:
    with pytest.raises(UsageError, match="--master-addr"):
        detect({"PMI_RANK": "0", "PMI_SIZE": "2"}, NONE)


def test_flags_place_a_process_by_hand() -> None:
    flags = LaunchFlags(nnodes=4, node_rank=3, master_addr="head", master_port=1234)
    launch = detect({}, flags)
    assert (launch.source, launch.node_rank, launch.nnodes) == ("flags", 3, 4)
    assert (launch.master_addr, launch.master_port) == ("head", 1234)


def test_flags_that_contradict_the_launcher_are_kept_as_a_contradiction() -> None:
    launch = detect(SLURM, LaunchFlags(nnodes=3))
    assert launch.nnodes == 3
    (contradiction,) = launch.contradictions
    assert contradiction.quantity == "nnodes"
    assert set(contradiction.said.values()) == {"3", "4"}


def test_what_mpirun_does_not_say_contradicts_no_flag() -> None:
    launch = detect(OPENMPI, LaunchFlags(nnodes=3))
    assert (launch.told, launch.contradictions) == ("local-rank", ())


def test_a_node_rank_among_processes_that_are_counted_by_host_is_refused() -> None:
    with pytest.raises(UsageError, match="leave --node-rank out, or add --nnodes"):
        detect(OPENMPI, LaunchFlags(node_rank=1))


@pytest.mark.parametrize(
    "mpi",
    [OPENMPI, {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "1"}],
)
def test_a_rank_of_mpirun_is_no_task_of_the_step_that_started_its_daemons(mpi: dict[str, str]) -> None:
    launch = detect({**SLURM, **mpi, "MASTER_ADDR": "gpu3"}, NONE)
    assert (launch.source in ("openmpi", "pmi"), launch.rank, launch.world_size) == (True, 2, 4)


def test_left_over_world_size_one_under_slurm_is_a_contradiction() -> None:
    environ = {**SLURM, "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost"}
    launch = detect(environ, NONE)
    assert launch.source == "slurm"
    assert [contradiction.quantity for contradiction in launch.contradictions] == ["nnodes"]


def test_world_size_in_gpus_under_slurm_is_no_contradiction() -> None:
    environ = {**SLURM, "RANK": "5", "WORLD_SIZE": "32", "MASTER_ADDR": "gpu3"}
    assert detect(environ, NONE).contradictions == ()


@pytest.mark.parametrize(
    ("environ", "flags", "says"),
    [
        ({}, LaunchFlags(nnodes=4, node_rank=4, master_addr="a"), "node rank 4 .* 0..3"),
        ({}, LaunchFlags(nnodes=4), "--node-rank"),
        ({}, LaunchFlags(node_rank=3), "--node-rank 3 needs --nnodes"),
        ({**TORCHRUN, "WORLD_SIZE": "9" * 30}, NONE, "WORLD_SIZE='999"),
        ({**TORCHRUN, "WORLD_SIZE": "0"}, NONE, "WORLD_SIZE=0"),
        ({}, LaunchFlags(nnodes=2, node_rank=0), "--master-addr"),
        ({**TORCHRUN, "RANK": "four"}, NONE, "RANK='four'"),
        ({**TORCHRUN, "RANK": "9"}, NONE, "rank 9 .* 0..3"),
        ({**TORCHRUN, "MASTER_PORT": "70000"}, NONE, "MASTER_PORT=70000"),
    ],
)
def test_impossible_places_are_refused_with_one_sentence(
    environ: dict[str, str], flags: LaunchFlags, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        detect(environ, flags)


LINE = LaunchLine("torchrun", nnodes=4, node_rank=1, master_addr="head", master_port=7, nproc_per_node=8)


def test_a_launch_line_is_one_process_per_node() -> None:
    launch = detect({}, NONE, LINE)
    assert (launch.source, launch.rank, launch.world_size, launch.local_world_size) == (
        "launch-line",
        1,
        4,
        1,
    )
    assert (launch.node_rank, launch.nnodes, launch.nproc_per_node) == (1, 4, 8)
    assert (launch.master_addr, launch.master_port) == ("head", 7)


def test_flags_win_over_the_line_and_contradictions_are_said() -> None:
    launch = detect({}, LaunchFlags(nnodes=3, node_rank=2, nproc_per_node=4, master_addr="other"), LINE)
    assert (launch.nnodes, launch.world_size, launch.node_rank, launch.rank) == (3, 3, 2, 2)
    assert (launch.nproc_per_node, launch.master_addr, launch.master_port) == (4, "other", 7)
    said = {contradiction.quantity: contradiction.said for contradiction in launch.contradictions}
    assert said["nnodes"] == {"--nnodes": "3", "torchrun": "4"}
    assert said["node_rank"] == {"--node-rank": "2", "torchrun": "1"}
    assert said["nproc_per_node"] == {"--nproc-per-node": "4", "torchrun": "8"}


def test_the_line_wins_over_slurm_which_names_the_nodes() -> None:
    inside = {**SLURM, "SLURM_NODEID": "1", "SLURM_STEP_TASKS_PER_NODE": "1(x4)", "SLURM_NTASKS": "4"}
    launch = detect(inside, NONE, LINE)
    assert (launch.source, launch.nnodes, launch.contradictions) == ("launch-line", 4, ())
    assert launch.hosts == ("gpu3", "gpu4", "gpu5", "login1")
    fewer = detect(inside, NONE, structs.replace(LINE, nnodes=3))
    assert [contradiction.said for contradiction in fewer.contradictions] == [
        {"torchrun": "3", "Slurm (SLURM_STEP_NUM_NODES)": "4"}
    ]


def test_a_c10d_rendezvous_ranks_by_arrival_unless_a_flag_does() -> None:
    line = LaunchLine(
        "torchrun",
        nnodes=4,
        min_nodes=2,
        master_addr="head",
        master_port=29400,
        rendezvous="c10d",
        rendezvous_id="j",
    )
    launch = detect({}, NONE, line)
    assert (launch.rendezvous, launch.node_rank, launch.min_nodes) == ("c10d", NOT_RANKED, 2)
    assert detect({}, LaunchFlags(node_rank=0), line).rendezvous == "static"
    inside = {**SLURM, "SLURM_STEP_NUM_NODES": "3"}
    assert detect(inside, NONE, line).nnodes == 3  # within 2 to 4, and so many are there
    assert detect(inside, NONE, line).contradictions == ()


def test_a_line_that_starts_the_other_nodes_is_told_where_ncclcheck_belongs() -> None:
    line = LaunchLine("deepspeed", nnodes=2, master_addr="a", remote_hosts=("a", "b"))
    with pytest.raises(UsageError, match="--hosts a,b"):
        detect({}, NONE, line)


def test_kubeflow_and_indexed_jobs_without_a_line() -> None:
    pet = {"PET_NNODES": "2", "PET_NODE_RANK": "1", "PET_MASTER_ADDR": "a"}
    assert (detect(pet, NONE).source, detect(pet, NONE).node_rank) == ("launch-line", 1)
    job = {"JOB_COMPLETION_INDEX": "1", "MASTER_ADDR": "a"}
    assert (detect(job, LaunchFlags(nnodes=2)).source, detect(job, LaunchFlags(nnodes=2)).node_rank) == (
        "node-index",
        1,
    )
    assert detect(job, NONE).source == "none"


def test_a_node_rank_of_the_job_script_means_nothing_where_a_launcher_says_the_place() -> None:
    launch = detect({**TORCHRUN, "NODE_RANK": "1"}, NONE)
    assert (launch.source, launch.node_rank, launch.nnodes) == ("torchrun", 1, 2)
