"""What the name of a checkpoint says."""

from __future__ import annotations

import pytest

from ncclcheck.model.job.checkpoint_names import is_attempt, is_last, is_part, is_unfinished, shape, step_of


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("global_step100", 100),
        ("iter_0001000", 1000),
        ("checkpoint-500", 500),
        ("epoch=3-step=1000.ckpt", 1000),
        ("epoch=3-step=1000-v2.ckpt", 1000),
        ("epoch=10-val_loss=0.25.ckpt", 10),
        ("epoch=2-val_loss=0.31-v1.ckpt", 2),
        ("val_loss=0.31.ckpt", None),
        ("checkpoint_epoch_7.pth", 7),
        ("step_7_of_run2", 7),
        ("model_12.pt", 12),
        ("model12.pt", 12),
        ("run2_model_500.pt", 500),
        ("model-2025-01-31.pt", None),
        ("llama-v1-7b.pt", None),
        ("100", 100),
        ("/runs/step-9/other-7", 7),
        ("last.ckpt", None),
        ("release", None),
    ],
)
def test_the_step_in_a_name_else_its_epoch_else_its_only_number(name: str, step: int | None) -> None:
    assert step_of(name) == step


@pytest.mark.parametrize(
    "name", ["last.ckpt", "last-v1.ckpt", "last", "latest.pth", "checkpoint_last.pt", "gpt--step=5-last"]
)
def test_names_of_the_one_to_resume_from(name: str) -> None:
    assert is_last(name)
    assert is_attempt(name)
    assert is_attempt(f"/elsewhere/{name}")


@pytest.mark.parametrize("name", ["blast.pt", "last_layer.pt", "best.ckpt", "latest_universal"])
def test_other_names_are_not(name: str) -> None:
    assert not is_last(name)


@pytest.mark.parametrize(
    "name", ["step-200", "iter_0000100", "checkpoint-1000", "epoch=3.ckpt", "17", "model_step_3"]
)
def test_names_of_a_checkpoint(name: str) -> None:
    assert is_attempt(name)
    assert not is_part(name)


@pytest.mark.parametrize("name", ["logs", "version_0", "eval_step_100", "wandb", "model_12.pt", "stepwise"])
def test_names_that_say_nothing(name: str) -> None:
    assert not is_attempt(name)


@pytest.mark.parametrize(
    "name",
    [
        *("pytorch_model_fsdp_0", "optimizer_0", "optimizer.pt", "model.safetensors", "pytorch_model.bin"),
        *(
            "mp_rank_00_001",
            "rank_3.pt",
            "model_world_size_8_rank_3.pt",
            "consolidated.00.pth",
            "rng_state_0.pth",
        ),
    ],
)
def test_parts_of_one_checkpoint(name: str) -> None:
    assert is_part(name)
    assert not is_attempt(name)


def test_a_name_that_says_unfinished() -> None:
    assert is_unfinished("step_30.tmp")
    assert is_unfinished("tmp-checkpoint-30")
    assert is_attempt("tmp-checkpoint-30")
    assert not is_unfinished("step_30")


def test_names_of_one_job_have_one_shape() -> None:
    assert shape("llama-step-100") == shape("llama-step-9") != shape("logs-9")
