# SPDX-License-Identifier: Apache-2.0
"""The libraries of the extra `service`, which `pip install berthd` does not install.

The command line, the report client and the host side (`berth.hosts`) need a few small libraries.
The service needs the rest, and so does every command that opens its database or reads its
configuration.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

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
    """Name the extra to install if an import in this block needs a missing library of the service.

    Raises:
        ServiceNotInstalled: instead of ModuleNotFoundError, for the service's libraries only.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in SERVICE_PACKAGES:
            raise
        raise ServiceNotInstalled(package) from error
