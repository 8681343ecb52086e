"""Takes from an environment what explains how a job runs, and nothing that could be a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ncclcheck.facts.section import Section
from ncclcheck.facts.text_files import readable
from ncclcheck.facts.tree import Folder
from ncclcheck.launch.launcher_registry import is_place_variable
from ncclcheck.model.fact import NOT_IN_A_TREE, Fact, Missing

# What every job may set. What launchers set is in their own records (ncclcheck/launch/launchers).
_PREFIXES = (
    "NCCL_", "TORCH_", "PYTORCH_", "GLOO_", "UCX_", "FI_", "OFI_NCCL_", "SHARP_", "RDMAV_", "MLX5_", "CUDA_", "NVIDIA_",
    "OMP_", "MASTER_",
)  # fmt: skip
_NAMES = frozenset(
    {
        "USE_LIBUV", "TP_SOCKET_IFNAME", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX",
        "ENABLE_NCCL_HEALTH_CHECK",
    }
)  # fmt: skip
# Only whether they are set says something about a node; what they hold is the user's own.
_ONLY_WHETHER_SET = frozenset({"HOME", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"})
SET = "(set)"
REDACTED = "(redacted)"

# Slips of names that matter: in small letters, with a dash or a blank, or NCLL for NCCL. Nobody reads them.
_SLIP = re.compile(
    r"\s*(TORCH[_.-])?(NCCL|NCLL|NCC|NCL|NCCLL|NNCL|NCCCL|NCCK|CNCL|NNCCL)[_. -]|\s*(GLOO|TP)_SOCKET_",
    re.IGNORECASE,
)

_SECRET_PARTS = ("SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL")
# fmt: off
_SECRET_WORDS = frozenset(
    {
        "PASS", "PW", "PWD", "PIN", "OTP", "AUTH", "OAUTH", "COOKIE", "COOKIES", "JWT", "BEARER", "CRED", "CREDS",
        "SAS", "HMAC", "DSN", "PRIVATE", "SIGNATURE", "KEYFILE", "KEYTAB", "KEYRING", "LICENSE", "SESSION",
    }
)
# fmt: on
_SECRET_LAST_WORDS = frozenset({"PAT"})  # a personal access token; NCCL_PAT_ENABLE is an algorithm
_SECRET_ENDINGS = ("TOKEN", "TOKENS", "KEY", "KEYS")
# Partition and memory keys: numbers, no secrets.
_RDMA_KEYS = frozenset({"PKEY", "QKEY", "RKEY", "LKEY", "MKEY"})
_LOGIN_IN_URL = re.compile(r"(:|^)//[^/\s@]*@")
_SECRET_IN_VALUE = re.compile(
    r"(token|secret|passw(or)?d|passphrase|credentials?|api[-_]?key|access[-_]?key|authorization)\s*[=:]\s*\S"
    r"|\b(pwd?|pass|sig|signature|auth)\s*[=:]\s*\S|--?(token|secret|passw(or)?d|passphrase|api-?key)\s+\S"
    r"|\bpassphrase\s+\S|-----BEGIN\s"
    r"|\b(bearer\s+\S|gh[pousr]_\w{16}|github_pat_|hf_\w{16}|A[KS]IA[0-9A-Z]{12}|xox[abpr]-|eyJ[\w-]{10,}\.)"
    r"|\b(sk-[\w-]{16}|glpat-[\w-]{16}|AIza[\w-]{16}|npm_\w{16}|nvapi-[\w-]{16}|pypi-[\w-]{16}|dckr_pat_)"
    r"|(?<![^\s,;=])[\w.+-]+:[^\s/@:]+@[\w.-]",  # name:password@host; paths of package managers have a / in there
    re.IGNORECASE,
)
# What a machine made up: a hash or key of 32 digits and more, alone. Paths, lists and UUIDs do not look so.
_MADE_UP = re.compile(r"[0-9a-fA-F]{32,}|(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?!/)[A-Za-z0-9+/=_]{32,}")


def read_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the allow-list, by name.

    A variable whose name sounds like a secret is not there at all; a value that looks like one is "(redacted)"; of
    HOME and the proxies only "(set)" remains.
    """
    variables = {}
    for name in sorted(environ):
        if is_secret_name(name):
            continue
        if name.upper() in _ONLY_WHETHER_SET:
            variables[name] = SET
        elif _explains_a_job(name):
            variables[readable(name)] = without_secrets(environ[name])
    return variables


def _explains_a_job(name: str) -> bool:
    is_known = name in _NAMES or name.startswith(_PREFIXES) or is_place_variable(name)
    return is_known or _SLIP.match(name) is not None


def is_secret_name(name: str) -> bool:
    """Return True for TORCH_API_TOKEN and the like; not for NCCL_IB_PKEY, which is a partition of the fabric."""
    upper = name.upper()
    words = upper.split("_")
    return (
        any(part in upper for part in _SECRET_PARTS)
        or any(word in _SECRET_WORDS for word in words)
        or words[-1] in _SECRET_LAST_WORDS
        or any(
            word.rstrip("0123456789").endswith(_SECRET_ENDINGS) and word not in _RDMA_KEYS for word in words
        )
    )


def without_secrets(value: str) -> str:
    """Return the value itself, or "(redacted)" when it carries a login or something else that looks like a secret."""
    if _LOGIN_IN_URL.search(value) or _SECRET_IN_VALUE.search(value) or _MADE_UP.fullmatch(value):
        return REDACTED
    return readable(value)


def _read_tree(here: Folder) -> Fact[dict[str, str]]:
    """Return the variables that a recording kept, as /proc/self/environ has them: ended by a zero byte each."""
    text = here.text("proc/self/environ")
    if isinstance(text, Missing):
        return NOT_IN_A_TREE
    return read_environment(dict(item.partition("=")[::2] for item in text.split("\0") if "=" in item))


ENVIRONMENT = Section(
    {"environment": "the job's environment: the variables of the allow-list only (see above)"},
    read=lambda request: read_environment(request.environment),
    read_tree=_read_tree,
)
