"""The certificate that gRPC shows, without which it serves nobody but this machine."""

from __future__ import annotations

from pathlib import Path

import grpc

from recollect.config.gateway import GatewaySettings
from recollect.config.problems import ConfigError, Problem
from recollect.web.hosts import is_loopback

SOURCE = "gRPC"


def credentials_of(settings: GatewaySettings) -> grpc.ServerCredentials | None:
    """The certificate to show; None serves without TLS, on loopback. Raises ConfigError."""
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None and key is None:
        if not is_loopback(settings.host):
            raise _refused(
                "tls_certificate",
                f"gRPC at {settings.host} can be reached from other machines, and keys would "
                "travel in the clear",
                "set tls_certificate and tls_key, or host to 127.0.0.1, or grpc to false",
            )
        return None
    if certificate is None or key is None:
        missing = "tls_certificate" if certificate is None else "tls_key"
        raise _refused(missing, "one file of the certificate is missing", "set both, or neither")
    return grpc.ssl_server_credentials(
        [(_read("tls_key", key), _read("tls_certificate", certificate))]
    )


def _read(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise _refused(name, f"{path} cannot be read: {error.strerror}", "name another") from error


def _refused(name: str, message: str, suggestion: str) -> ConfigError:
    return ConfigError([Problem(SOURCE, f"gateway.{name}", message, suggestion)])
