# SPDX-License-Identifier: Apache-2.0
"""The log of a whole process, as its configuration says."""

import logging

from oslo_config import cfg
from oslo_log import log

import berth
from berth.api import log_format
from berth.config import ConfigurationError


def set_up_logging(conf: cfg.ConfigOpts) -> None:
    """Start logging as `conf` says, for the whole process; where it says nothing, to stderr.

    Raises:
        ConfigurationError: a log file cannot be written, or log_config_append cannot be used.
    """
    if not (conf.log_file or conf.log_dir or conf.use_journal):
        # COMPAT spec/operations.md 3.2: newer releases of oslo.log would take stdout.
        conf.set_default("use_stderr", True)
    try:
        log.setup(conf, "berth", berth.__version__)
        log_format.adopt(logging.getLogger().handlers)
    except log.LogConfigError as error:
        raise ConfigurationError(f"{error}") from error
    except (OSError, TypeError) as error:  # the latter from a facility of syslog that there is not
        raise ConfigurationError(f"cannot write the log as configured: {error}") from error
