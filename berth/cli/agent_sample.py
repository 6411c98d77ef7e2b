# SPDX-License-Identifier: Apache-2.0
"""`berth agent sample`: a configuration to start from."""

from typing import Final

import click

from berth.cli.output import say

SAMPLE: Final = """\
# /etc/berth/agent.yaml: what `berth agent run` reports, and to which service.
# Lines that begin with # show the defaults, or examples.
# `berth agent show` prints what would be reported, without contacting a service.

service:
  url: http://127.0.0.1:8778
  # Create it on the service's host, after `umask 077`:
  # berth token create --role agent --host HOST > agent.token
  token_file: /etc/berth/agent.token
  # With Keystone, use these instead of the two above:
  # auth_type: password
  # auth:
  #   auth_url: https://keystone.example.org/v3
  #   username: placement
  #   password: secret
  #   project_name: service
  #   user_domain_name: Default
  #   project_domain_name: Default

# The driver that examines the host: linux, libvirt or static. Each has its own options.
driver: linux
options: {}
#  model: numa
#  reserved: {VCPU: 2, MEMORY_MB: 1024}
#  allocation_ratios: {VCPU: 4.0}

# By default, the node has the host's name, and a UUID that is generated once.
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
    """Print an agent.yaml to start from."""
    say(*SAMPLE.splitlines())
