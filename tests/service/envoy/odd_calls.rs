//! Odd calls that a real Envoy forwards: many of them on one connection that other clients share.

use std::net::SocketAddr;

use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{ShouldAllowStreamRequest, StreamedRequest};

use super::long_restarts::grpc_front;
use crate::support::envoy::{EnvoyProcess, loopback};
use crate::support::frames::{self, Raw, settings, window_update};
use crate::support::grpc::framed;
use crate::support::server::{Server, ask_under, config_on_fast};
use crate::support::{SOON, eventually_async};
use prost::Message as _;

const CALLS: u32 = 8000;
/// Calls that are open at a time.
const OPEN: u32 = 50;

/// Each of them was once reset, and a thousand resets ended the connection with the streams of all its clients.
#[tokio::test]
async fn odd_calls_end_no_stream_of_another_client() {
    let server = Server::ready(config_on_fast());
    let (front, admin) = (loopback(), loopback());
    let Some(envoy) = EnvoyProcess::run(&grpc_front(front, admin, [server.grpc; 2]), front, admin).await
    else {
        return;
    };
    let healthy = async || envoy.stat("cluster.weir.membership_healthy").await >= 1;
    eventually_async(SOON, "Envoy finds the node healthy", healthy).await;

    let channel = Endpoint::from_shared(format!("http://{front}")).unwrap().connect().await.unwrap();
    let (questions, sent) = tokio::sync::mpsc::channel(1);
    let ask = async |id| {
        let request = Some(ask_under("open", "x", "honest"));
        questions
            .send(ShouldAllowStreamRequest { requests: vec![StreamedRequest { id, request }] })
            .await
            .unwrap();
    };
    ask(1).await;
    let mut client = RateLimitServiceClient::new(channel);
    let mut answers = client.should_allow_stream(ReceiverStream::new(sent)).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().results[0].id, 1);

    let statuses = tokio::task::spawn_blocking(move || odd_calls(front)).await.unwrap();
    for (stream, status) in statuses {
        let expected = if stream % 4 == 1 { 12 } else { 0 };
        assert_eq!(status, Some(expected), "stream {stream}");
    }

    ask(2).await;
    let answer = answers.message().await.expect("the stream of another client goes on").unwrap();
    assert_eq!(answer.results[0].id, 2);
    let (_, metrics) = server.get("/metrics");
    assert!(metrics.contains("weir_floods_total 0"), "{metrics}");
}

/// Half of them of a path that is no URI, half with blanks around a value. The grpc-status of each.
fn odd_calls(front: SocketAddr) -> Vec<(u32, Option<u32>)> {
    let mut raw = Raw::connect(front);
    raw.send(&[frames::PREFACE, &settings(&[]), &window_update(0, 1 << 30)].concat());
    let mut decoder = fluke_hpack::Decoder::new();
    let message = framed(0, &ask_under("open", "x", "odd").encode_to_vec());
    let streams: Vec<u32> = (0..CALLS).map(|at| 1 + 2 * at).collect();
    let mut statuses = Vec::new();
    for some in streams.chunks(OPEN as usize) {
        let call = |stream: &u32| match stream % 4 {
            1 => frames::call(*stream, "/weir.v1.RateLimitService/<b>", &[], &message),
            _ => {
                frames::call(*stream, "/weir.v1.RateLimitService/ShouldAllow", &[("x-odd", " v\t")], &message)
            }
        };
        raw.send(&some.iter().flat_map(call).collect::<Vec<u8>>());
        let replies = raw.replies_with(&mut decoder, some);
        statuses.extend(some.iter().zip(replies).map(|(stream, reply)| (*stream, reply.status)));
    }
    statuses
}
