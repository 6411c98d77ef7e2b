#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Write constraints.txt: the versions of everything that berth and its extras pull in, and Keystone
# with what that needs (tests/servers/keystone.py), found by installing them into an empty virtual
# environment. Group by group, so that a reader sees what a host gets (the first group), what a
# service gets (the second), and what only developers do.
#
# Run it with the oldest Python that berth is to work on, Debian 12's 3.11.2: some libraries want a
# later patch release, and are then found in a version that does not.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
bash tools/virtualenv.sh "$scratch/venv"

install() {
    "$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

# The names and versions installed now that earlier groups did not list.
list_new() {
    # With --all, as setuptools builds berth; pip itself is the virtual environment's.
    "$scratch/venv/bin/python" -m pip freeze --all --exclude-editable | grep -v '^pip==' |
        sort --ignore-case >"$scratch/now"
    touch "$scratch/before"
    grep -vxFf "$scratch/before" "$scratch/now" || true
    cp "$scratch/now" "$scratch/before"
}

{
    echo "# Written by \`make constraints\`: the versions that this release is tested with."
    install -e .
    printf '\n# berthd\n'
    list_new
    install -e '.[service]'
    printf '\n# berthd[service]\n'
    list_new
    install -e '.[dev]'
    printf '\n# berthd[dev]\n'
    list_new
    install -e '.[docs]'
    printf '\n# berthd[docs]\n'
    list_new
    install keystone
    printf '\n# keystone, which the tests start\n'
    list_new
    install -e '.[libvirt]'
    printf '\n# berthd[libvirt]\n'
    list_new
} >"$scratch/constraints.txt"
mv "$scratch/constraints.txt" constraints.txt
