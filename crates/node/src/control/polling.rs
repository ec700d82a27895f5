//! Following Redis: what changed since the last look, or everything after a loss.

use ring::rand::{SecureRandom as _, SystemRandom};
use weir_core::control::{ControlChanges, ControlPosition, ControlReconciled, ControlRecord};
use weir_store::redis::ControlLink;

use super::store::ControlStore;
use super::task::ControlTask;

/// Parts of the changes that one look reads.
const MAX_PARTS: usize = 200;

/// Records that one call sends to Redis.
const BATCH: usize = 100;

impl ControlTask {
    /// Asks Redis for changes. The memory store has none that this node did not make.
    pub(super) async fn poll(&mut self) {
        for _ in 0..MAX_PARTS {
            let ControlStore::Redis(link) = &mut self.store else { return };
            let polled = link.poll(self.mirror.position()).await;
            let result = match polled {
                Ok(ControlChanges::Since { records, position }) => {
                    let is_last = records.is_empty();
                    self.followed(records, position);
                    is_last.then_some(Ok(()))
                }
                Ok(ControlChanges::Everything { .. }) => Some(self.read_all().await),
                Err(error) => Some(Err(error)),
            };
            if let Some(result) = result {
                self.report(result);
                return;
            }
        }
    }

    fn followed(&mut self, records: Vec<ControlRecord>, position: ControlPosition) {
        if self.mirror.apply(records, position) {
            self.changed(None);
        }
    }

    /// Reads every entry, and sends back what this node has and Redis has not.
    async fn read_all(&mut self) -> Result<(), String> {
        let ControlStore::Redis(link) = &mut self.store else { return Ok(()) };
        let (records, position) = link.read_all().await?;
        let now = self.clock.now().0;
        let ControlReconciled { to_send, lost } = self.mirror.everything(now, records, position);
        if let Some(lost) = lost {
            tracing::warn!(
                from = lost.from,
                to = lost.to,
                sent_back = to_send.len(),
                "Redis has lost changes of live control between these versions, or is another one: this node sends back \
                 what it knows of them; what no node knows is lost"
            );
        }
        self.changed(None);
        let ControlStore::Redis(link) = &mut self.store else { return Ok(()) };
        send(link, &to_send).await
    }

    fn report(&mut self, result: Result<(), String>) {
        match (&self.incomplete, result) {
            (Some(_), Ok(())) => {
                self.incomplete = None;
                tracing::info!("live control follows Redis");
            }
            (None, Err(error)) => {
                tracing::warn!(%error, "Redis does not answer: changes by other nodes are not seen until it does");
                self.incomplete = Some(format!("Redis does not answer: {error}"));
            }
            (None, Ok(())) | (Some(_), Err(_)) => {}
        }
    }
}

async fn send(link: &mut ControlLink, records: &[ControlRecord]) -> Result<(), String> {
    for batch in records.chunks(BATCH) {
        let mut bytes = [0; 8];
        SystemRandom::new().fill(&mut bytes).map_err(|_| "the system has no random numbers".to_owned())?;
        link.merge(u64::from_le_bytes(bytes).max(1), batch).await?;
    }
    Ok(())
}
