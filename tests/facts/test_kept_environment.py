"""What leaves a node of its environment: what explains the job, and no secret."""

from __future__ import annotations

import pytest

from ncclcheck.facts.kept_environment import REDACTED, SET, read_environment
from ncclcheck.model.codec import encode


def test_what_explains_a_job_is_kept_as_it_is() -> None:
    environ = {
        "NCCL_SOCKET_IFNAME": "=eth0",
        "NCCL_IB_HCA": "",
        "NCCL_IB_PKEY": "0x8001",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "TORCHELASTIC_RUN_ID": "none",
        "GLOO_SOCKET_IFNAME": "eth0",
        "MASTER_ADDR": "node01",
        "RANK": "3",
        "LOCAL_RANK": "0",
        "SLURM_NODELIST": "node[01-04]",
        "OMPI_COMM_WORLD_RANK": "3",
        "LD_LIBRARY_PATH": "/opt/nccl/lib:/usr/lib",
        "FI_PROVIDER": "efa",
        "UCX_TLS": "rc,cuda",
    }
    assert read_environment(environ) == environ


@pytest.mark.parametrize(
    "name",
    ["nccl_debug", "Nccl_Socket_Ifname", "gloo_socket_ifname", "NCLL_DEBUG", "NCCL-DEBUG", " NCCL_DEBUG"],
)
def test_slips_of_names_are_kept(name: str) -> None:
    assert read_environment({name: "eth0"}) == {name: "eth0"}
    assert read_environment({f"{name}_token": "eth0"}) == {}


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "NCCLX",
        "gloom",
        "USER",
        "PS1",
        "AWS_REGION",
        "SLURM_JWT",
        "SLURM_JOB_ACCOUNT",
        "KUBERNETES_SERVICE_HOST",
        "RANKED",
    ],
)
def test_nothing_else_leaves(name: str) -> None:
    assert read_environment({name: "x"}) == {}


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA_API_KEY",
        "NCCL_AUTH_TOKEN",
        "TORCH_SECRET",
        "NVIDIA_apikey",
        "SLURM_STEP_PASSWORD",
        "UCX_CREDENTIALS_FILE",
        "TORCH_HUB_TOKENS",
        "PMI_AUTH",
        "NCCL_ACCESSKEY",
        "NCCL_TOKEN2",
        "TORCH_HUB_PAT",
        "FI_CRED",
        "NCCL_KEYFILE",
        "TORCH_COOKIES",
        "NCCL_OAUTH",
    ],
)
def test_a_name_that_sounds_like_a_secret_is_not_even_named(name: str) -> None:
    assert read_environment({name: "x"}) == {}


@pytest.mark.parametrize(
    "value",
    [
        "http://user:hunter2@proxy:3128",
        "s3://AKIAIOSFODNN7EXAMPLE:abc@bucket/plugin.so",
        "/opt/x?token=abcdef",
        "password: hunter2",
        "Bearer abcdef",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "-----BEGIN RSA PRIVATE KEY-----",
        "sk-proj-abcdefghijklmnopqrstuvwxyz",
        "glpat-abcdefghijklmnopqrst",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "nvapi-abcdefghijklmnopqrstuvwxyz",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334",
        "user:hunter2@host",
        "//user:hunter2@host/x",
        "/opt/x?sig=abc&se=1",
        "--password hunter2",
    ],
)
def test_a_value_that_looks_like_a_secret_is_redacted(value: str) -> None:
    assert read_environment({"NCCL_NET_PLUGIN": value}) == {"NCCL_NET_PLUGIN": REDACTED}


@pytest.mark.parametrize(
    "value",
    [
        "tcp://node01:29500",
        "http://proxy:3128/path@2",
        "user@host",
        "/opt/tokenizers/keys",
        "[fe80::1%eth0]:5000",
    ],
)
def test_an_ordinary_address_or_path_is_no_secret(value: str) -> None:
    assert read_environment({"MASTER_ADDR": value}) == {"MASTER_ADDR": value}


def test_of_home_and_proxies_only_whether_they_are_set() -> None:
    environ = {"HOME": "/home/ada", "http_proxy": "http://a:b@p", "HTTPS_PROXY": "p", "no_proxy": ""}
    assert read_environment(environ) == dict.fromkeys(environ, SET)


def test_bytes_that_are_no_text_do_not_break_the_message() -> None:
    kept = read_environment({"NCCL_X": "a\udcffb"})
    assert encode(kept) == '{"NCCL_X":"a\N{REPLACEMENT CHARACTER}b"}'.encode()


def test_a_value_of_any_length_is_judged_at_once() -> None:
    value = "eyJ" * 40_000
    assert read_environment({"NCCL_X": value}) == {"NCCL_X": value}


@pytest.mark.parametrize(
    "value",
    [
        "/opt/spack/gcc@12.3:/opt/spack/nccl@2.27",
        "=mlx5_0:1,mlx5_1:1",
        "GPU-8a0f6e5c-3b1d-4d6e-9a7f-0123456789ab,GPU-9b1f6e5c-3b1d-4d6e-9a7f-0123456789ab",
        "/usr/local/lib/python3.11/dist-packages/nvidia/nccl/lib",
        "cuda>=12.4 brand=tesla,driver>=470,driver<471",
        "8.0;9.0+PTX",
        "node[001-512],login01",
        "3f1c8a52-6a0e-4f0e-8a57-2f1f0f6a9b11",
    ],
)
def test_what_a_cluster_usually_has_is_no_secret(value: str) -> None:
    assert read_environment({"NCCL_X": value, "NCCL_PAT_ENABLE": "1"}) == {
        "NCCL_X": value,
        "NCCL_PAT_ENABLE": "1",
    }
