"""The port that is listened on: bound before anything heavy is imported or loaded."""

from __future__ import annotations

import errno
import socket

from isotrope.errors import InputError


def bind(host: str, port: int) -> socket.socket:
    """A socket on that port; a port that is taken or forbidden is one sentence, before any model is loaded."""
    if not 0 <= port <= 65_535:
        raise InputError(f"port must lie between 0 and 65535, not {port}.", setting="port")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        raise InputError(f"host '{host}' is no address of this machine.", setting="host") from error
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
    except OSError as error:
        opened.close()
        raise InputError(_why(error, host, port), setting="port") from error
    return opened


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use by another program; choose another port, or 0 for any free one."
    if error.errno == errno.EACCES:
        return f"Port {port} needs more rights than this user has; choose a port from 1024 on."
    return f"Port {port} of {host} cannot be listened on: {(error.strerror or str(error)).lower()}."
