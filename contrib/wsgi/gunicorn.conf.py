# SPDX-License-Identifier: Apache-2.0
"""berth under gunicorn: `gunicorn --config gunicorn.conf.py`."""

wsgi_app = "berth.wsgi:application"
bind = "127.0.0.1:8778"

workers = 2
worker_class = "gthread"
threads = 16
# Seconds that a connection may be idle.
keepalive = 30
# After SIGTERM, seconds to answer the requests in flight.
graceful_timeout = 60
# For long queries: gunicorn's maximum.
limit_request_line = 8190
