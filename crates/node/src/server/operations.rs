//! The port of operators: AdminService, LeaseAdminService, ControlService and those of features on an address of their own,
//! `server.control_listen`.
//!
//! It is one more worker with an acceptor of its own, so that operators reach it while the workers are busy.

use std::io;
use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use weir_config::{ServerConfig, ServerLimits};
use weir_grpc::BufferBudget;
use weir_store::Store;

use super::accept::Acceptor;
use super::open_files::OpenFiles;
use super::worker::Workers;
use super::{Listener, Parts, ServerError, runtime};
use crate::owned_thread::OwnedThread;

pub(crate) const MAX_OPERATORS: usize = 64;

/// Bytes that their connections may hold for them.
const MAX_BUFFERED: usize = 16 << 20;

/// Starts the thread of the port. Its calls in flight finish once it is dropped. `parts` must serve
/// [`PortServices::Operations`](super::PortServices::Operations).
pub(crate) fn start_operations<S: Store>(
    config: &ServerConfig,
    listener: Listener,
    parts: Parts<S>,
) -> io::Result<OwnedThread> {
    let config = config.clone();
    OwnedThread::spawn("weir-operations", move |stopped| {
        if let Err(error) = serve(&config, listener, parts, stopped) {
            tracing::error!(%error, "the operators' port failed");
        }
    })
}

fn serve<S: Store>(
    config: &ServerConfig,
    listener: Listener,
    parts: Parts<S>,
    end: oneshot::Receiver<()>,
) -> Result<(), ServerError> {
    let ServerLimits { max_open_streams, max_message_bytes, .. } = config.limits;
    let budget = BufferBudget::with_streams(MAX_BUFFERED.max(2 * max_message_bytes), 1, max_open_streams);
    let (stop, stopped) = watch::channel(());
    let (files, tls) = (OpenFiles::of_process(0), parts.tls.clone());
    let refused = parts.metrics.connections_refused();
    let mut workers = Workers::start(1, &budget, config, parts, &stopped)?;
    runtime()?.block_on(async {
        let acceptor =
            Acceptor::new(listener, workers.hands(), MAX_OPERATORS, files, Arc::clone(&refused), tls)?;
        tokio::select! {
            _ = end => {}
            never = acceptor.run() => match never {},
            lost = workers.any_ended() => return Err(lost),
        }
        acceptor.close();
        drop(stop);
        workers.all_ended().await
    })
}
