"""Every error that a call can raise, by its class: `except recollect.errors.NotFound`."""

from recollect.protocol.errors import *  # noqa: F403
