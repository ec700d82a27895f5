//! The values that a check names, from the headers of its proxy.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};
use weir_proto::v1::ShouldAllowRequest;

use super::settings::{CheckCost, CheckMissing, CheckSettings, CheckSource};
use super::target;

/// The longest value, in bytes.
const MAX_VALUE: usize = 512;

/// The largest cost of a header.
const MAX_COST: u64 = 1 << 52;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The reason that there is no question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    /// The proxy has not sent a value.
    Absent,
    /// A client has sent what no proxy should pass on.
    Bad,
}

/// Returns the question of a request.
pub(super) fn question(settings: &CheckSettings, headers: &HeaderMap) -> Result<ShouldAllowRequest, Unfit> {
    let value = |source: &CheckSource| value(settings, source, headers).map(Cow::into_owned);
    let resource = value(&settings.resource)?;
    let consumer = match (value(&settings.consumer), &settings.missing) {
        (Err(Unfit::Absent), CheckMissing::Text(text)) => text.clone(),
        (consumer, _) => consumer?,
    };
    let mut attributes = Vec::with_capacity(settings.attributes.len());
    for (name, source) in &settings.attributes {
        attributes.push((name.clone(), value(source)?));
    }
    Ok(ShouldAllowRequest {
        resource,
        consumer,
        strategy: settings.strategy.clone().unwrap_or_default(),
        cost: Some(cost(&settings.cost, headers)?),
        attributes: attributes.into_iter().collect(),
        headers: true,
        ..ShouldAllowRequest::default()
    })
}

fn value<'v>(
    settings: &'v CheckSettings,
    source: &'v CheckSource,
    headers: &'v HeaderMap,
) -> Result<Cow<'v, str>, Unfit> {
    let found: Cow<'v, str> = match source {
        CheckSource::Text(text) => text.as_str().into(),
        CheckSource::Address => settings.address.client(&joined(headers)).ok_or(Unfit::Absent)?.into(),
        CheckSource::Method => only(headers, &settings.proxy.method())?.into(),
        CheckSource::Path => {
            let target = only(headers, &settings.proxy.target())?;
            target::normalized(target).ok_or(Unfit::Bad)?.into()
        }
        CheckSource::Host => host(only(headers, &FORWARDED_HOST)?).into(),
        CheckSource::Header(name) => only(headers, name)?.into(),
    };
    let is_fit = found.len() <= MAX_VALUE && !found.chars().any(char::is_control);
    match found.is_empty() {
        true => Err(Unfit::Absent),
        false if is_fit => Ok(found),
        false => Err(Unfit::Bad),
    }
}

/// Returns all lines of X-Forwarded-For as one. Bytes that are no text spoil the entry that they are in: with the whole line, a
/// client could make itself absent, in front of a proxy that appends to what it has sent.
fn joined(headers: &HeaderMap) -> String {
    let lines = headers.get_all(FORWARDED_FOR).iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
    lines.collect::<Vec<_>>().join(",")
}

/// Returns the only value of a header.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<&'h str, Unfit> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().ok_or(Unfit::Absent)?;
    match values.next() {
        None => std::str::from_utf8(value.as_bytes()).map_err(|_| Unfit::Bad),
        Some(_) => Err(Unfit::Bad),
    }
}

/// Returns a host in lower case, without its port.
fn host(value: &str) -> String {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = match value.rsplit_once(':') {
        Some((host, port)) if is_port(port) && (!host.contains(':') || host.ends_with(']')) => host,
        _ => value,
    };
    host.to_ascii_lowercase()
}

fn cost(cost: &CheckCost, headers: &HeaderMap) -> Result<u64, Unfit> {
    let name = match cost {
        CheckCost::Units(units) => return Ok(*units),
        CheckCost::Header(name) => name,
    };
    match only(headers, name) {
        Err(Unfit::Absent) => Ok(1),
        Err(Unfit::Bad) => Err(Unfit::Bad),
        Ok(text) => {
            let is_plain =
                text.len() <= 16 && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let units = text.parse().ok().filter(|units| is_plain && (1..=MAX_COST).contains(units));
            units.ok_or(Unfit::Bad)
        }
    }
}
