"""Settings of the gateway: where it listens, for whom, and how much it takes.

Declared like all others, see settings.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

# fmt: off


class GatewaySettings(Struct, frozen=True):
    """The process that speaks REST, MCP and gRPC for whoever does not speak ZeroMQ."""

    host: Annotated[str, Meta(min_length=1, description=(
        "Address that it listens on. Beyond loopback nobody is answered without a bearer key, and "
        "gRPC asks for a certificate."))] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535, description=(
        "Port of REST and MCP; 0 takes any free one."))] = 7333
    rest: Annotated[bool, Meta(description=(
        "Serve REST under `/v1`, with `/openapi.json` and `/docs`."))] = True
    mcp: Annotated[bool, Meta(description=(
        "Serve MCP over streamable HTTP at `/mcp`."))] = True
    grpc: Annotated[bool, Meta(description=(
        "Serve gRPC, where the extra `grpc` is installed."))] = True
    grpc_port: Annotated[int, Meta(ge=0, le=65_535, description=(
        "Port of gRPC; 0 takes any free one."))] = 7334
    require_keys: Annotated[bool, Meta(description=(
        "Answer nobody without a bearer key on loopback either. Always so beyond loopback, and "
        "where the orchestrator asks for keys."))] = False
    hosts_allowed: Annotated[tuple[str, ...], Meta(description=(
        "Names by which it may be asked for, beside those of the address itself; any other Host is "
        "refused."))] = ()
    origins_allowed: Annotated[tuple[str, ...], Meta(description=(
        "Origins whose pages may ask it from a browser (CORS), such as `https://app.example.org`; "
        "none if empty."))] = ()
    tls_certificate: Annotated[Annotated[str, Meta(min_length=1)] | None, Meta(description=(
        "File of the certificate chain (PEM) that HTTPS and gRPC show; null serves without TLS."
        ))] = None
    tls_key: Annotated[Annotated[str, Meta(min_length=1)] | None, Meta(description=(
        "File of the certificate's private key (PEM)."))] = None
    body_bytes_max: Annotated[int, Meta(ge=1024, le=1 << 30, description=(
        "Largest body of a request; a larger one is refused unread."))] = 16 * 1024 * 1024
    requests_max: Annotated[int, Meta(ge=1, le=100_000, description=(
        "Requests in work at once; beyond it the answer is `overloaded` with Retry-After."))] = 512
    streams_max: Annotated[int, Meta(ge=1, le=100_000, description=(
        "Readers of the change feed (server-sent events) at once."))] = 256
    share_max: Annotated[float, Meta(gt=0, le=1, description=(
        "The part of `streams_max` and `mcp_sessions_max` that one caller may hold at once: an "
        "identity, or an address where no key is asked for. Likewise the part of `requests_max` "
        "that one address may hold with calls of gRPC whose message has not come yet."))] = 0.5
    read_s: Annotated[float, Meta(gt=0, le=3600, description=(
        "Longest time for the body of a request, or the message of a call of gRPC, to "
        "come."))] = 30.0
    requests_per_s: Annotated[Annotated[float, Meta(gt=0, le=1_000_000)] | None, Meta(description=(
        "Requests a second that one caller may make, beside the rate of its identity; null is "
        "without limit."))] = None
    timeout_s: Annotated[float, Meta(gt=0, le=3600, description=(
        "Longest wait for the orchestrator's answer to one request."))] = 30.0
    mcp_tokens_max: Annotated[int, Meta(ge=500, le=1_000_000, description=(
        "About how many tokens the answer of an MCP tool may take; longer ones are cut, and say "
        "how to get the rest."))] = 4000
    mcp_sessions_max: Annotated[int, Meta(ge=1, le=100_000, description=(
        "Sessions of MCP clients at once over HTTP; beyond it no new one is opened."))] = 1000
    mcp_idle_s: Annotated[float, Meta(gt=0, le=86_400, description=(
        "How long a session of an MCP client may be idle before it is closed; its client opens a "
        "new one."))] = 1800.0
