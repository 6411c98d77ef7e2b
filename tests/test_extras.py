# SPDX-License-Identifier: Apache-2.0
"""What the libraries of the service import and seldom use is left until somebody uses it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "code",
    [
        # Used by one of several threads, which all get the whole module.
        """
        import yaml
        assert "yaml.loader" not in sys.modules
        with ThreadPoolExecutor() as threads:
            assert [*threads.map(yaml.safe_load, ["1", "2", "3"])] == [1, 2, 3]
        assert "yaml.loader" in sys.modules and type(yaml) is ModuleType
        """,
        # A module of a package does not need the others.
        """
        from oslo_middleware import cors
        assert "oslo_middleware.debug" not in sys.modules
        from oslo_middleware import CORS
        assert "oslo_middleware.debug" in sys.modules and CORS is cors.CORS
        """,
        # Whoever asks for what is not there is told so.
        """
        import netaddr
        assert not hasattr(netaddr, "nonsense") and netaddr.valid_ipv4("127.0.0.1")
        """,
        """
        import berth.cli.serve
        seldom = {"jinja2.lexer", "jsonschema", "opentelemetry.sdk", "rfc3986.api", "yaml.loader"}
        assert not seldom & {*sys.modules}
        assert "sqlalchemy.dialects.postgresql" not in sys.modules
        """,
        # Checks of other packages are there for a rule that has one.
        """
        from berth.api.policy.rules import get_enforcer
        get_enforcer()
        assert "requests" not in sys.modules
        from oslo_policy._external import HttpCheck
        from oslo_policy.policy import RuleDefault
        assert type(RuleDefault("remote", "http://127.0.0.1/").check) is HttpCheck
        """,
    ],
)
def test_what_is_seldom_used_waits_until_it_is(code: str) -> None:
    """In a process of its own, since the tests have imported everything."""
    lines = [line.removeprefix("        ") for line in code.splitlines()]
    imports = [
        "import sys",
        "from concurrent.futures import ThreadPoolExecutor",
        "from types import ModuleType",
        "from berth.extras import needs_service",
        "with needs_service():",
        *(f"    {line}" for line in lines),
    ]
    subprocess.run([sys.executable, "-c", "\n".join(imports)], check=True)
