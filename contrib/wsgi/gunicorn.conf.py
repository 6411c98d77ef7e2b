# SPDX-License-Identifier: Apache-2.0
"""berth under gunicorn: `gunicorn --config gunicorn.conf.py`."""

wsgi_app = "berth.wsgi:application"
bind = "127.0.0.1:8778"

workers = 2
worker_class = "gthread"
threads = 16
# How long a connection may be idle.
keepalive = 30
# SIGTERM ends it when the requests in flight are answered, or after so many seconds.
graceful_timeout = 60
# Long queries: the most that gunicorn can be told.
limit_request_line = 8190
