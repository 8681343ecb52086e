"""Which lines only a program at work writes."""

from __future__ import annotations

import pytest

from ncclcheck.logs.lines.progress import NO_WORDS, WORDS, WORKS, is_of_tracker, is_progress, kind_of


@pytest.mark.parametrize(
    "line",
    [
        b"step 120 loss 2.07",
        b" iteration       20/  500000 | consumed samples:         2560",
        b"{'loss': 0.0031, 'grad_norm': 0.19, 'epoch': 0.27}",
        b"Epoch 3:  45%|####      | 50/112 [00:41<00:50,  1.21it/s]",
        b"1\timages/sec: 198.9 +/- 0.0 (jitter = 0.0)\t8.168",
        b"     8388608       2097152     float     sum      -1   1881.2    4.46    4.46      0",
        b'INFO:     10.9.0.77:51002 - "POST /v1/completions HTTP/1.1" 200 OK',
        b"|    16GB | 399.38GBps | 213.00GBps |",
        b"[testing] Running with BF16, without top-k (async=False) ... passed",
        b"tokenizer config file saved in out/mlm/tokenizer_config.json",
    ],
)
def test_a_step_a_rate_or_an_answer_shows_work(line: bytes) -> None:
    assert is_progress(line)


@pytest.mark.parametrize(
    "line",
    [
        b"loading the model",
        b"  0%|          | 0/96 [00:00<?, ?it/s]",
        b'INFO:     10.8.0.2:55310 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error',
        b'INFO:     10.9.0.2:40111 - "GET /health HTTP/1.1" 200 OK',
        b"Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s",
        b"step 7 failed: timed out",
        b"(should be > 40 GB/s here)",
        b"/data/step-100/model.bin",
        b"a stack trace of rank 3 was written to /tmp/rank3.trace",
        b"Flight recorder dump saved to /tmp/nccl_trace_rank_3",
        b"step " * 10_000,
    ],
)
def test_words_a_start_or_trouble_show_none(line: bytes) -> None:
    assert not is_progress(line)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"+-----------+------------", NO_WORDS),
        (b"frame #3: c10d::ProcessGroupNCCL::abort()", NO_WORDS),
        (b"loading the model", WORDS),
        (b"step 7 loss 2.5", WORKS),
    ],
)
def test_tables_and_stacks_have_no_words_of_the_program(line: bytes, kind: int) -> None:
    assert kind_of(line) == kind


@pytest.mark.parametrize(
    "line",
    [
        b"wandb: train/loss 0.413",
        b"wandb:     step 3000",
        b"[1,0]<stderr>:wandb: epoch 3",
        b"COMET INFO:     loss [50]    : (0.413, 0.913)",
        "\N{RUNNER} View run elk-12 at: http://mlflow/#/runs/0b6c".encode(),
    ],
)
def test_what_a_tracker_tells_is_no_work(line: bytes) -> None:
    assert is_of_tracker(line)
    assert kind_of(line) == WORDS


@pytest.mark.parametrize("line", [b"loss 0.413", b"step 3 logged to wandb: loss 0.4", b"comet: step 3"])
def test_what_a_program_tells_is_not_the_trackers(line: bytes) -> None:
    assert kind_of(line) == (WORDS if is_of_tracker(line) else WORKS)
