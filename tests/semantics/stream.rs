//! The contract of `ShouldAllowStream`, over real sockets, on every store.

mod ends;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};
use weir_config::{Config, StoreConfig};
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::streamed_result::Result as Ended;
use weir_proto::v1::{
    ShouldAllowRequest, ShouldAllowResponse, ShouldAllowStreamRequest, ShouldAllowStreamResponse,
    StreamedRequest, StreamedResult,
};

use crate::support::server::{Server, ask_under, config};

weir_testing::on_every_store!(holds_on);

async fn holds_on(store: StoreConfig) {
    let server = Server::ready(Config { store, ..config() });
    answers_come_in_order_with_their_ids(&server).await;
    one_question_is_answered_before_the_next_is_asked(&server).await;
    a_bad_question_fails_alone(&server).await;
    the_same_key_is_decided_in_order(&server).await;
    exactly_the_limit_is_admitted(&server).await;
}

/// Ten thousand questions in messages of 1, 2, … questions; the caller has closed its side long before it
/// reads the last answer.
async fn answers_come_in_order_with_their_ids(server: &Server) {
    const COUNT: u64 = 10_000;
    let ask = |id: u64| ShouldAllowRequest {
        cost: Some(id % 7),
        ..ask_under("burst", "streamed in order", &format!("consumer {id}"))
    };
    let (mut messages, mut next) = (Vec::new(), 0);
    while next < COUNT {
        let upto = COUNT.min(next + 1 + messages.len() as u64 % 300);
        messages.push(message((next..upto).map(|id| (id * 3, ask(id)))));
        next = upto;
    }
    let answers = all(&mut open_with(server, messages).await).await.unwrap();
    assert_eq!(answers.len() as u64, COUNT);
    for (id, (answered_id, answer)) in (0..).zip(answers) {
        let (cost, answer) = (id % 7, answer.unwrap());
        assert_eq!((answered_id, answer.allowed, answer.degraded), (id * 3, cost <= 5, false));
        assert_eq!(answer.remaining, Some(if cost > 5 { 5 } else { 5 - cost }));
    }
}

/// Nothing waits for more to come.
async fn one_question_is_answered_before_the_next_is_asked(server: &Server) {
    let (sender, mut answers) = open(server).await;
    for id in 0..20 {
        sender.send(message([(7, ask_under("burst", "one by one", &id.to_string()))])).await.unwrap();
        let [(7, Ok(answer))] = &next(&mut answers).await.unwrap()[..] else { panic!("one answer") };
        assert!(answer.allowed);
    }
    // An empty message asks nothing, and is answered by nothing.
    sender.send(message([])).await.unwrap();
    drop(sender);
    assert!(answers.message().await.unwrap().is_none());
}

async fn a_bad_question_fails_alone(server: &Server) {
    let good = || ask_under("burst", "streamed with bad ones", "bob");
    let bad = [
        ask_under("burst", "", "bob"),
        ask_under("no such strategy", "r", "bob"),
        ask_under("burst", &"x".repeat(513), "bob"),
    ];
    let asks = [vec![good()], bad.to_vec(), vec![good()]].concat();
    let mut messages = vec![message((1..).zip(asks))];
    messages.push(ShouldAllowStreamRequest { requests: vec![StreamedRequest { id: 6, request: None }] });
    let answers = all(&mut open_with(server, messages).await).await.unwrap();
    let code = |answer: &Result<ShouldAllowResponse, (Code, String)>| {
        answer.as_ref().err().map_or(Code::Ok, |it| it.0)
    };
    let observed: Vec<(u64, Code)> = answers.iter().map(|(id, answer)| (*id, code(answer))).collect();
    let invalid = Code::InvalidArgument;
    let expected = [Code::Ok, invalid, Code::NotFound, invalid, Code::Ok, invalid];
    assert_eq!(observed, (1..).zip(expected).collect::<Vec<_>>());
    let message = &answers[2].1.as_ref().unwrap_err().1;
    assert!(message.contains("no such strategy"), "{message}");
    assert_eq!(answers[4].1.as_ref().unwrap().remaining, Some(3));
}

async fn the_same_key_is_decided_in_order(server: &Server) {
    let cost = |cost| ShouldAllowRequest { cost: Some(cost), ..ask_under("burst", "streamed key", "bob") };
    let peek = ShouldAllowRequest { peek: true, ..cost(1) };
    let asks = [cost(2), cost(4), peek, cost(3), cost(1), cost(0)];
    let messages = asks.map(|ask| message([(0, ask)])).to_vec();
    let answers = all(&mut open_with(server, messages).await).await.unwrap();
    let observed: Vec<_> =
        answers.into_iter().map(|(_, it)| it.unwrap()).map(|it| (it.allowed, it.remaining)).collect();
    let observed: Vec<_> =
        observed.into_iter().map(|(allowed, remaining)| (allowed, remaining.unwrap())).collect();
    assert_eq!(observed, [(true, 3), (false, 3), (true, 3), (true, 0), (false, 0), (true, 0)]);
}

/// Ten streams keep asking for the same five tokens.
async fn exactly_the_limit_is_admitted(server: &Server) {
    let mut streams = Vec::new();
    for _ in 0..10 {
        let asks = (0..500).map(|id| (id, ask_under("burst", "streamed crowd", "crowd")));
        let mut answers = open_with(server, vec![message(asks); 3]).await;
        streams.push(tokio::spawn(async move { all(&mut answers).await.unwrap() }));
    }
    let mut admitted = 0;
    for stream in streams {
        let answers = stream.await.unwrap();
        assert_eq!(answers.len(), 1500);
        admitted += answers.into_iter().filter(|(_, answer)| answer.as_ref().unwrap().allowed).count();
    }
    assert_eq!(admitted, 5);
}

fn message(asks: impl IntoIterator<Item = (u64, ShouldAllowRequest)>) -> ShouldAllowStreamRequest {
    let requests = asks.into_iter().map(|(id, request)| StreamedRequest { id, request: Some(request) });
    ShouldAllowStreamRequest { requests: requests.collect() }
}

/// A stream, and where its messages are put in.
async fn open(
    server: &Server,
) -> (mpsc::Sender<ShouldAllowStreamRequest>, Streaming<ShouldAllowStreamResponse>) {
    let (sender, messages) = mpsc::channel(1);
    let mut client: RateLimitServiceClient<_> = server.client().await;
    let answers = client.should_allow_stream(ReceiverStream::new(messages)).await.unwrap();
    (sender, answers.into_inner())
}

/// A stream of these messages, whose sending side is closed behind them.
async fn open_with(
    server: &Server,
    messages: Vec<ShouldAllowStreamRequest>,
) -> Streaming<ShouldAllowStreamResponse> {
    let (sender, answers) = open(server).await;
    tokio::spawn(async move {
        for message in messages {
            sender.send(message).await.unwrap();
        }
    });
    answers
}

/// An id, and the decision or the error with it.
type StreamedAnswer = (u64, Result<ShouldAllowResponse, (Code, String)>);

/// All that is still answered.
async fn all(answers: &mut Streaming<ShouldAllowStreamResponse>) -> Result<Vec<StreamedAnswer>, Status> {
    let mut observed = Vec::new();
    while let Some(message) = answers.message().await? {
        observed.extend(message.results.into_iter().map(answer_of));
    }
    Ok(observed)
}

/// The next message of answers.
async fn next(answers: &mut Streaming<ShouldAllowStreamResponse>) -> Result<Vec<StreamedAnswer>, Status> {
    let message = answers.message().await?.expect("there is another message");
    Ok(message.results.into_iter().map(answer_of).collect())
}

fn answer_of(result: StreamedResult) -> StreamedAnswer {
    let answer = match result.result.expect("every result says something") {
        Ended::Response(response) => Ok(response),
        Ended::Error(error) => Err((Code::from_i32(error.code), error.message)),
    };
    (result.id, answer)
}
