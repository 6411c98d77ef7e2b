#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Install libvirt's Python binding into a virtual environment, where it can be built: it needs
# libvirt's headers and pkg-config (tools/engines.sh). Without it the driver `libvirt` is tested on
# recorded documents alone.
set -euo pipefail
python="$1"

if "$python" -c "import libvirt" 2>/dev/null; then
    exit 0
fi
if ! pkg-config --exists libvirt 2>/dev/null; then
    echo "berth: libvirt's headers are missing: its driver is tested on recorded documents alone" >&2
    exit 0
fi
"$python" -m pip install --quiet --disable-pip-version-check -c constraints.txt libvirt-python ||
    echo "berth: libvirt-python cannot be built here: tested on recorded documents alone" >&2
