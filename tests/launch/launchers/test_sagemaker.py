"""A host of a SageMaker training job."""

from __future__ import annotations

import pytest

from ncclcheck.launch.launchers.sagemaker import detect_sagemaker
from ncclcheck.model.errors import UsageError

HOST = {"SM_HOSTS": '["algo-1","algo-2"]', "SM_CURRENT_HOST": "algo-2", "SM_NUM_GPUS": "8"}


def test_the_order_of_the_list_is_the_order_of_the_nodes() -> None:
    launch = detect_sagemaker(HOST)
    assert launch is not None
    assert (launch.source, launch.node_rank, launch.nnodes, launch.nproc_per_node) == ("sagemaker", 1, 2, 8)
    assert (launch.master_addr, launch.hosts) == ("algo-1", ("algo-1", "algo-2"))


def test_the_only_host_and_other_places_are_no_job_of_several() -> None:
    assert detect_sagemaker({**HOST, "SM_HOSTS": '["algo-2"]'}) is None
    assert detect_sagemaker({}) is None


@pytest.mark.parametrize("listed", ["algo-1,algo-2", '["algo-1"]', '"algo-2"', "[["])
def test_a_list_without_this_host_is_refused(listed: str) -> None:
    with pytest.raises(UsageError, match="SM_CURRENT_HOST='algo-2' is not in SM_HOSTS"):
        detect_sagemaker({**HOST, "SM_HOSTS": listed})
