//! Streams that do not end well: a reader that does not read, a caller that goes away, a message that is too large.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tokio_stream::StreamExt as _;
use tonic::Code;
use weir_proto::v1::ShouldAllowStreamRequest;
use weir_store::{Answers, Decision, Store};

use super::{all, message, next, open, open_with};
use crate::support::server::{Server, ask_under, config};
use crate::support::{SOON, eventually_async};

/// A thousand questions of one consumer.
fn thousand() -> ShouldAllowStreamRequest {
    message((0..1000).map(|id| (id, ask_under("open", "endless", "bob"))))
}

/// Counts the decisions under the strategy of [`thousand`], as the server says.
fn decided(server: &Server) -> u64 {
    let (_, metrics) = server.get("/metrics");
    let lines = metrics.lines().filter(|line| line.starts_with("weir_decisions_total{strategy=\"open\""));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// If the client stops reading answers, the server stops reading its questions. When the windows are full, nothing more
/// is decided. The rest is decided when the client reads again.
#[tokio::test]
async fn a_reader_that_does_not_read_holds_up_its_own_stream_only() {
    const MESSAGES: u64 = 400;
    let server = Server::start(config());
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    let messages = tokio_stream::iter(0..MESSAGES).map(move |_| {
        counted.fetch_add(1, SeqCst);
        thousand()
    });
    let mut client = server.client().await;
    let mut answers = client.should_allow_stream(messages).await.unwrap().into_inner();
    let mut seen = (0, 0);
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = (sent.load(SeqCst), decided(&server));
        if std::mem::replace(&mut seen, now) == now && now.1 > 0 {
            break;
        }
    }
    assert!(seen.0 < MESSAGES / 2, "{} of {MESSAGES} messages were taken", seen.0);
    // The client's window is 2 MiB, and an answer has some 95 bytes.
    assert!(seen.1 < 30_000, "{} were decided that nobody reads", seen.1);
    // It was not, when one stream had the window of the whole connection.
    let beside = client.should_allow(ask_under("burst", "beside it", "bob"));
    let beside = tokio::time::timeout(SOON, beside).await.expect("other calls of the connection go on");
    assert!(beside.unwrap().into_inner().allowed);
    assert_eq!(all(&mut answers).await.unwrap().len() as u64, MESSAGES * 1000);
}

/// A store that never answers, and counts its waiting callers.
#[derive(Clone, Default)]
struct Silent(Arc<AtomicU64>);

impl Store for Silent {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        struct Waits(Arc<AtomicU64>);
        impl Drop for Waits {
            fn drop(&mut self) {
                self.0.fetch_sub(1, SeqCst);
            }
        }
        for _ in decisions {
            let waiting = Arc::clone(&self.0);
            answers.later(async move {
                waiting.fetch_add(1, SeqCst);
                let _waits = Waits(waiting);
                std::future::pending().await
            });
        }
    }
}

/// Of three thousand questions one thousand wait for the store, until the caller goes away.
#[tokio::test]
async fn what_waits_is_bounded_and_goes_with_its_caller() {
    let store = Silent::default();
    let made = store.clone();
    let server = Server::with_store(config(), move || made.clone());
    let (sender, answers) = open(&server).await;
    for _ in 0..3 {
        sender.send(thousand()).await.unwrap();
    }
    eventually_async(SOON, "a thousand wait", async || store.0.load(SeqCst) == 1000).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(store.0.load(SeqCst), 1000);
    drop((sender, answers));
    eventually_async(SOON, "nobody waits", async || store.0.load(SeqCst) == 0).await;
}

/// Questions before a message that is too large are answered.
#[tokio::test]
async fn a_message_that_is_too_large_ends_its_stream_only() {
    let server = Server::start(config());
    let fine = message([(1, ask_under("open", "r", "bob"))]);
    let long = ask_under("open", &"x".repeat(65 << 10), "bob");
    let mut answers = open_with(&server, vec![fine, message([(2, long)])]).await;
    assert_eq!(next(&mut answers).await.unwrap()[0].0, 1);
    let status = all(&mut answers).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.message().contains("65536"), "{status}");
}
