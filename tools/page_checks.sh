#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Check the operator's page (berth/web): its types by TypeScript, its style by ESLint. Their packages,
# and axe-core for the browser's tests, are installed into tools/web where package.json changed.
# Without Node.js nothing is checked; that is a failure only where a run must test everything.
set -euo pipefail
cd "$(dirname "$0")/.."

for program in node npm; do
    if ! command -v "$program" >/dev/null; then
        echo "berth: no \`$program\` binary found: the page's scripts are not checked; on Debian and Ubuntu, sudo apt-get install -y nodejs npm" >&2
        [ -z "${BERTH_REQUIRE_ENGINES:-}" ]
        exit
    fi
done

modules=tools/web/node_modules
if [ tools/web/package.json -nt "$modules/.installed" ]; then
    said="$(cd tools/web && npm install --no-save --no-package-lock --no-audit --no-fund 2>&1)" || {
        printf '%s\n' "$said" >&2
        echo "berth: npm could not install the packages of tools/web/package.json" >&2
        exit 1
    }
    touch "$modules/.installed"
fi

status=0
"$modules/.bin/tsc" --project tools/web || status=1
"$modules/.bin/eslint" --max-warnings 0 --config tools/web/eslint.config.js berth/web tools/web/eslint.config.js || status=1
exit "$status"
