//! Calls of operators: list the leases of a key, and release them for their holders. Neither is a decision, a sample of
//! a controller, or an outcome of work.

use futures_util::future::join_all;
use weir_config::AccessRight;
use weir_core::strategy::Resolved;
use weir_node::limiter::Question;
use weir_store::StoreError;
use weir_time::clock;

use super::bounds::{self, MAX_RELEASED};
use super::{LeaseError, LeaseQuestion, Leases};
use crate::model::{LeaseCursor, LeaseOp, LeaseOutcome, LeasePage, WorkOutcome};
use crate::store::{LeaseStore as _, LeasesAsk};

/// Leases that an operator has released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleasedLeases {
    /// The ids of those that were held.
    pub ids: Vec<String>,
    /// Number of leases that the key has left.
    pub left: u64,
}

impl Leases {
    /// Lists the leases of the question's key after `after`.
    pub async fn list(
        &self,
        asked: &Question<'_>,
        after: Option<LeaseCursor<'_>>,
    ) -> Result<LeasePage, LeaseError> {
        let question = without_id(asked);
        let (resolved, _) = self.resolve_held(&question, AccessRight::Inspect)?;
        self.page(&question, &resolved, after).await.map_err(LeaseError::NotDone)
    }

    /// Releases leases of the question's key: these ids; or all, at most [`MAX_RELEASED`], if there are none.
    pub async fn release_all(
        &self,
        asked: &Question<'_>,
        ids: &[String],
    ) -> Result<ReleasedLeases, LeaseError> {
        let question = without_id(asked);
        let (resolved, _) = self.resolve_held(&question, AccessRight::Reset)?;
        self.checked(bounds::check_ids(ids))?;
        let ids = match ids {
            [] => self.first_ids(&question, &resolved).await.map_err(LeaseError::NotDone)?,
            ids => ids.to_vec(),
        };
        let op = LeaseOp::Release { outcome: WorkOutcome::Ignored, rtt: None };
        let started = clock::monotonic();
        let releases = ids.iter().map(|id| self.ask((asked, id), &resolved, op, started));
        let mut released = Vec::new();
        for (id, answer) in ids.iter().zip(join_all(releases).await) {
            // What was released stays released; the call can be repeated for the rest.
            if answer.map_err(LeaseError::NotDone)?.outcome == LeaseOutcome::Released {
                released.push(id.clone());
            }
        }
        let left = self.page(&question, &resolved, None).await.map_err(LeaseError::NotDone)?;
        Ok(ReleasedLeases { ids: released, left: left.count })
    }

    /// The ids of the leases that end first.
    async fn first_ids(
        &self,
        question: &LeaseQuestion<'_>,
        resolved: &Resolved<'_>,
    ) -> Result<Vec<String>, StoreError> {
        let (mut ids, mut last) = (Vec::new(), None);
        while ids.len() < MAX_RELEASED {
            let after = ids.last().zip(last).map(|(id, ends): (&String, _)| LeaseCursor { ends, id });
            let page = self.page(question, resolved, after).await?;
            last = page.leases.last().map(|lease| lease.ends);
            ids.extend(page.leases.into_iter().map(|lease| String::from(lease.id)));
            if !page.more {
                break;
            }
        }
        ids.truncate(MAX_RELEASED);
        Ok(ids)
    }

    async fn page(
        &self,
        question: &LeaseQuestion<'_>,
        resolved: &Resolved<'_>,
        after: Option<LeaseCursor<'_>>,
    ) -> Result<LeasePage, StoreError> {
        let (asked, started) = (&question.asked, clock::monotonic());
        let ask = LeasesAsk {
            strategy: resolved.strategy,
            subject: asked.subject(resolved.group),
            after,
            deadline: asked.deadline.map(|deadline| self.reserve.for_store(deadline, started)),
        };
        let page = self.store.leases(&ask).await;
        let took = clock::monotonic().saturating_duration_since(started);
        self.recorder.store_called(took, page.as_ref().err());
        page
    }
}

/// The question about a key.
fn without_id<'a>(asked: &Question<'a>) -> LeaseQuestion<'a> {
    LeaseQuestion { asked: asked.clone(), id: "" }
}
