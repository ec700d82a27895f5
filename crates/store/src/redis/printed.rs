//! Passwords that a command prints. Each is kept for all connections of the process, for a minute, or until Redis refuses
//! it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, oneshot};
use weir_time::clock::monotonic;

use super::password_command::{CommandError, run};

/// Time for which a password is used for new connections.
const KEPT: Duration = Duration::from_secs(60);

/// The command begins no sooner than this after it ended, whatever Redis refuses.
const APART: Duration = Duration::from_secs(1);

/// The passwords of Weir and of its user at the sentinels.
#[derive(Default)]
pub(super) struct PrintedPasswords {
    pub(super) own: PrintedPassword,
    pub(super) sentinels: PrintedPassword,
}

#[derive(Default)]
pub(super) struct PrintedPassword(Arc<Mutex<Option<Printed>>>);

struct Printed {
    at: Instant,
    outcome: Result<Arc<str>, CommandError>,
    is_refused: bool,
}

pub(super) struct GivenPassword {
    pub(super) text: Arc<str>,
    /// True if the command was run for this caller.
    pub(super) is_new: bool,
}

impl PrintedPassword {
    /// Returns the password that is kept, or runs the command. Callers wait for a command that runs.
    pub(super) async fn get(&self, words: &Arc<[String]>) -> Result<GivenPassword, CommandError> {
        let mut kept = Arc::clone(&self.0).lock_owned().await;
        if let Some(printed) = &*kept {
            let age = monotonic().saturating_duration_since(printed.at);
            match &printed.outcome {
                Ok(text) if age < KEPT && !printed.is_refused => {
                    return Ok(GivenPassword { text: Arc::clone(text), is_new: false });
                }
                Err(error) if age < APART => return Err(error.clone()),
                _ => tokio::time::sleep(APART.saturating_sub(age)).await,
            }
        }
        let (ended, outcome) = oneshot::channel();
        let words = Arc::clone(words);
        // A thread of its own, which delays neither decisions nor the end of the process. The lock goes with it, so that
        // one command runs at a time, even if this caller is gone.
        let thread = std::thread::Builder::new().name("weir-password".to_owned()).spawn(move || {
            let outcome = run(&words).map(Arc::from);
            *kept = Some(Printed { at: monotonic(), outcome: outcome.clone(), is_refused: false });
            drop(kept);
            let _ = ended.send(outcome);
        });
        thread.map_err(|error| CommandError::start(&error))?;
        let text = outcome.await.unwrap_or(Err(CommandError::Stopped))?;
        Ok(GivenPassword { text, is_new: true })
    }

    /// Marks the password as refused, if it is still the current one.
    pub(super) async fn refused(&self, password: &GivenPassword) {
        if let Some(printed) = &mut *self.0.lock().await
            && printed.outcome.as_ref().is_ok_and(|text| Arc::ptr_eq(text, &password.text))
        {
            printed.is_refused = true;
        }
    }
}
