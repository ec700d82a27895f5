"""The options of channels."""

from __future__ import annotations

import json
from typing import Any

from ._options import Settings

# A second node must exist, so that mistakes of callers, which count as failures too, never eject the only one.
# A node that restarts may be ejected for what it refuses at its end. The time is short, so that the next can restart.
_OUTLIERS = {
    "interval": "0.25s",
    "baseEjectionTime": "4s",
    "maxEjectionTime": "10s",
    "maxEjectionPercent": 50,
    "failurePercentageEjection": {
        "threshold": 50,
        "enforcementPercentage": 100,
        "minimumHosts": 2,
        "requestVolume": 1,
    },
    "childPolicy": [{"round_robin": {}}],
}


def open_channel(library: Any, settings: Settings, *more: tuple[str, int]) -> Any:
    """Makes a channel of `grpc` or of `grpc.aio`. It connects when it is asked first."""
    options = [*channel_options(settings.ejection), *more]
    scheme, _, addresses = settings.target.uri.partition(":")
    if scheme in ("ipv4", "ipv6") and "," in addresses:
        # gRPC would send the list as the authority, which servers refuse.
        options.append(("grpc.default_authority", addresses.partition(",")[0]))
    if settings.credentials is None:
        return library.insecure_channel(settings.target.uri, options)
    return library.secure_channel(settings.target.uri, settings.credentials, options)


def channel_options(ejection: bool) -> list[tuple[str, str | int]]:
    """Returns the options of a channel."""
    policy: dict[str, object] = {"round_robin": {}}
    if ejection:
        policy = {"outlier_detection_experimental": _OUTLIERS}
    return [
        ("grpc.service_config", json.dumps({"loadBalancingConfig": [policy]})),
        # Otherwise a TXT record of DNS would replace the policy.
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.enable_http_proxy", 0),
        # What no server has read, such as on a connection that is being closed, is sent again. Without a retry policy
        # in the service config, gRPC repeats nothing else. Switched off, one rolling restart in eleven at 200 calls/s
        # cost an answer.
        ("grpc.enable_retries", 1),
        ("grpc.dns_min_time_between_resolutions_ms", 1000),
        # gRPC adds up to a fifth: with 1000, a probe of the breaker could come before the connection.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 800),
        ("grpc.max_reconnect_backoff_ms", 800),
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_timeout_ms", 2000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        # Channels with the same options would share their connections, also those of another client.
        ("grpc.use_local_subchannel_pool", 1),
    ]
