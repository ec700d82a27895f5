//! The answers are those of gRPC.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use tonic::transport::Endpoint;
use weir_http::json::UnknownFields;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{ShouldAllowRequest, ShouldAllowResponse};

use super::support::{STRATEGIES, TestAnswer, TestNode};

/// A source of numbers that is the same in each run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn question(numbers: &mut Numbers) -> ShouldAllowRequest {
    let one_of = |numbers: &mut Numbers, of: &[&str]| of[numbers.below(of.len() as u64) as usize].to_owned();
    let attributes = match numbers.below(3) {
        0 => Vec::new(),
        _ => vec![("region".to_owned(), one_of(numbers, &["eu", "us"]))],
    };
    ShouldAllowRequest {
        resource: one_of(numbers, &["two", "other", "", "\u{e9}\"\\"]),
        consumer: one_of(numbers, &["a", "b", "c", "d", ""]),
        strategy: one_of(numbers, &["two", "region", "", "unknown"]),
        cost: [None, Some(0), Some(1), Some(2), Some(9)][numbers.below(5) as usize],
        peek: numbers.below(3) == 0,
        at_most: numbers.below(3) == 0,
        headers: numbers.below(2) == 0,
        attributes: attributes.into_iter().collect(),
        ..ShouldAllowRequest::default()
    }
}

/// Two nodes with the same clock and the same configuration get the same questions, one by gRPC and one by HTTP.
#[tokio::test]
async fn ten_thousand_questions_get_the_same_answers() {
    use prost_reflect::prost::Message as _;
    let (by_grpc, by_http) = (TestNode::start(STRATEGIES), TestNode::start(STRATEGIES));
    let channel = Endpoint::from_shared(format!("http://{}", by_grpc.grpc)).unwrap();
    let mut grpc = RateLimitServiceClient::new(channel.connect().await.unwrap());
    let shapes = weir_http::shapes().unwrap();
    let method = shapes.method("/weir.v1.RateLimitService/ShouldAllow").unwrap();
    let mut http = KeptConnection::open(&by_http);
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut seen = [0; 2];
    for number in 0..10_000 {
        let question = question(&mut numbers);
        let answer = grpc.should_allow(question.clone()).await;
        let as_json = numbers.below(2) == 0;
        let (got, body) = http.ask(as_json, &question);
        match answer {
            Ok(answer) => {
                let answer = answer.into_inner();
                assert_eq!(got.status, 200, "{number}: {question:?}: {got:?}");
                let form = if as_json {
                    let json = shapes.write(method, &answer.encode_to_vec()).unwrap();
                    assert_eq!(got.body.as_bytes(), json, "{number}: {question:?}");
                    "application/json"
                } else {
                    assert_eq!(ShouldAllowResponse::decode(&*body), Ok(answer), "{number}: {question:?}");
                    "application/proto"
                };
                assert_eq!(got.header("content-type"), Some(form));
                seen[0] += 1;
            }
            Err(status) => {
                assert_eq!(got.json()["message"], status.message(), "{number}: {question:?}");
                assert_eq!(got.code(), code_name(status.code()), "{number}: {question:?}");
                let details = got.json()["details"].as_array().cloned().unwrap_or_default();
                let found: Vec<&str> = details.iter().filter_map(|detail| detail["type"].as_str()).collect();
                assert_eq!(found, status_names(&status), "{number}: {question:?}");
                for detail in details {
                    let value = STANDARD_NO_PAD.decode(detail["value"].as_str().unwrap()).unwrap();
                    assert!(status.details().windows(value.len()).any(|part| part == value), "{detail}");
                }
                seen[1] += 1;
            }
        }
    }
    assert!(seen[0] > 2_000 && seen[1] > 1_000, "{seen:?}");
    // The reader ignores what it does not know, if it is told to.
    assert!(shapes.read(method, br#"{"later":[1,{"a":null}]}"#, UnknownFields::Ignore).unwrap().is_empty());
}

/// Returns the name of a code in Connect.
fn code_name(code: tonic::Code) -> String {
    let name = format!("{code:?}");
    let snake = name
        .chars()
        .flat_map(|letter| letter.is_uppercase().then_some('_').into_iter().chain(letter.to_lowercase()));
    snake.collect::<String>().trim_start_matches('_').to_owned()
}

/// The types of the details of a status, found by their names in its bytes.
fn status_names(status: &tonic::Status) -> Vec<String> {
    let text = String::from_utf8_lossy(status.details()).into_owned();
    let mut found: Vec<(usize, &str)> = ["BadRequest", "ErrorInfo", "RetryInfo"]
        .into_iter()
        .filter_map(|name| Some((text.find(&format!("google.rpc.{name}"))?, name)))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| format!("google.rpc.{name}")).collect()
}

/// A connection with one request after another.
struct KeptConnection(std::net::TcpStream);

impl KeptConnection {
    fn open(node: &TestNode) -> Self {
        let stream = std::net::TcpStream::connect(node.http).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Asks, and returns the answer, and its body in bytes.
    fn ask(&mut self, as_json: bool, question: &ShouldAllowRequest) -> (TestAnswer, Vec<u8>) {
        use prost_reflect::prost::Message as _;
        use std::io::{Read as _, Write as _};
        let (form, body) = match as_json {
            true => ("json", json(question)),
            false => ("proto", question.encode_to_vec()),
        };
        let path = "/weir.v1.RateLimitService/ShouldAllow";
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/{form}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.0.write_all(&[head.as_bytes(), &body].concat()).unwrap();
        let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let read = self.0.read(&mut buffer).unwrap();
            assert!(read > 0, "{question:?}");
            answer.extend_from_slice(&buffer[..read]);
            let text = String::from_utf8_lossy(&answer);
            let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let body = head.len() + 4;
            if answer.len() == body + length.parse::<usize>().unwrap() {
                return (TestAnswer::parse(&text), answer[body..].to_vec());
            }
        }
    }
}

fn json(question: &ShouldAllowRequest) -> Vec<u8> {
    let mut body = serde_json::json!({
        "resource": question.resource, "consumer": question.consumer, "strategy": question.strategy,
        "peek": question.peek, "atMost": question.at_most, "headers": question.headers,
        "attributes": question.attributes,
    });
    if let Some(cost) = question.cost {
        body["cost"] = if cost % 2 == 0 { cost.to_string().into() } else { cost.into() };
    }
    body.to_string().into_bytes()
}
