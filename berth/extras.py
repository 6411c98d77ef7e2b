# SPDX-License-Identifier: Apache-2.0
"""The libraries of the extra `service`, which `pip install berthd` does not install.

The command line, the report client and the host side (`berth.hosts`) need a few small libraries.
The service needs the rest, and so does every command that opens its database or reads its
configuration. These libraries import modules that the service seldom uses; what needs the service
is imported without executing them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # At run time it would import what reads resources of packages.
    from importlib.abc import Loader
else:
    Loader = object

#: The packages that only the service imports; the extra `service` of pyproject.toml installs them.
SERVICE_PACKAGES: Final = frozenset(
    {
        *("alembic", "bcrypt", "cryptography", "fastjsonschema", "granian"),
        *("jsonschema", "numpy", "oslo_config", "oslo_context", "oslo_log", "oslo_middleware"),
        *("oslo_policy", "oslo_upgradecheck", "prettytable", "sqlalchemy"),
    }
)


class ServiceNotInstalled(ModuleNotFoundError):
    """A library of the service is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"this needs berth's service, and {package} is not installed: "
            "pip install 'berthd[service]'",
            name=package,
        )


@contextmanager
def needs_service() -> Iterator[None]:
    """Name the extra to install if an import in this block needs a missing library of the service;
    leave the modules of `_SELDOM_USED` until they are used.

    Raises:
        ServiceNotInstalled: instead of ModuleNotFoundError, for the service's libraries only.
    """
    finder = _SeldomUsed()
    sys.meta_path.insert(0, finder)
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in SERVICE_PACKAGES:
            raise
        raise ServiceNotInstalled(package) from error
    finally:
        sys.meta_path.remove(finder)


#: What the libraries import for a log line at level DEBUG, an option of some type, a policy that is
#: read from a file, a migration that is to be written, or a middleware of many.
#: PERF bench.start: executing them takes a sixth of the time until the first answer.
_SELDOM_USED: Final = frozenset(
    {
        *("alembic.autogenerate", "anyio", "dotenv", "jinja2", "logging.config", "mako.exceptions"),
        *("netaddr", "psutil", "rfc3986", "yaml"),
        *("oslo_middleware", "oslo_middleware.basic_auth", "oslo_middleware.tracing"),
        *("oslo_serialization.jsonutils", "oslo_utils.strutils"),
    }
)

#: What `import` itself reads and writes of a module.
_OF_IMPORT: Final = frozenset(
    {"__class__", "__dict__", "__file__", "__loader__", "__name__", "__path__", "__spec__"}
)

#: Held while such a module is executed, and for how long a thread waits for it: the one that holds
#: it may wait for a module that this thread is importing.
_EXECUTING: Final = RLock()
_EXECUTING_S_MAX: Final = 10


class _SeldomUsed:
    """Finds the modules of `_SELDOM_USED`.

    The loader of `importlib.util` that does the same executes a module in one thread while another
    already uses it (CPython 114763), and a package for each of its modules.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in _SELDOM_USED else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Leaving(spec.loader)
        return spec


class _Leaving(Loader):
    """Leaves a module for later, when `loader` will execute it."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None, "importlib has made it of one"
        module.__spec__.loader = module.__loader__ = self._loader
        module.__class__ = _Unused


class _Unused(ModuleType):
    """A module that is executed when somebody uses it."""

    def __getattribute__(self, name: str) -> object:
        if name not in _OF_IMPORT:
            _execute(self, name)
        return ModuleType.__getattribute__(self, name)


def _execute(module: ModuleType, wanted: str) -> None:
    """Execute a module; or, of a package, only the module of a name, if it has one."""
    spec = module.__spec__
    assert spec is not None and spec.loader is not None, "left by `_Leaving`"
    if not _EXECUTING.acquire(timeout=_EXECUTING_S_MAX):
        raise ImportError(f"{spec.name} is executed by a thread that waits for this one")
    try:
        # Another thread has executed it meanwhile, or its own code asks.
        if spec.loader_state is not None:
            return
        below = f"{spec.name}.{wanted}"
        if PathFinder.find_spec(below, spec.submodule_search_locations or ()) is not None:
            import_module(below)
            return
        spec.loader_state = _EXECUTING
        try:
            spec.loader.exec_module(module)
        except BaseException:
            spec.loader_state = None
            raise
        module.__class__ = ModuleType
    finally:
        _EXECUTING.release()
