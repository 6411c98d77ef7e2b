#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Install berth and what it needs into the virtual environment of $1, and say how far that is:
#
#     tools/install.sh .venv/bin/python -e '.[dev,docs]'
#
# One line that is written over on a terminal, a line now and then elsewhere. PIP_CONSTRAINT names
# the versions. pip's own output is some hundred lines; its errors are shown as they are.
set -euo pipefail

python="$1"
shift
every=15
[ ! -t 1 ] || every=0

echo "Installing berth into ${python%/bin/python}; the first time takes a minute or two"
# An environment of an older tree has the distribution under its old name, and both own the command.
if "$python" -m pip show --quiet berth 2>/dev/null; then
    "$python" -m pip uninstall --quiet --yes berth
fi
"$python" -m pip install --disable-pip-version-check --progress-bar off "$@" |
    awk -v every="$every" '
        function say(text) {
            if (every) printf "  %s\n", text
            else printf "\r\033[K  %s", text
            fflush()
        }
        /^Collecting / {
            found++
            if (!every || found % every == 0) say(found " packages found, the last is " $2)
        }
        /^ +Downloading .* \([0-9.]+ MB\)/ && !every { say(found " packages found, downloading " $2) }
        /^Installing collected packages/ { say("installing " NF - 3 " packages") }
        END { if (!every) printf "\r\033[K" }
    '
echo "Installed in $SECONDS seconds"
