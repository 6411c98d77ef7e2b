#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Make a virtual environment at $1 with $PYTHON, on a machine where nothing is prepared.
# Debian keeps the half of Python that this needs in a package of its own: root gets it installed,
# anybody else is told in one line what to ask for.
set -euo pipefail

python="${PYTHON:-python3}"
venv="$1"

give_up() {
    echo "berth: $1" >&2
    exit 1
}

command -v "$python" >/dev/null || give_up "Python 3.11 or newer is missing: install python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    give_up "Python 3.11 or newer is needed, $("$python" --version 2>&1) found: make PYTHON=python3.11 ..."

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        give_up "Python's venv module is missing: on Debian and Ubuntu, sudo apt-get install -y python3-venv"
    fi
    echo "Installing python3-venv"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y python3-venv; } >/dev/null ||
        give_up "apt-get install -y python3-venv failed"
fi

# A run that was cut short leaves half an environment behind.
rm -rf "$venv"
"$python" -m venv "$venv"
