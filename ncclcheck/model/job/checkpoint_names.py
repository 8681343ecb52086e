"""What the name of a file or folder says: its step, whether it is finished, whether it is a part of a checkpoint."""

from __future__ import annotations

import re

SAVED = (".pt", ".pth", ".bin", ".ckpt", ".safetensors")
_KEY = r"(?:step|iter(?:ation)?|checkpoint|ckpt)"
_STEP = re.compile(rf"{_KEY}[_=-]?(\d{{1,15}})(?!\d|\.\d)", re.ASCII | re.IGNORECASE)
_EPOCH = re.compile(r"ep(?:och)?[_=-]?(\d{1,15})(?!\d|\.\d)", re.ASCII | re.IGNORECASE)
_VERSION = re.compile(r"-v\d+(?=\.|$)", re.ASCII)  # Lightning's second file of the same name
# No steps: val_loss=0.25, 0.25, 2025-01-31, 7b, v2
_NO_STEP = re.compile(
    r"[A-Za-z_]+=[\d.eE+-]+(?=[-_.]|$)|\d+\.\d+|(?:19|20)\d\d[-_]?[01]\d[-_]?[0-3]\d|\d+[A-Za-z]+\d*|\bv\d+",
    re.ASCII,
)
_ALONE = re.compile(r"(?<![A-Za-z\d])(\d{1,15})(?![A-Za-z\d])", re.ASCII)
_NUMBER = re.compile(r"(\d{1,15})", re.ASCII)
_ATTEMPT = re.compile(
    rf"(?:(?:global|checkpoint|ckpt|model)[_-]?)?(?:{_KEY}|ep(?:och)?)s?[_=-]?\d|\d+(?:\.\w+)?$",
    re.ASCII | re.IGNORECASE,
)
# Lightning's last.ckpt and last-v1.ckpt, fairseq's checkpoint_last.pt, NeMo's NAME-last
_LAST = re.compile(
    r"(?:.*[-_.=])?(?:last|latest|newest)(?:-v\d+)?(?:\.[A-Za-z]\w*)?", re.ASCII | re.IGNORECASE
)
# Names under which frameworks write before they rename: Lightning, Trainer (tmp-checkpoint-N), orbax, and users
_UNFINISHED_ENDS = (".tmp", ".temp", ".part", ".partial", ".incomplete", ".writing")
_UNFINISHED_STARTS = ("tmp-", "tmp_", ".tmp")
ASIDE = "incomplete-"  # what the name of a checkpoint begins with that was moved away as advised
_BESIDE = ("optimizer", "scheduler", "rng_state", "scaler", "training_args", "random_states")
# Parts of one checkpoint that several frameworks keep in folders or files of their own. Accelerate numbers them.
_PART = re.compile(
    r"(?:pytorch_model(?:_fsdp)?|optimizer|optim|opt|scheduler|lr_scheduler|sampler|scaler|dl_state_dict|"
    r"dataloader|custom_checkpoint|random_states|rng(?:_states?)?|rng_state|adapter_model)(?:_\d+)?|"
    r"model|weights|module|adapter|ema|actor|critic|context|train_state|extra_state|training_args|common|"
    r"mp_rank_\d+(?:_\d+)*|(?:pytorch_)?model-\d+-of-\d+|consolidated(?:[._]\d+)?",
    re.ASCII,
)
RANK = re.compile(r"(?P<before>(?:.*[-_.])?rank[_-]?)(?P<number>\d{1,9})(?P<after>(?:\D[^/]*)?)", re.ASCII)


def step_of(name: str) -> int | None:
    """Return the number of the step in a checkpoint's name, else of the epoch, else its only number; else None.

    `global_step100`, `epoch=3-step=1000.ckpt`, `epoch=10-val_loss=0.25.ckpt`, `model_12.pt`. Of several numbers nobody
    knows which one counts: then time decides.
    """
    plain = _VERSION.sub("", _last(name))
    for pattern in (_STEP, _EPOCH):
        if found := pattern.findall(plain):
            return int(found[-1])
    stem = _stem(plain)
    rest = _NO_STEP.sub(" ", stem)
    for pattern in (_ALONE, _NUMBER):
        found = pattern.findall(rest)
        if len(found) == 1:
            return int(found[0])
    return None


def is_last(name: str) -> bool:
    """Return whether the name says that a job resumes from it, whatever others there are."""
    return _LAST.fullmatch(_last(name)) is not None


def is_attempt(name: str) -> bool:
    """Return whether the name alone says that somebody began to write a checkpoint there."""
    return (
        is_last(name)
        or _ATTEMPT.match(finished(_last(name)).removeprefix("tmp-").removeprefix("tmp_")) is not None
    )


def is_part(name: str) -> bool:
    """Return whether it is a part of a checkpoint that the folder around it is."""
    if is_attempt(name):
        return False
    return _PART.fullmatch(_stem(name)) is not None or (
        name.endswith(SAVED) and RANK.fullmatch(name) is not None
    )


def is_beside_weights(name: str) -> bool:
    """Return whether it is state that goes with weights, but no weights."""
    return _last(name).startswith(_BESIDE)


def is_aside(name: str) -> bool:
    """Return whether somebody moved it away, as this program advises."""
    return name.startswith(ASIDE)


def finished(name: str) -> str:
    """Return the name without the ending under which it is being written."""
    return next((name[: -len(end)] for end in _UNFINISHED_ENDS if name.endswith(end)), name)


def is_unfinished(name: str) -> bool:
    """Return whether the name says that the writing has not ended."""
    return finished(name) != name or name.startswith(_UNFINISHED_STARTS)


def shape(name: str) -> str:
    """Return the name with all numbers alike: checkpoints of one job differ in nothing else."""
    return _NUMBER.sub("0", name)


def _last(name: str) -> str:
    """Return the last part of a path, which is what a checkpoint elsewhere is called."""
    return name.rpartition("/")[2]


def _stem(name: str) -> str:
    return next((name[: -len(end)] for end in SAVED if name.endswith(end)), name)
