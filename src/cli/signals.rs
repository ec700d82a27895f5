//! SIGTERM and SIGINT: the first asks to stop, the second ends the process at once. SIGINT comes from a person who
//! waits, so that it skips the drain delay.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use weir_node::server::Shutdown;
use weir_node::telemetry::flush_logs;

const SIGTERM: &str = "SIGTERM";
const SIGINT: &str = "SIGINT";

/// What a shell reports for a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;
/// How long the second signal waits for the log, so that its last line is seen where somebody reads it.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Listens from now on. The future ends at the first signal; the second ends the process at once. Runs
/// on a thread of its own, so that no other thread's trouble keeps a signal from being handled.
pub(crate) fn shutdown() -> io::Result<impl Future<Output = Shutdown>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut terminate, mut interrupt) = runtime.block_on(async {
        io::Result::Ok((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
    })?;
    let (sender, receiver) = oneshot::channel();
    let listen = move || {
        runtime.block_on(async {
            let signal = either(&mut terminate, &mut interrupt).await;
            tracing::info!(signal, "stopping");
            let _ = sender.send(if signal == SIGINT { Shutdown::Immediate } else { Shutdown::Delayed });
            let signal = either(&mut terminate, &mut interrupt).await;
            tracing::warn!(signal, "stopping at once");
            flush_logs(LAST_WORDS);
            std::process::exit(INTERRUPTED);
        });
    };
    std::thread::Builder::new().name("weir-signals".to_owned()).spawn(listen)?;
    // The thread does not end before it has sent.
    Ok(async { receiver.await.unwrap_or(Shutdown::Immediate) })
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => SIGTERM,
        _ = interrupt.recv() => SIGINT,
    }
}
