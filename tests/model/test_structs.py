# SPDX-License-Identifier: Apache-2.0
"""Structs are converted to by many threads at once, the first time as well."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

#: Many structs that were never converted to; eight threads meet at each one's first conversion.
_FIRST_CONVERSIONS: Final = """
import sys
from threading import Barrier, Thread
from typing import Annotated

from msgspec import Meta, Struct, defstruct

from berth.model.structs import converter

THREADS = 8
sys.setswitchinterval(1e-5)


def convert_together(convert):
    def run():
        together.wait()
        for _ in range(20):
            convert({"parts": [{"names": ["a"]}], "by_name": {"b": {}}})

    together = Barrier(THREADS)
    threads = [Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


for number in range(200):
    part = f"Part{number}"
    globals()[part] = defstruct(part, [("names", "list[str] | None", None)], module="__main__")
    members = [
        ("parts", f"Annotated[list[{part}], Meta(max_length=5)]"),
        ("by_name", f"dict[str, {part}]"),
    ]
    convert_together(converter(defstruct(f"Whole{number}", members, module="__main__")))
"""


def test_threads_may_convert_to_a_struct_at_once_for_the_first_time() -> None:
    """A process of its own, because a fault ends it."""
    program = [sys.executable, "-c", _FIRST_CONVERSIONS]
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr or f"ended by signal {-ended.returncode}"
