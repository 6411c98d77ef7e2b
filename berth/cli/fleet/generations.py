# SPDX-License-Identifier: Apache-2.0
"""The generation that a change is based on."""

import click

generation_option = click.option(
    "--generation",
    metavar="N",
    type=click.IntRange(min=0),
    help="Change nothing unless the provider is still at this generation.  "
    "[default: its generation now]",
)
