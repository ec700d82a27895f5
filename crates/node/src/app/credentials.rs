//! The files of tokens and keys, read again when they change.

use std::sync::Arc;

use crate::access::CallerAccess;
use crate::watch::WatchedFiles;

/// The files of credentials.
pub(super) struct WatchedCredentials(pub(super) Arc<CallerAccess>);

impl WatchedFiles for WatchedCredentials {
    fn look(&mut self) {
        match self.0.look() {
            Some(Ok(())) => tracing::info!("tokens and keys were read again"),
            Some(Err(error)) => {
                tracing::warn!(%error, "the files of credentials have mistakes; the old ones stay");
            }
            None => {}
        }
    }

    fn reload(&mut self) -> Result<(), Vec<String>> {
        match self.0.reload() {
            Ok(()) => {
                tracing::info!("tokens and keys were read again");
                Ok(())
            }
            Err(error) => {
                tracing::warn!(%error, "the files of credentials have mistakes; the old ones stay");
                Err(vec![error.to_string()])
            }
        }
    }
}
