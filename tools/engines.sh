#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Install the servers of which the tests start their own (databases, web servers, Prometheus), the
# browser that they drive, Node.js, which checks the page's scripts, and what libvirt's Python binding
# is built from, where one is missing: on Debian and Ubuntu, as root. Installing them starts no
# service. Anybody else is told in one line what to ask for; the tests then say what they leave out.
set -euo pipefail

packages=(postgresql mariadb-server galera-4 rsync lsof apache2 libapache2-mod-wsgi-py3 nginx-light prometheus
    libvirt-dev pkg-config chromium chromium-driver)
policy=/usr/sbin/policy-rc.d

# The tests look in the same places (tests/servers/binaries.py).
has() {
    PATH="$PATH:/usr/sbin" command -v "$1" >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/$1" >/dev/null
}

# A Node.js from elsewhere brings an npm of its own, with which Debian's cannot be installed.
if ! has node || ! has npm; then
    packages+=(nodejs npm)
fi

if has postgres && has initdb && has mariadbd && has mariadb-install-db && has wsrep_sst_rsync &&
    has rsync && [ -e /usr/lib/galera/libgalera_smm.so ] &&
    has apache2 && [ -e /usr/lib/apache2/modules/mod_wsgi.so ] && has nginx &&
    has prometheus && has promtool && has chromium && has chromedriver && has node && has npm &&
    pkg-config --exists libvirt 2>/dev/null; then
    exit 0
fi

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "berth: servers or programs that the tests use, or libvirt-dev, are missing: on Debian and Ubuntu, sudo apt-get install -y ${packages[*]}" >&2
    exit 0
fi

# Packages start their services unless this file forbids it; the tests need the programs alone.
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

echo "Installing ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
said="$({ apt-get update -qq && apt-get install -qq -y --no-install-recommends "${packages[@]}"; } 2>&1)" || {
    printf '%s\n' "$said" >&2
    echo "berth: apt-get install -y ${packages[*]} failed" >&2
    exit 1
}
