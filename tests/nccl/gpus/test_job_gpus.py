"""How many GPUs a process of the job gets on a node."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.gpu import TorchGpus
from ncclcheck.nccl.gpus.job_gpus import exclusive_gpus, gpus_without_nvml, job_gpus, sees_none, shares_gpus
from tests.builders import cluster, everywhere
from tests.fact_builders import software
from tests.gpu_builders import with_all_gpus, with_gpu
from tests.hardware_builders import healthy_pci

LATE = Missing("timeout", "late")
ABSENT = Missing("absent", "libnvidia-ml.so.1 is not there")


def node(**sections: object) -> NodeFacts:
    return everywhere(cluster(1), **sections).nodes[0].facts


def test_what_torch_sees_counts_and_not_what_nvml_lists() -> None:
    assert job_gpus(node()) == 8
    seen = node(torch_gpus=TorchGpus(1, ()), environment={"CUDA_VISIBLE_DEVICES": "1"})
    assert job_gpus(seen) == 1


def test_a_job_never_gets_more_gpus_than_the_variable_names() -> None:
    both = TorchGpus(2, ())
    assert job_gpus(node(torch_gpus=both, environment={"CUDA_VISIBLE_DEVICES": "1"})) == 1
    assert job_gpus(node(torch_gpus=both, environment={"CUDA_VISIBLE_DEVICES": "GPU-elsewhere"})) == 2


@pytest.mark.parametrize(
    ("visible", "count"),
    [("", 0), ("-1", 0), ("NoDevFiles", 0), ("1", 1), ("0,3,5", 3), ("0,9,1", 1), ("2,2", 0), ("MIG-5f", 1)],
)
def test_where_torch_did_not_answer_the_variable_counts(visible: str, count: int) -> None:
    assert job_gpus(node(torch_gpus=LATE, environment={"CUDA_VISIBLE_DEVICES": visible})) == count


def test_of_mig_instances_a_process_gets_one() -> None:
    facts = with_all_gpus(everywhere(cluster(1), torch_gpus=LATE), mig=True).nodes[0].facts
    assert job_gpus(facts) == 1


def test_gpus_that_were_not_read_are_not_none() -> None:
    assert job_gpus(node(gpus=LATE)) == LATE
    assert job_gpus(node(gpus=ABSENT, torch_gpus=ABSENT)) == 0


def test_without_nvml_torch_is_believed_and_the_bus_where_torch_did_not_answer() -> None:
    assert job_gpus(node(gpus=ABSENT)) == 8
    assert job_gpus(node(gpus=ABSENT, torch_gpus=TorchGpus(0, ()))) == 0
    assert job_gpus(node(gpus=ABSENT, torch_gpus=LATE)) == LATE
    on_bus = {"gpus": ABSENT, "pci": healthy_pci()}
    assert isinstance(job_gpus(node(**on_bus, torch_gpus=LATE)), Missing)
    assert isinstance(job_gpus(node(**on_bus, torch_gpus=TorchGpus(0, ()))), Missing)
    hides = {"CUDA_VISIBLE_DEVICES": ""}
    assert job_gpus(node(**on_bus, torch_gpus=TorchGpus(0, ()), environment=hides)) == 0


def test_gpus_without_nvml_are_counted_on_the_bus_and_by_torch() -> None:
    assert gpus_without_nvml(node()) == 0
    assert gpus_without_nvml(node(gpus=ABSENT, torch_gpus=LATE, pci=healthy_pci())) == 8
    assert gpus_without_nvml(node(gpus=ABSENT, torch_gpus=TorchGpus(4, ()))) == 4
    assert sees_none(node(torch_gpus=TorchGpus(0, ())))
    assert sees_none(node(torch_gpus=Missing("unsupported", "without CUDA")))
    assert not sees_none(node(torch_gpus=LATE))


def test_a_torch_that_sees_none_though_nothing_hides_them_is_not_without_gpus() -> None:
    none = TorchGpus(0, ())
    assert isinstance(job_gpus(node(torch_gpus=none)), Missing)
    assert job_gpus(node(torch_gpus=none, environment={"CUDA_VISIBLE_DEVICES": ""})) == 0
    assert replace(none, count=8) == TorchGpus(8, ())


def test_gpus_that_take_one_process_only() -> None:
    assert exclusive_gpus(node()) == ()
    facts = with_gpu(cluster(1), "node01", 3, compute_mode="exclusive-process").nodes[0].facts
    assert exclusive_gpus(facts) == (3,)


@pytest.mark.parametrize(
    ("value", "nccl", "shares"),
    [
        ("1", "2.30.7", True),
        ("0x1", "2.30.3", True),
        ("1", "2.29.7", False),
        ("0", "2.30.7", False),
        ("1", LATE, True),
    ],
)
def test_ranks_share_gpus_where_nccl_knows_the_switch(value: str, nccl: object, shares: bool) -> None:
    facts = node(
        environment={"NCCL_MULTI_RANK_GPU_ENABLE": value}, software=software(nccl=nccl, torch_nccl=nccl)
    )
    assert shares_gpus(facts) is shares
    assert not shares_gpus(node())
