# Sourced by scripts/run and scripts/test: `prepare EXTRA` makes the environment of this checkout, quietly if it is there.
# Everything it says goes to standard error. Afterwards $venv/bin/python and $venv/bin/ncclcheck are there.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv="$root/.venv"

say() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
    say "$*"
    exit 2
}

# prepare EXTRA: "" for the tool alone, "dev" for its tests as well.
prepare() {
    installed "$1" && return
    # One at a time. The lock is on this file itself, so that nothing is left lying about.
    exec 9<"${BASH_SOURCE[0]}"
    if command -v flock >/dev/null && ! flock -n 9; then
        say "waiting for another first use of $venv to finish"
        flock 9
    fi
    installed "$1" || install "$1"
    exec 9<&-
}

# What an environment is good for: this place (its scripts have its path in them) and these requirements.
stamp() {
    printf '%s %s\n' "$root" "$(cksum <"$root/pyproject.toml")"
}

installed() {
    [ -x "$venv/bin/python" ] && [ "$(cat "$venv/installed-${1:-run}" 2>/dev/null)" = "$(stamp)" ] &&
        "$venv/bin/python" -c '' 2>/dev/null
}

install() {
    local python=${PYTHON:-python3} extra=${1:+[$1]}
    command -v "$python" >/dev/null || die "$python not found: ncclcheck needs Python 3.10 or newer (PYTHON=/path/to/python3 names another)"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        die "$("$python" --version 2>&1) at $(command -v "$python") is too old: ncclcheck needs Python 3.10 or newer (PYTHON=/path/to/python3 names another)"
    if [ "$(cat "$venv/made-for" 2>/dev/null)" = "$root" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        say "bringing the Python environment $venv up to date"
    else
        say "making the Python environment $venv (once; it needs the network and a few minutes)"
        make_venv "$python" >&2
        printf '%s\n' "$root" >"$venv/made-for"
    fi
    # The version that ncclcheck is tested with, first: nothing that is installed later may choose another.
    # Of its thousands of modules only those are compiled that are used: all of them take a slow machine half a minute.
    pip_install --no-compile "torch==2.13.0"
    env -u PYTHONDONTWRITEBYTECODE "$venv/bin/python" -c 'import torch.distributed.checkpoint' >&2 || die "torch cannot be imported"
    pip_install -e "$root$extra"
    stamp >"$venv/installed-run"
    [ -z "$1" ] || stamp >"$venv/installed-$1"
}

# A virtual environment with pip in it. Debian keeps `ensurepip` in a package of its own (python3-venv): without it,
# the pip that is there puts one into the environment.
make_venv() {
    local python=$1
    if "$python" -c 'import ensurepip' 2>/dev/null; then
        "$python" -m venv --clear "$venv" || die "'$python -m venv $venv' failed"
        return
    fi
    "$python" -m pip --version >/dev/null 2>&1 ||
        die "$python has neither pip nor ensurepip: install one of them (Debian: apt-get install python3-venv)"
    "$python" -m venv --clear --without-pip "$venv" ||
        die "'$python -m venv' failed: install it (Debian: apt-get install python3-venv)"
    "$python" -m pip install --quiet --target "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" pip ||
        die "pip could not be installed into $venv"
}

pip_install() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >&2 ||
        die "'pip install $*' failed: its own words are above; run the command again when that is fixed"
}
