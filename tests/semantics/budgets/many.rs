//! Batches and streams take costs by name and holds, one decision for each question.

use prost_types::Duration;
use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_proto::v1::should_allow_result::Result as Either;
use weir_proto::v1::streamed_result::Result as Ended;
use weir_proto::v1::{
    Cost, SettleOutcome, SettleRequest, ShouldAllowBatchRequest, ShouldAllowRequest, ShouldAllowResponse,
    ShouldAllowStreamRequest, StreamedRequest,
};

use crate::support::requests::About as _;
use crate::support::server::{Server, ask_under, config};

weir_testing::on_every_store!(each_question_is_held_for_itself);

const RULES: &str = "
strategies:
  many:
    hold: { max: 1m }
    limits: [{ name: output, per: [consumer], cost: output, fixed_window: { limit: 100, window: 1w, anchored: true } }]
";

fn held(id: &str, output: u64, at_least: Option<u64>) -> ShouldAllowRequest {
    ShouldAllowRequest {
        id: id.to_owned(),
        hold_for: Some(Duration { seconds: 30, nanos: 0 }),
        costs: [("output".to_owned(), Cost { cost: output, at_least })].into(),
        ..ask_under("many", "batches", "bob")
    }
}

async fn each_question_is_held_for_itself(store: StoreConfig) {
    let rules = Config::parse(RULES, "weir.yaml", &ConfigOverrides::default()).unwrap().rules;
    let server = Server::ready(Config { store, rules, ..config() });
    let mut client = server.client().await;
    let said =
        |answer: &ShouldAllowResponse| (answer.allowed, answer.limits[0].granted, answer.limits[0].held);
    // The first ones of a batch and of a message leave less to those that follow.
    let requests =
        vec![held("a", 40, None), held("a", 40, None), held("b", 70, None), held("c", 70, Some(1))];
    let batch = client.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap().into_inner();
    let answers = batch.results.iter().map(|result| match &result.result {
        Some(Either::Response(answer)) => said(answer),
        other => panic!("{other:?}"),
    });
    let answers: Vec<_> = answers.collect();
    assert_eq!(answers, [(true, 40, 40), (true, 40, 40), (false, 0, 40), (true, 60, 100)]);
    let settle = |id: &str, output: u64| SettleRequest {
        id: id.to_owned(),
        costs: [("output".to_owned(), output)].into(),
        ..SettleRequest::about("many", "batches", "bob")
    };
    let settled = client.settle(settle("c", 0)).await.unwrap().into_inner();
    assert_eq!((settled.outcome(), settled.limits[0].remaining), (SettleOutcome::Settled, 60));
    let requests = [held("d", 50, None), held("a", 41, None), held("e", 50, Some(10))];
    let requests = (0..).zip(requests).map(|(id, request)| StreamedRequest { id, request: Some(request) });
    let message = ShouldAllowStreamRequest { requests: requests.collect() };
    let mut stream = client.should_allow_stream(tokio_stream::iter([message])).await.unwrap().into_inner();
    let mut answers = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        answers.extend(message.results.into_iter().map(|result| match result.result {
            Some(Ended::Response(answer)) => Ok(said(&answer)),
            Some(Ended::Error(error)) => Err(error.code),
            None => panic!("an answer"),
        }));
    }
    assert_eq!(answers, [Ok((true, 50, 90)), Err(tonic::Code::AlreadyExists as i32), Ok((true, 10, 100))]);
}
