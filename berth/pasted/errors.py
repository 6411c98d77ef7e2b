# SPDX-License-Identifier: Apache-2.0
"""Why a text is not a request."""


class NotReadable(ValueError):
    """There is no request in the text, or not all of one; the message is a sentence."""
