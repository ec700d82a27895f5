//! Plays cases against a running server.

use weir_config::StoreConfig;
use weir_envoy::settings::EnvoyConfig;
use weir_proto::envoy::service::ratelimit::v3::RateLimitResponse;
use weir_units::Micros;

use super::notation::{answer, request};
use super::{Client, client, serve};
use crate::support::server::{BASE, Server};

/// A case of the reference's, or of ours: what is asked, and what is answered.
#[derive(Clone, Copy)]
pub(super) struct Case {
    /// Number in the list of the reference's cases, or the subject of the case.
    pub(super) name: &'static str,
    /// Lines of [`super::notation`], and:
    ///
    /// ```text
    ///   x9 REQUEST         asked so often, whatever is answered
    ///   after 2s           the clock goes on
    ///   metric NAME +3     how much it has grown since the case began
    ///   header NAME VALUE  of the last answer; `headers 0` is their number
    ///   metadata JSON      of the last answer
    /// ```
    pub(super) lines: &'static str,
}

/// Between two cases: longer than every window, so that each begins with nothing counted.
const APART: Micros = Micros::from_secs(400 * 86_400);

/// Runs all of `cases`, and reports every line with another answer.
/// `first` is the time of the first case; no other case has used it.
pub(super) async fn play(
    cases: &[Case],
    first: usize,
    store: StoreConfig,
    envoy: EnvoyConfig,
) -> Vec<String> {
    let server = serve(store, envoy);
    let mut client = client(&server).await;
    let mut wrong = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        server.clock.set(Micros(BASE.0 + APART.0 * (first + index) as u64));
        let mut player =
            Player { server: &server, client: &mut client, last: None, before: metrics(&server) };
        for line in case.lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Err(why) = player.line(line).await {
                wrong.push(format!("case {}: {line}\n    {why}", case.name));
            }
        }
    }
    wrong
}

struct Player<'a> {
    server: &'a Server,
    client: &'a mut Client,
    last: Option<RateLimitResponse>,
    before: String,
}

impl Player<'_> {
    async fn line(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap();
        match word {
            "after" => {
                let seconds: u64 = rest.strip_suffix('s').unwrap().parse().unwrap();
                self.server.clock.set(Micros(self.server.clock.now().0 + seconds * 1_000_000));
                Ok(())
            }
            "metric" => {
                let (name, grown) = rest.rsplit_once(" +").unwrap();
                let grown_by = value(&metrics(self.server), name) - value(&self.before, name);
                same(grown, &grown_by.to_string())
            }
            "header" => {
                let (name, expected) = rest.split_once(' ').unwrap();
                let headers = &self.last.as_ref().unwrap().response_headers_to_add;
                let found = headers.iter().find(|header| header.key == name);
                same(expected, found.map_or("", |header| &header.value))
            }
            "headers" => same(rest, &self.last.as_ref().unwrap().response_headers_to_add.len().to_string()),
            "metadata" => {
                let metadata = self.last.as_ref().unwrap().dynamic_metadata.as_ref();
                same(rest, &metadata.map_or_else(String::new, json))
            }
            _ => self.ask(line).await,
        }
    }

    async fn ask(&mut self, line: &str) -> Result<(), String> {
        if let Some((times, asked)) = line.strip_prefix('x').and_then(|line| line.split_once(' ')) {
            for _ in 0..times.parse::<u32>().map_err(|error| error.to_string())? {
                let _ = self.client.should_rate_limit(request(asked)).await;
            }
            return Ok(());
        }
        let (asked, expected) = line.split_once(" => ").unwrap();
        let answered = self.client.should_rate_limit(request(asked)).await.map(tonic::Response::into_inner);
        let observed = answer(&answered);
        self.last = answered.ok();
        same(expected, &observed)
    }
}

fn same(expected: &str, found: &str) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("but: {found}")) }
}

fn metrics(server: &Server) -> String {
    server.get("/metrics").1
}

fn value(metrics: &str, name: &str) -> u64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |value| value.parse().unwrap())
}

fn json(metadata: &prost_types::Struct) -> String {
    use prost_types::value::Kind;
    fn text(value: &prost_types::Value) -> serde_json::Value {
        match value.kind.as_ref().unwrap() {
            Kind::NullValue(_) => serde_json::Value::Null,
            Kind::BoolValue(value) => (*value).into(),
            Kind::NumberValue(value) => (*value as i64).into(),
            Kind::StringValue(value) => value.clone().into(),
            Kind::ListValue(list) => list.values.iter().map(text).collect(),
            Kind::StructValue(inner) => object(inner),
        }
    }
    fn object(value: &prost_types::Struct) -> serde_json::Value {
        value.fields.iter().map(|(name, value)| (name.clone(), text(value))).collect()
    }
    object(metadata).to_string()
}
