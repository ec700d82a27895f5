//! The calls that features make: the same functions as those of gRPC.

use std::pin::{Pin, pin};

use bytes::{Buf as _, Bytes};
use futures_util::future::poll_fn;
use http_body::Body as _;
use tokio::sync::watch;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{HeaderValue, Method, Request, Response, Uri, header};
use weir_grpc::{
    BegunCall, Call, CallContext, HotService as _, IncomingCall, Messages, Methods, PREFIX, Reply,
    RequestBody, reply,
};
use weir_store::Store;

use super::services::{AnswerAlone as _, Services};
use crate::feature::{CallError, CallErrorDetail, NodeCall, NodeCalls};
use crate::service::details_of;

impl<S: Store> NodeCalls for Services<S> {
    fn serves(&self, method: &str) -> bool {
        let service = method.strip_prefix('/').and_then(|method| method.split_once('/'));
        service.is_some_and(|(service, _)| self.on.contains(&service))
    }

    fn methods(&self) -> &Methods {
        &self.methods
    }

    fn call(&self, method: &'static str, context: CallContext, message: Bytes) -> NodeCall {
        let mut call = match self.methods.find(method.as_bytes()) {
            None => self.other(context, request(method, &message)),
            Some(hot) => {
                let messages = match Messages::one(message, self.methods.largest_message_of(method)) {
                    Ok(messages) => messages,
                    Err(status) => return NodeCall::Answered(Err(status.into())),
                };
                // Unary calls have no use for the end of their connection: it drops them.
                let (_, closing) = watch::channel(());
                match self.begin(hot, IncomingCall { context, messages }, &closing) {
                    BegunCall::Call(call) => call,
                    BegunCall::Pending(pending) => self.answer_alone(&pending),
                }
            }
        };
        match &mut call {
            Call::Done(Some(Ok(Reply::Message(message)))) => {
                return NodeCall::Answered(Ok(unframed(std::mem::take(message))));
            }
            Call::Done(Some(Err(status))) => return NodeCall::Answered(Err(status.clone().into())),
            Call::Done(_) | Call::Waiting(_) => {}
        }
        NodeCall::Waiting(Box::pin(async move { Ok(message_of(call.await?).await?) }))
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        let detail = |any: prost_types::Any| CallErrorDetail {
            name: any.type_url.rsplit('/').next().unwrap_or_default().to_owned(),
            message: any.value,
        };
        Self {
            code: u8::try_from(i32::from(status.code())).unwrap_or(2),
            message: status.message().to_owned(),
            details: details_of(&status).into_iter().map(detail).collect(),
        }
    }
}

fn request(method: &'static str, message: &[u8]) -> Request<RequestBody> {
    let framed = reply::framed(message.len(), |out| out.extend_from_slice(message));
    let mut request = Request::new(RequestBody::whole(framed));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(method);
    let content_type = HeaderValue::from_static("application/grpc");
    request.headers_mut().insert(header::CONTENT_TYPE, content_type);
    request
}

fn unframed(mut framed: Bytes) -> Bytes {
    framed.advance(PREFIX.min(framed.len()));
    framed
}

async fn message_of(reply: Reply) -> Result<Bytes, Status> {
    match reply {
        Reply::Message(framed) => Ok(unframed(framed)),
        Reply::Other(response) => routed(*response).await,
        Reply::Messages(_) => Err(Status::unimplemented("the method is a stream")),
    }
}

/// Reads the response of the general router.
async fn routed(response: Response<Body>) -> Result<Bytes, Status> {
    let (head, body) = response.into_parts();
    failed(Status::from_header_map(&head.headers))?;
    let (mut body, mut message) = (pin!(body), Vec::new());
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        match frame?.into_data() {
            Ok(piece) => message.extend_from_slice(&piece),
            Err(trailers) => failed(trailers.trailers_ref().and_then(Status::from_header_map))?,
        }
    }
    Ok(unframed(message.into()))
}

fn failed(status: Option<Status>) -> Result<(), Status> {
    match status {
        Some(status) if status.code() != tonic::Code::Ok => Err(status),
        _ => Ok(()),
    }
}
