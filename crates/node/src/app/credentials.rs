//! The files of tokens and keys, read again when they change.

use std::sync::Arc;

use crate::access::{CallerAccess, CredentialFault};
use crate::readiness::FileKind;
use crate::watch::{ReloadReport, WatchedFiles};

pub(super) struct WatchedCredentials(pub(super) Arc<CallerAccess>);

impl WatchedFiles for WatchedCredentials {
    fn kind(&self) -> FileKind {
        FileKind::CREDENTIALS
    }

    fn poll(&mut self) -> Option<ReloadReport> {
        self.0.poll().map(logged)
    }

    fn reload(&mut self) -> ReloadReport {
        logged(self.0.reload())
    }
}

fn logged(read: Result<(), CredentialFault>) -> ReloadReport {
    match read {
        Ok(()) => {
            tracing::info!("tokens and keys reloaded");
            Ok(())
        }
        Err(error) => {
            tracing::warn!(%error, "files of tokens and keys rejected; keeping the previous ones");
            Err(error.0)
        }
    }
}
