# SPDX-License-Identifier: Apache-2.0
"""`berth agent sample`: a configuration to begin with."""

from typing import Final

import click

SAMPLE: Final = """\
# What `berth agent run` reports, and to whom: /etc/berth/agent.yaml.
# What stands after a # is what holds where nothing is said, or an example.
# `berth agent show` shows what would be reported; it needs no service.

service:
  url: http://127.0.0.1:8778
  # On the service's host, after umask 077:
  # berth token create --user hosts --role service > agent.token
  token_file: /etc/berth/agent.token
  # With Keystone, in the place of these two:
  # auth_type: password
  # auth:
  #   auth_url: https://keystone.example.org/v3
  #   username: placement
  #   password: secret
  #   project_name: service
  #   user_domain_name: Default
  #   project_domain_name: Default

# Who knows the host: linux, libvirt or static; each has options of its own.
driver: linux
options: {}
#  model: numa
#  reserved: {VCPU: 2, MEMORY_MB: 1024}
#  allocation_ratios: {VCPU: 4.0}

# The name in the service is the host's own, and its uuid is made once.
# node: {name: host-1}

# interval_s: 60
# start_patience_s: 300
# state_dir: /var/lib/berth-agent
# provider_config: /etc/berth/provider_config
# metrics: {bind: 127.0.0.1:9109}
# adopt: false
"""


@click.command()
def sample() -> None:
    """Print an agent.yaml to begin with."""
    click.echo(SAMPLE, nl=False)
