# SPDX-License-Identifier: Apache-2.0
"""The page for jobs on GPU hosts, with 50 hosts instead of four, and a thief of a host's token."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.how_to import follow
from tests.docs.pages import DOCS, blocks
from tests.effort import is_full

PAGE = DOCS / "how-to" / "gpu-jobs.md"

#: Blocks of the page: the service and its tokens, then the hosts and their agents.
SETUP = 2

#: For more than 100 commands, each of which starts Python.
_PATIENCE_S = 400

WORK = """
```sh
export OS_TOKEN="$(cat admin.token)"
berth place VCPU=16 --group '_GPU0 PGPU=1' --group '_GPU1 PGPU=1' --order pack \\
  $(seq -f '--for alice/job-%g' 49)
free=$(comm -23 hosts <(berth who --project alice | grep -o 'gpu[0-9][0-9]' | sort -u))
echo "free: $free"
berth move alice/job-18 --to $free
berth who $free
others=$(berth who gpu40; berth who gpu41)
foreign=$(echo "$others" | grep -o 'alice/job-[0-9]*' | grep -v -x alice/job-18 | head -1)
```

```text
free: gpu...
moved alice/job-18 from gpu... to gpu...: ...
alice/job-18...
1 consumer
```

```sh
export OS_TOKEN="$(cat gpu02.token)"
berth provider delete gpu40 --tree || echo refused
berth release "$foreign" || echo refused
```

```text
...bound to the host gpu02...
refused
...bound to the host gpu02...
refused
```

```sh
export OS_TOKEN="$(cat admin.token)"
berth release $(seq -f 'alice/job-%g' 49)
berth who --project alice
```

```text
released alice/job-1, ..., alice/job-49
0 consumers
```
"""


def test_fifty_hosts_with_a_token_each(tmp_path: Path) -> None:
    """Jobs with groups are placed, moved and released; one host's token does nothing elsewhere."""
    if not is_full():
        pytest.skip("it starts more than 100 commands: `make proof` does")
    setup = [block.text for block in blocks(PAGE.read_text(), "sh")][:SETUP]
    page = tmp_path / "fleet.md"
    fifty = "".join(f"```sh\n{text}\n```\n\n" for text in setup).replace("seq 4)", "seq 50)")
    page.write_text(fifty + WORK)
    home = tmp_path / "home"
    home.mkdir()
    follow(page, home, patience_s=_PATIENCE_S)
