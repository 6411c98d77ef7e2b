# SPDX-License-Identifier: Apache-2.0
"""`python -m berth.cli`: the `berth` command of this interpreter."""

from berth.cli.main import main

if __name__ == "__main__":
    main()
