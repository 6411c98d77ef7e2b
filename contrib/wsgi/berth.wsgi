# SPDX-License-Identifier: Apache-2.0
# The file that Apache runs; it is the same for every version of Python.
from berth.wsgi import application  # noqa: F401
