//! The addresses of a server in the place of envoyproxy/ratelimit.

use weir_config::{Config, ListenAddress};
use weir_envoy::ratelimit::{PORTS, RatelimitPorts};
use weir_envoy::settings::EnvoyConfig;

/// Formats the addresses of a server in the place of envoyproxy/ratelimit, if it is one.
pub(super) fn announcement(config: &Config, grpc: &ListenAddress, store: &str) -> Option<String> {
    let ports = config.section::<RatelimitPorts>(PORTS)?;
    let metrics = ports.metrics.as_ref();
    let metrics = metrics.map_or_else(String::new, |(address, path)| format!("  metrics {address}{path}\n"));
    let envoy = EnvoyConfig::from_config(config);
    let files = match (&envoy.config, &envoy.xds) {
        (Some(folder), _) => format!("  files   {}\n", folder.display()),
        (None, Some(xds)) => format!("  xDS     {}\n", xds.server),
        (None, None) => String::new(),
    };
    Some(format!(
        "weir {version}, in the place of ratelimit\n\
         \x20 gRPC    {grpc}\n\
         \x20 HTTP    {http} (healthcheck, json)\n\
         \x20 debug   {debug} (rlconfig, stats, metrics)\n\
         {metrics}\
         \x20 store   {store}\n\
         {files}\n",
        version = env!("CARGO_PKG_VERSION"),
        http = ports.http,
        debug = ports.debug,
    ))
}
