# SPDX-License-Identifier: Apache-2.0
"""The former name of `berth.hosts`, which works for one more release.

Each of its modules is the module of the same name below `berth.hosts`.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_FORMER = f"{__name__}."

warnings.warn(
    "berth.compute is called berth.hosts now, and this name will go with the next release",
    DeprecationWarning,
    stacklevel=2,
)


class _Renamed(MetaPathFinder, Loader):
    """Finds the modules below the former name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname.startswith(_FORMER) else None

    def exec_module(self, module: ModuleType) -> None:
        # The importer gets whatever is in `sys.modules` afterwards.
        name = module.__name__
        sys.modules[name] = importlib.import_module(f"berth.hosts.{name.removeprefix(_FORMER)}")


sys.meta_path.insert(0, _Renamed())
