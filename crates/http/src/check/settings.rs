//! `http.checks`: what each check asks about, and what it answers.

use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderName, StatusCode};
use serde_json::{Value, json};
use weir_config::{Applies, Network, SectionReader};
use weir_grpc::PeerAddress;
use weir_units::Micros;

use super::address::AddressRule;

/// The most checks, and the longest name of one.
const MAX_CHECKS: usize = 256;
const MAX_NAME: usize = 64;

/// The longest text, and the most networks of a list.
const MAX_TEXT: usize = 512;
const MAX_NETWORKS: usize = 64;

/// Peers that may ask where the server has no identity: this machine, and private networks.
const PRIVATE: [&str; 7] =
    ["127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fe80::/10"];

/// The proxies whose headers are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyKind {
    Nginx,
    Traefik,
    Caddy,
    Haproxy,
}

const PROXIES: [(&str, ProxyKind); 4] = [
    ("nginx", ProxyKind::Nginx),
    ("traefik", ProxyKind::Traefik),
    ("caddy", ProxyKind::Caddy),
    ("haproxy", ProxyKind::Haproxy),
];

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckSource {
    Address,
    Method,
    Host,
    Path,
    Header(HeaderName),
    Text(String),
}

/// The cost of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckCost {
    Units(u64),
    Header(HeaderName),
}

/// The answer to a request whose proxy has not sent a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckMissing {
    Deny,
    Allow,
    /// The consumer is this text.
    Text(String),
}

/// A check.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CheckSettings {
    pub(crate) name: String,
    pub(crate) proxy: ProxyKind,
    pub(crate) resource: CheckSource,
    pub(crate) strategy: Option<String>,
    pub(crate) consumer: CheckSource,
    pub(crate) attributes: Vec<(String, CheckSource)>,
    pub(crate) address: AddressRule,
    proxies: Vec<Network>,
    pub(crate) cost: CheckCost,
    pub(crate) missing: CheckMissing,
    pub(crate) limited_status: StatusCode,
    pub(crate) never_status: StatusCode,
    pub(crate) unavailable_status: StatusCode,
    pub(crate) allows_on_failure: bool,
    pub(crate) deadline: Duration,
    pub(crate) max_hold: Duration,
}

impl ProxyKind {
    /// Returns the header with the method of the request.
    pub(crate) fn method(self) -> HeaderName {
        HeaderName::from_static(match self {
            Self::Nginx => "x-original-method",
            Self::Traefik | Self::Caddy | Self::Haproxy => "x-forwarded-method",
        })
    }

    /// Returns the header with its path and query.
    pub(crate) fn target(self) -> HeaderName {
        HeaderName::from_static(match self {
            Self::Nginx => "x-original-uri",
            Self::Traefik | Self::Caddy | Self::Haproxy => "x-forwarded-uri",
        })
    }
}

impl CheckSettings {
    /// True if this peer may ask, where the server has no identity.
    pub(crate) fn may_ask(&self, peer: PeerAddress) -> bool {
        match peer {
            PeerAddress::Tcp(address) => self.proxies.iter().any(|network| network.has(address.ip())),
            PeerAddress::Unix { .. } => true,
            PeerAddress::Unknown => false,
        }
    }

    /// True if a request without a value passes.
    pub(crate) fn allows_missing(&self) -> bool {
        self.missing == CheckMissing::Allow
    }
}

/// Reads all checks.
pub(crate) fn checks(section: &mut SectionReader<'_, '_>) -> Vec<CheckSettings> {
    let checks = section.each("checks", check);
    if checks.len() > MAX_CHECKS {
        section.report("checks", format!("has {} checks: at most {MAX_CHECKS}", checks.len()));
    }
    let checks: Vec<CheckSettings> = checks.into_iter().flatten().collect();
    section.show_whole("checks", Applies::AtReload, format!("{checks:?}"));
    checks
}

fn check(name: &str, fields: &mut SectionReader<'_, '_>) -> Option<CheckSettings> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_plain) {
        fields.report("proxy", format!("the name of a check has 1 to {MAX_NAME} of a-z, 0-9 and -"));
    }
    let proxy = fields.word("proxy", &PROXIES);
    if proxy.is_none() {
        fields.report("proxy", "says which headers are read: nginx, traefik, caddy or haproxy");
    }
    let resource = fields.text("resource", MAX_TEXT).map(|text| match text.as_str() {
        "path" => CheckSource::Path,
        "host" => CheckSource::Host,
        _ => CheckSource::Text(text),
    });
    if resource.is_none() {
        fields.report("resource", "is needed: a text, path or host");
    }
    let consumer = fields.text("consumer", MAX_TEXT);
    if consumer.is_none() {
        fields
            .report("consumer", "is needed: address, or header:NAME with a header that the proxy overwrites");
    }
    let consumer = consumer.and_then(|text| source("consumer", &text, fields));
    let strategy = fields.text("strategy", MAX_TEXT);
    let attributes: Vec<(String, CheckSource)> = fields
        .named_texts("attributes", MAX_TEXT)
        .into_iter()
        .filter_map(|(name, text)| Some((name, source("attributes", &text, fields)?)))
        .collect();
    let address = address(fields);
    let proxies = networks("proxies", fields);
    let default = || PRIVATE.iter().filter_map(|network| Network::read(network).ok()).collect();
    let settings = CheckSettings {
        name: name.to_owned(),
        proxy: proxy?,
        resource: resource?,
        strategy,
        consumer: consumer?,
        attributes,
        address,
        proxies: proxies.unwrap_or_else(default),
        cost: cost(fields),
        missing: missing(fields),
        limited_status: status("limited_status", 429, fields),
        never_status: status("never_status", 403, fields),
        unavailable_status: status("unavailable_status", 503, fields),
        allows_on_failure: fields.word("on_failure", &[("deny", false), ("allow", true)]).unwrap_or(false),
        deadline: span("deadline", Micros::from_millis(100), fields),
        max_hold: span("max_hold", Micros::from_secs(1), fields),
    };
    prove(&settings, fields);
    Some(settings)
}

/// Reports a check that no question can be answered for.
fn prove(settings: &CheckSettings, fields: &mut SectionReader<'_, '_>) {
    let resource = match &settings.resource {
        CheckSource::Text(text) => text,
        // Patterns decide, which may be there or not.
        _ if settings.strategy.is_none() => return,
        _ => "",
    };
    let key = if settings.strategy.is_some() { "strategy" } else { "resource" };
    match fields.attributes_of(resource, settings.strategy.as_deref().unwrap_or_default()) {
        Err(unknown) => fields.report(key, unknown),
        Ok(needed) => {
            for name in
                needed.iter().filter(|name| settings.attributes.iter().all(|(known, _)| known != *name))
            {
                fields.report(
                    "attributes",
                    format!("`{name}` is missing: a limit of the strategy is per `{name}`"),
                );
            }
        }
    }
    let passes = |status: StatusCode| [401, 403].contains(&status.as_u16());
    if settings.proxy == ProxyKind::Nginx && !passes(settings.limited_status) {
        let reason =
            "nginx answers 500 for every status but 401 and 403: write 401, and answer 429 in `error_page`";
        fields.report("limited_status", reason);
    }
}

fn source(key: &str, text: &str, fields: &mut SectionReader<'_, '_>) -> Option<CheckSource> {
    match (text, text.split_once(':')) {
        ("address", _) => Some(CheckSource::Address),
        ("method", _) => Some(CheckSource::Method),
        ("host", _) => Some(CheckSource::Host),
        ("path", _) => Some(CheckSource::Path),
        (_, Some(("header", name))) => header(key, name, fields).map(CheckSource::Header),
        (_, Some(("text", text))) if !text.is_empty() => Some(CheckSource::Text(text.to_owned())),
        _ => {
            let known = "address, method, host, path, header:NAME or text:VALUE";
            fields.report(key, format!("{text:?} is none of {known}"));
            None
        }
    }
}

fn header(key: &str, name: &str, fields: &mut SectionReader<'_, '_>) -> Option<HeaderName> {
    let parsed = HeaderName::from_bytes(name.as_bytes()).ok();
    if parsed.is_none() {
        fields.report(key, format!("{name:?} is no name of a header"));
    }
    parsed
}

fn address(fields: &mut SectionReader<'_, '_>) -> AddressRule {
    let hops = fields.number("hops", 1, 100);
    let trusted = networks("trusted", fields);
    if hops.is_some() && trusted.is_some() {
        fields.report("trusted", "give it or `hops`, not both");
    }
    let ipv6_prefix = fields.number("ipv6_prefix", 32, 128).unwrap_or(64);
    AddressRule {
        hops: usize::try_from(hops.unwrap_or(1)).unwrap_or(1),
        trusted: trusted.unwrap_or_default(),
        ipv6_prefix: u8::try_from(ipv6_prefix).unwrap_or(64),
    }
}

fn networks(key: &'static str, fields: &mut SectionReader<'_, '_>) -> Option<Vec<Network>> {
    let texts = fields.texts(key, MAX_TEXT)?;
    if texts.len() > MAX_NETWORKS {
        fields.report(key, format!("has {} networks: at most {MAX_NETWORKS}", texts.len()));
    }
    let mut networks = Vec::new();
    for text in texts {
        let single = text.parse::<IpAddr>().map(|it| format!("{it}/{}", if it.is_ipv4() { 32 } else { 128 }));
        match Network::read(single.as_deref().unwrap_or(&text)) {
            Ok(network) => networks.push(network),
            Err(reason) => fields.report(key, reason),
        }
    }
    Some(networks)
}

fn cost(fields: &mut SectionReader<'_, '_>) -> CheckCost {
    let Some(text) = fields.text("cost", MAX_TEXT) else { return CheckCost::Units(1) };
    if let Some(name) = text.strip_prefix("header:") {
        return header("cost", name, fields).map_or(CheckCost::Units(1), CheckCost::Header);
    }
    let units = text.replace('_', "").parse().ok().filter(|units| (1..=1_u64 << 52).contains(units));
    if units.is_none() {
        fields.report("cost", format!("{text:?} is no number from 1 to 2^52, and not header:NAME"));
    }
    CheckCost::Units(units.unwrap_or(1))
}

fn missing(fields: &mut SectionReader<'_, '_>) -> CheckMissing {
    match fields.text("missing", MAX_TEXT).as_deref() {
        None | Some("deny") => CheckMissing::Deny,
        Some("allow") => CheckMissing::Allow,
        Some(text) => match text.strip_prefix("text:").filter(|text| !text.is_empty()) {
            Some(text) => CheckMissing::Text(text.to_owned()),
            None => {
                fields.report("missing", format!("{text:?} is none of deny, allow or text:VALUE"));
                CheckMissing::Deny
            }
        },
    }
}

fn status(key: &'static str, default: u16, fields: &mut SectionReader<'_, '_>) -> StatusCode {
    let code = fields.number(key, 400, 599).and_then(|code| u16::try_from(code).ok()).unwrap_or(default);
    StatusCode::from_u16(code).unwrap_or(StatusCode::FORBIDDEN)
}

fn span(key: &'static str, default: Micros, fields: &mut SectionReader<'_, '_>) -> Duration {
    fields.duration(key, Micros::from_millis(1), Micros::from_secs(60)).unwrap_or(default).into()
}

/// Returns the schema of `http.checks`.
pub(crate) fn schema() -> Value {
    let text = json!(["string", "number", "boolean"]);
    let networks =
        json!({ "type": ["array", "null"], "maxItems": MAX_NETWORKS, "items": { "type": "string" } });
    let described = |mut value: Value, about: &str| {
        value["description"] = json!(about);
        value
    };
    let source = || json!({ "type": text, "pattern": "^(address|method|host|path|header:.+|text:.+)$" });
    let status =
        |default: u16| json!({ "type": "integer", "minimum": 400, "maximum": 599, "default": default });
    let duration = |default: &str| json!({ "$ref": "#/$defs/duration", "default": default });
    let properties = json!({
        "proxy": described(json!({ "enum": ["nginx", "traefik", "caddy", "haproxy"] }), "The proxy, whose headers are read."),
        "resource": described(json!({ "type": text, "minLength": 1, "maxLength": MAX_TEXT }), "The resource: a text, path or host."),
        "strategy": described(json!({ "$ref": "#/$defs/reference" }), "The strategy, unless the resource has one."),
        "consumer": described(source(), "The consumer, such as address."),
        "attributes": described(json!({ "type": ["object", "null"], "additionalProperties": source() }), "Attributes."),
        "hops": described(json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 1 }), "Which entry of X-Forwarded-For, from the right, is the client."),
        "trusted": described(networks.clone(), "Networks of proxies that are passed over in X-Forwarded-For."),
        "ipv6_prefix": described(json!({ "type": "integer", "minimum": 32, "maximum": 128, "default": 64 }), "The bits that an IPv6 address is cut to."),
        "proxies": described(networks, "Peers that may ask, where the server has no identity."),
        "cost": described(json!({ "type": text, "default": 1 }), "The cost: a number, or header:NAME."),
        "missing": described(json!({ "type": "string", "pattern": "^(deny|allow|text:.+)$", "default": "deny" }), "What a request gets whose consumer is absent."),
        "limited_status": described(status(429), "The status of a denial that waiting ends."),
        "never_status": described(status(403), "The status of a denial that waiting does not end."),
        "unavailable_status": described(status(503), "The status if nothing was decided."),
        "on_failure": described(json!({ "enum": ["deny", "allow"], "default": "deny" }), "What a request gets if Weir cannot answer."),
        "deadline": described(duration("100ms"), "The time for a decision."),
        "max_hold": described(duration("1s"), "The longest time that a request is held."),
    });
    json!({
        "type": ["object", "null"], "maxProperties": MAX_CHECKS,
        "propertyNames": { "pattern": format!("^[a-z0-9-]{{1,{MAX_NAME}}}$") },
        "additionalProperties": {
            "type": "object", "properties": properties, "additionalProperties": false,
            "required": ["proxy", "resource", "consumer"],
        },
    })
}
