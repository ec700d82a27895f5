//! `ConformanceService`: answers as its requests ask for, and with what the server saw of them.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use prost::Message as _;
use prost_types::Any;
use tokio::time::{sleep, timeout_at};
use weir_grpc::{CallContext, Methods};
use weir_http::{AnswerMetadata, AnswerWithMetadata, MetadataCalls};
use weir_node::feature::{CallError, CallErrorDetail, NodeCall, NodeCalls};

use super::descriptors::PACKAGE;
use super::messages::{
    Header, Payload, RequestInfo, UnaryRequest, UnaryResponse, UnaryResponseDefinition, WantedError,
    WantedResponse,
};

const DEADLINE_EXCEEDED: u8 = 4;
const UNIMPLEMENTED: u8 = 12;

/// The largest message if the suite sets none.
const LARGEST: usize = 16 << 20;

pub(crate) struct ConformanceCalls(Methods);

impl ConformanceCalls {
    pub(crate) fn new(largest: usize) -> Self {
        Self(Methods::new(Vec::new(), if largest == 0 { LARGEST } else { largest }))
    }
}

impl NodeCalls for ConformanceCalls {
    fn serves(&self, method: &str) -> bool {
        method.starts_with(&format!("/{PACKAGE}."))
    }

    fn methods(&self) -> &Methods {
        &self.0
    }

    fn call(&self, _: &'static str, _: CallContext, _: Bytes) -> NodeCall {
        NodeCall::Answered(Err(error(UNIMPLEMENTED, "calls have metadata here")))
    }
}

impl MetadataCalls for ConformanceCalls {
    fn call(
        &self,
        method: &'static str,
        headers: HeaderMap,
        deadline: Option<Instant>,
        message: Bytes,
    ) -> Pin<Box<dyn Future<Output = AnswerWithMetadata> + Send>> {
        Box::pin(async move {
            let answered = answer(method, &headers, message);
            match deadline {
                None => answered.await,
                Some(deadline) => timeout_at(deadline.into(), answered).await.unwrap_or_else(|_| {
                    (Err(error(DEADLINE_EXCEEDED, "the deadline has passed")), AnswerMetadata::default())
                }),
            }
        })
    }
}

async fn answer(method: &str, headers: &HeaderMap, message: Bytes) -> AnswerWithMetadata {
    let Ok(request) = UnaryRequest::decode(message.clone()) else {
        return (Err(error(3, "the body is no message")), AnswerMetadata::default());
    };
    let wanted = request.response_definition.unwrap_or_default();
    sleep(Duration::from_millis(wanted.response_delay_ms.into())).await;
    let name = method.rsplit('/').next().unwrap();
    let timeout = headers.get("connect-timeout-ms").and_then(|it| it.to_str().ok()?.parse().ok());
    let info = RequestInfo {
        request_headers: headers.keys().map(|name| header(name, headers)).collect(),
        timeout_ms: timeout,
        requests: vec![any(&format!("{name}Request"), message.to_vec())],
    };
    let UnaryResponseDefinition { response_headers, response, response_trailers, .. } = wanted;
    let metadata =
        AnswerMetadata { leading: metadata(response_headers), trailing: metadata(response_trailers) };
    let data = match response {
        Some(WantedResponse::Error(wanted)) => return (Err(wanted_error(wanted, &info)), metadata),
        Some(WantedResponse::Data(data)) => data,
        None => Vec::new(),
    };
    let payload = Payload { data, request_info: Some(info) };
    (Ok(UnaryResponse { payload: Some(payload) }.encode_to_vec().into()), metadata)
}

/// Returns the error that is wanted; what the server saw is its last detail.
fn wanted_error(wanted: WantedError, info: &RequestInfo) -> CallError {
    let seen = any("ConformancePayload.RequestInfo", info.encode_to_vec());
    let detail = |it: Any| CallErrorDetail {
        name: it.type_url.rsplit('/').next().unwrap_or_default().to_owned(),
        message: it.value,
    };
    CallError {
        code: u8::try_from(wanted.code).unwrap_or_default(),
        message: wanted.message.unwrap_or_default(),
        details: wanted.details.into_iter().chain([seen]).map(detail).collect(),
    }
}

fn any(name: &str, value: Vec<u8>) -> Any {
    Any { type_url: format!("type.googleapis.com/{PACKAGE}.{name}"), value }
}

fn header(name: &HeaderName, headers: &HeaderMap) -> Header {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Header { name: name.to_string(), value: headers.get_all(name).iter().map(text).collect() }
}

fn metadata(wanted: Vec<Header>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for Header { name, value } in wanted {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        for value in value {
            headers.append(&name, HeaderValue::from_str(&value).unwrap());
        }
    }
    headers
}

fn error(code: u8, message: &str) -> CallError {
    CallError { code, message: message.to_owned(), details: Vec::new() }
}
