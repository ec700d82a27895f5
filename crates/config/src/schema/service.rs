//! The sections of the file.

use super::super::fields::MAX_PATH;
use super::super::identity::MAX_JWT_TEXT;
use super::super::rights::RIGHTS;
use super::super::table::ValueKind::{Choice, Defined, Section, Set, Text};
use super::super::table::{DenialMessages, ServerConfig, log as log_keys};
use super::kinds::{Key, may, must};

pub(super) const ROOT: &[Key] = &[
    may("server", Section(ServerConfig::rows), "Sockets, workers and bounds."),
    may("store", Defined("store"), "Where state lives: memory (the default) or redis."),
    may("strategies", Defined("strategies"), "Named lists of limits that decide together."),
    may("resources", Defined("resources"), "Which strategy a resource has when the caller names none."),
    may("groups", Defined("groups"), "Which routing groups must lie on different shards of a cluster."),
    may("overrides", Defined("overrides"), "Other numbers for some consumers; a pattern makes a tier."),
    may(
        "access",
        Defined("access"),
        "Consumers that are always denied or always allowed, whatever the strategy.",
    ),
    may("authorize", Defined("authorize"), "Rights of callers; rules only allow."),
    may("messages", Section(DenialMessages::rows), "The sentences for people on denial."),
    may("log", Section(log_keys::rows), "Logs of decisions, beside the log on stderr."),
];

pub(super) const AUTHORIZE: &[Key] = &[
    must("callers", Defined("callers"), "Callers that the rule allows: names, or prefixes with a final *."),
    must("may", Set(&Choice(&RIGHT_NAMES), 1, RIGHT_NAMES.len()), "Rights that the rule grants."),
    may("resources", Defined("entries"), "Resources, if not all."),
    may(
        "strategies",
        Defined("entries"),
        "Strategies, if not all; that of a limit in the request is `inline`.",
    ),
    may("consumers", Defined("entries"), "Consumers, if not all; `$caller` is the caller's own name."),
    may("queues", Defined("entries"), "Queues, if not all; `NAME:dead` is a name of its own."),
    may("envoy_domains", Defined("entries"), "Domains of Envoy's requests, if not all."),
];

const RIGHT_NAMES: [&str; 12] = {
    let mut names = [""; 12];
    let mut index = 0;
    while index < names.len() {
        names[index] = RIGHTS[index].name;
        index += 1;
    }
    names
};

pub(super) const IDENTITY: &[Key] = &[
    may(
        "tokens_file",
        Text(1, MAX_PATH),
        "Names and digests of tokens; `weir token new NAME` writes a line.",
    ),
    may("jwt", Defined("jwt"), "Issuers of JWTs."),
    may(
        "forwarded_client_cert",
        Defined("forwarded"),
        "Proxies that name the certificates of their callers.",
    ),
    may("trust_domains", Defined("trust_domains"), "The authorities of each SPIFFE trust domain."),
];

pub(super) const JWT: &[Key] = &[
    must("jwks_file", Text(1, MAX_PATH), "The issuer's public keys (RFC 7517)."),
    must("issuer", Text(1, MAX_JWT_TEXT), "The claim `iss` of its tokens."),
    must("audience", Text(1, MAX_JWT_TEXT), "The claim `aud` of its tokens, or one of several."),
    must(
        "algorithms",
        Set(&Choice(&["RS256", "ES256", "EdDSA"]), 1, 3),
        "Accepted signature algorithms of its tokens.",
    ),
    may("claim", Text(1, MAX_JWT_TEXT), "The claim that names the caller.").or("sub"),
];

pub(super) const FORWARDED: &[Key] =
    &[must("from", Defined("networks"), "Networks whose `x-forwarded-client-cert` is read.")];
