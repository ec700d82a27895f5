// The channel of a client: one for each client, made at the first call.

import { Client, connectivityState } from "@grpc/grpc-js";

import type { Settings } from "./options.js";

// A second node must exist, so that mistakes of callers, which count as failures too, never eject the only one.
// A node that restarts may be ejected for what it refuses at its end: for so short a time that the next node can restart.
const OUTLIERS = {
  interval: { seconds: 0, nanos: 250_000_000 },
  base_ejection_time: { seconds: 4, nanos: 0 },
  max_ejection_time: { seconds: 10, nanos: 0 },
  max_ejection_percent: 50,
  failure_percentage_ejection: { threshold: 50, enforcement_percentage: 100, minimum_hosts: 2, request_volume: 1 },
  child_policy: [{ round_robin: {} }],
};

/** Makes the channel. It connects when it is asked first. @internal */
export function openChannel({ target, credentials, ejection }: Settings): Client {
  const policy = ejection ? { outlier_detection: OUTLIERS } : { round_robin: {} };
  return new Client(target.uri, credentials, {
    "grpc.service_config": JSON.stringify({ loadBalancingConfig: [policy] }),
    // Otherwise a TXT record of DNS would replace the policy.
    "grpc.service_config_disable_resolution": 1,
    "grpc.enable_http_proxy": 0,
    // What no server has read, such as on a connection that is being closed, is sent again. Without a retry policy in the
    // service config, gRPC repeats nothing else. Switched off, one rolling restart in three at 200 calls/s cost an answer.
    "grpc.enable_retries": 1,
    "grpc.dns_min_time_between_resolutions_ms": 1000,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1000,
    "grpc.keepalive_time_ms": 10_000,
    "grpc.keepalive_timeout_ms": 2000,
    "grpc.keepalive_permit_without_calls": 1,
  });
}

/** Whether a node is connected. @internal */
export function isConnected(channel: Client): boolean {
  return channel.getChannel().getConnectivityState(false) === connectivityState.READY;
}
