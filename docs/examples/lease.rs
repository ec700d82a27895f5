//! Work under a lease of Weir. It is renewed at a third of its ttl, stopped when it is lost, and released at the end.
//!
//! `weir_proto` has the messages and clients of `proto/`; use the ones that you generate.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tonic::Status;
use tonic::transport::Channel;
use weir_proto::v1::concurrency_service_client::ConcurrencyServiceClient;
use weir_proto::v1::{AcquireRequest, AcquireResponse, ReleaseRequest, RenewRequest, WorkOutcome};

/// What became of the work.
#[derive(Debug)]
pub enum LeasedWork<T> {
    /// It is done.
    Done(T),
    /// The permits were not granted, and it did not begin.
    Refused(AcquireResponse),
    /// The lease was lost while it ran, so it was stopped: others may have the permits.
    Lost,
}

/// Does `work` while a lease is held. It says its result and how it went.
pub async fn with_lease<T>(
    mut client: ConcurrencyServiceClient<Channel>,
    request: AcquireRequest,
    work: impl Future<Output = (T, WorkOutcome)>,
) -> Result<LeasedWork<T>, Status> {
    let asked = Instant::now();
    let answer = client.acquire(request.clone()).await?.into_inner();
    if !answer.allowed {
        return Ok(LeasedWork::Refused(answer));
    }
    let ttl = answer.expires_after.and_then(|span| Duration::try_from(span).ok());
    let Some(ttl) = ttl.filter(|_| !answer.id.is_empty()) else {
        // There is no lease: nothing to renew, nothing to release.
        return Ok(LeasedWork::Done(work.await.0));
    };
    let (value, outcome) = tokio::select! {
        done = work => done,
        () = renew_until_lost(client.clone(), &request, asked, ttl) => return Ok(LeasedWork::Lost),
    };
    let AcquireRequest { resource, consumer, strategy, id, attributes, .. } = request;
    let outcome = outcome.into();
    let release = ReleaseRequest { resource, consumer, strategy, id, attributes, outcome, rtt: None };
    // If this fails, the lease ends by itself.
    let _ = client.release(release).await;
    Ok(LeasedWork::Done(value))
}

/// Returns when the lease is lost: when Weir says so, or when it could not be reached for a whole ttl.
async fn renew_until_lost(
    mut client: ConcurrencyServiceClient<Channel>,
    request: &AcquireRequest,
    mut renewed: Instant,
    ttl: Duration,
) {
    let AcquireRequest { resource, consumer, strategy, id, attributes, ttl: wanted, .. } = request.clone();
    let renew = RenewRequest { resource, consumer, strategy, id, attributes, ttl: wanted };
    while renewed.elapsed() < ttl {
        sleep(ttl / 3).await;
        let asked = Instant::now();
        match timeout(ttl / 3, client.renew(renew.clone())).await {
            Ok(Ok(answer)) if answer.get_ref().held => renewed = asked,
            Ok(Ok(_)) => return,
            Ok(Err(_)) | Err(_) => {}
        }
    }
}
