# SPDX-License-Identifier: Apache-2.0
"""The WSGI application, for gunicorn, uWSGI, mod_wsgi and their like: `berth.wsgi:application`.

    gunicorn --workers 2 --threads 8 berth.wsgi:application

It is built when this module is imported, as those servers expect, and what is wrong with the
configuration or the database stops the server there, before it answers anything. Connections are
opened in each process, so the module may be loaded before a server forks or after.

The configuration is that of the service (OS_PLACEMENT_CONFIG_DIR, else the usual places; see
`berth.config.load_for_wsgi`), and it must name a database: the embedded defaults are for `berth
serve`, which knows what address it binds to and so can refuse to be open to everyone.
"""

import functools
from wsgiref.types import WSGIApplication

from berth.extras import needs_service

with needs_service():
    from berth import config, deploy


@functools.cache
def init_application() -> WSGIApplication:
    """Read the configuration, set up logging and build the application; once per process.

    Raises:
        ConfigurationError: the configuration is missing or wrong.
        BerthError: the database is not fit to serve from.
    """
    conf = config.load_for_wsgi()
    deploy.set_up_logging(conf)
    return deploy.load_application(conf)


application = init_application()
