# SPDX-License-Identifier: Apache-2.0
"""The WSGI application, for any WSGI server: `berth.wsgi:application`.

    gunicorn --workers 2 --threads 8 berth.wsgi:application

The configuration is that of the service (OS_PLACEMENT_CONFIG_DIR, else the usual places; see
`berth.config.load_for_wsgi`), and it must name a database: the embedded defaults are for `berth
serve`, which knows what address it binds to and so can refuse to be open to everybody.

`application` is built when it is first asked for, once per process: importing this module costs
nothing, and a server that loads the module before it forks gets one application in each child as
long as it looks the name up there (gunicorn and uWSGI do, unless told to preload).
"""

import functools
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth import config, deploy

if TYPE_CHECKING:
    application: WSGIApplication


@functools.cache
def init_application() -> WSGIApplication:
    """Read the configuration, set up logging and build the application; once per process.

    Raises:
        BerthError: the configuration or the database is not fit to serve from.
    """
    conf = config.load_for_wsgi()
    deploy.set_up_logging(conf)
    return deploy.load_application(conf)


def for_granian(
    application: WSGIApplication, environment: Mapping[str, str] = os.environ
) -> WSGIApplication:
    """Wrap an application so that Granian calls it the way other WSGI servers do.

    Granian lays each request over a copy of the process's environment, where HTTP_PROXY and its
    like then pass for request headers, and it gives a request without a Host header an empty one
    (in other servers it has none, so that SERVER_NAME is used for links).
    """
    leaked = {
        name: value
        for name, value in environment.items()
        if name.startswith("HTTP_") or name in ("CONTENT_TYPE", "CONTENT_LENGTH")
    }

    def faithful(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not environ["HTTP_HOST"]:
            del environ["HTTP_HOST"]
        for name, value in leaked.items():
            if environ.get(name) == value:
                del environ[name]
        return application(environ, start_response)

    return faithful


def __getattr__(name: str) -> object:
    if name == "application":
        return init_application()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
