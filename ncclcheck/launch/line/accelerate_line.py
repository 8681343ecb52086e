"""`accelerate launch`: Hugging Face Accelerate, which starts torchrun or DeepSpeed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ncclcheck.launch.line.deepspeed_line import read_deepspeed
from ncclcheck.launch.line.launch_line import CommandLine, LaunchLine, ReadFile, Script
from ncclcheck.launch.line.option_words import Option, both_spellings, take, whole_number
from ncclcheck.launch.line.torchrun_line import STATIC_PORT, line_of
from ncclcheck.model.errors import UsageError

# accelerate/commands/launch.py 1.15, launch_command_parser: these are flags, every other option takes one value.
_FLAGS = (
    "--quiet", "--cpu", "--multi-gpu", "--tpu", "--enable-cpu-affinity", "--dynamo-use-fullgraph",
    "--dynamo-use-dynamic", "--dynamo-use-regional-compilation", "--use-deepspeed", "--use-fsdp",
    "--use-parallelism-config", "--use-megatron-lm", "--same-network", "--no-python", "--tpu-cluster",
    "--no-tpu-cluster", "--tpu-use-sudo", "--downcast-bf16", "--fp8-use-autocast-during-eval", "--debug",
)  # fmt: skip
FLAGS = (
    Option(("--module", "-m"), is_flag=True),
    Option(("-q",), is_flag=True),
    *(Option(both_spellings(name), is_flag=True) for name in _FLAGS),
)
_CONFIG_FILES = ("default_config.yaml", "default_config.json")
# Their options have defaults that are not None, so accelerate never takes what a config file says of them
# (commands/launch.py, _validate_launch_command: only where the option is None).
_NOT_FROM_CONFIG = frozenset({"rdzv_backend", "rdzv_conf"})
_NOT_SSH = ("standard", "nossh")


def read_accelerate(
    words: Sequence[str], environ: Mapping[str, str], read: ReadFile, program: str = "accelerate launch"
) -> CommandLine | None:
    """Return the job of `accelerate launch WORDS`; None where the words only ask for help. Raises UsageError.

    `read` gives the text of a file, or None where there is none: the values of `--config_file`, or of the default one,
    count where the command line is silent (accelerate/commands/launch.py, _validate_launch_command).
    """
    taken = take(program, (*FLAGS, *_valued(words)), words, abbreviated=False)
    if taken is None:
        return None
    flags = {name[2:].replace("-", "_"): value for name, value in taken.values.items()}
    config = _configuration(program, flags, environ, read)
    counting = {name: value for name, value in config.items() if name not in _NOT_FROM_CONFIG}
    settings = {**{name: str(value) for name, value in counting.items() if value is not None}, **flags}
    script = Script(taken.script, "module" in flags)
    machines = whole_number(program, "--num_machines", settings.get("num_machines", "1"), 1)
    own_config = config.get("deepspeed_config")
    deepspeed = {**(own_config if isinstance(own_config, dict) else {}), **flags}
    multinode_launcher = str(deepspeed.get("deepspeed_multinode_launcher") or "pdsh")
    if machines > 1 and _uses_deepspeed(flags, config) and multinode_launcher != "standard":
        return _by_deepspeed(settings, deepspeed, taken.script, environ, read)
    return CommandLine(_line(program, settings, machines), script)


def _valued(words: Sequence[str]) -> list[Option]:
    known = {name for option in FLAGS for name in option.names} | {"--help", "-h"}
    names = {
        word.partition("=")[0].replace("_", "-") for word in words if word.startswith("--") and word != "--"
    }
    long = [Option(both_spellings(name)) for name in sorted(names) if name not in known]
    return [*long, Option(("-t",))]


def _uses_deepspeed(flags: Mapping[str, str], config: Mapping[str, Any]) -> bool:
    names_a_kind = any(
        name in flags for name in ("multi_gpu", "tpu", "use_deepspeed", "use_fsdp", "use_megatron_lm")
    )
    return "use_deepspeed" in flags if names_a_kind else config.get("distributed_type") == "DEEPSPEED"


def _configuration(
    program: str, flags: Mapping[str, str], environ: Mapping[str, str], read: ReadFile
) -> dict[str, Any]:
    named = flags.get("config_file")
    if named is None and "cpu" in flags:
        return {}
    home = environ.get("HF_HOME") or f"{environ.get('XDG_CACHE_HOME') or '~/.cache'}/huggingface"
    for name in [named] if named is not None else [f"{home}/accelerate/{file}" for file in _CONFIG_FILES]:
        text = read(name)
        if text is not None:
            return _parsed(program, name, text)
    if named is not None:
        raise UsageError(f"{program} --config_file {named}: there is no such file")
    return {}


def _parsed(program: str, name: str, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text) if name.endswith(".json") else _yaml(program, name, text)
    except ValueError as error:
        raise UsageError(f"{program}: the config file {name} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise UsageError(f"{program}: the config file {name} is no list of settings")
    return {str(key): value for key, value in content.items()}


def _yaml(program: str, name: str, text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise UsageError(
            f"{program}: the config file {name} is YAML, and PyYAML, which accelerate brings, cannot be imported here: "
            "run ncclcheck with the Python that has accelerate, or name --num_machines, --machine_rank, "
            "--main_process_ip and --num_processes in the command"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def _line(program: str, settings: Mapping[str, str], machines: int) -> LaunchLine:
    """Return what accelerate hands to torchrun (accelerate/utils/launch.py, prepare_multi_gpu_env)."""
    total = settings.get("num_processes")
    values = {"--nnodes": str(machines), "--nproc-per-node": "auto"}
    if total is not None and total != "-1":
        processes = whole_number(program, "--num_processes", total, 1)
        values["--nproc-per-node"] = str(max(processes // machines, 1))
    if machines == 1:
        return line_of(program, values)
    for name in ("machine_rank", "main_process_ip"):
        if name not in settings:
            raise UsageError(f"{program} --num_machines {machines} needs --{name}: give it on every node")
    port = settings.get("main_process_port", str(STATIC_PORT))
    values["--node-rank"] = settings["machine_rank"]
    values["--rdzv-endpoint"] = f"{settings['main_process_ip']}:{port}"
    values |= {
        f"--{name.replace('_', '-')}": settings[name]
        for name in ("rdzv_backend", "rdzv_conf")
        if name in settings
    }
    return line_of(program, values)


def _by_deepspeed(
    settings: Mapping[str, str],
    deepspeed: Mapping[str, Any],
    script: str,
    environ: Mapping[str, str],
    read: ReadFile,
) -> CommandLine | None:
    """Return what accelerate gives DeepSpeed's launcher (accelerate/utils/launch.py, prepare_deepspeed_cmd_env)."""
    words = ["--hostfile", str(deepspeed.get("deepspeed_hostfile"))]
    if deepspeed.get("deepspeed_multinode_launcher") == "nossh":
        words += ["--no_ssh", "--node_rank", settings.get("machine_rank", "0")]
    for ours, theirs in (("exclusion", "--exclude"), ("inclusion", "--include")):
        if deepspeed.get(f"deepspeed_{ours}_filter"):
            words += [theirs, str(deepspeed[f"deepspeed_{ours}_filter"])]
    if "main_process_ip" in settings:
        words += ["--master_addr", settings["main_process_ip"]]
    words += ["--master_port", settings.get("main_process_port", str(STATIC_PORT)), script]
    return read_deepspeed(words, environ, read, "accelerate launch (deepspeed)")
