"""Whom explain names: the node that a sentence is about, in both forms of its name, not who spoke it."""

from __future__ import annotations

from tests.logs.rounds import explain


def hosts(log: str) -> tuple[str, ...]:
    return explain("job.log", log.encode()).findings[0].hosts


def test_a_node_that_ssh_does_not_find_is_named_with_and_without_its_service() -> None:
    log = "$ kubectl logs train-l-x7z\nssh: Could not resolve hostname w-4.train.ns.svc: Name or service not known\n"
    assert set(hosts(log)) == {"w-4", "w-4.train.ns.svc"}


def test_a_prompt_names_the_host_whoever_its_user_is() -> None:
    log = (
        "(env) jdoe@n042:~/runs/a  $ python train.py\n"
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.batch cgroup.\n"
    )
    assert hosts(log) == ("n042",)


def test_the_node_that_died_is_named_by_its_address() -> None:
    log = (
        "Traceback (most recent call last):\nray.exceptions.RayActorError: The actor died unexpectedly before "
        "finishing this task.\n\tclass_name: Worker\n\tpid: 9\n\tip: 10.8.0.4\n"
        "The actor is dead because its node has died. Node Id: 01ab\n"
    )
    told = log.replace("ray.exceptions", "(Worker pid=9, ip=10.8.0.4) ray.exceptions")
    assert "10.8.0.4" in hosts(
        told.replace("The actor is dead", "(Worker pid=9, ip=10.8.0.4) The actor is dead")
    )


def test_a_cuda_call_that_fails_concerns_the_host_that_says_so() -> None:
    failed = "{}:7:8 [0] init.cc:4 NCCL WARN Cuda failure 'operation not supported'\n"
    assert hosts(failed.format("n1")) == ("n1",)
    assert hosts(failed.format("n1") + failed.format("n2")) == ()


def test_a_failed_link_has_two_ends() -> None:
    log = (
        "n1:7:8 [0] x.c:1 NCCL WARN NET/IB : Got completion from peer 10.8.0.4<5> with status=12 opcode=0 len=0 vendor "
        "err 129 (Recv)\nn1 kernel: mlx5_core 0000:3b:00.0 eth1: Link down\n"
    )
    assert set(hosts(log)) >= {"n1", "10.8.0.4"}
