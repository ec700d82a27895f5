//! Open files: the process raises its limit, and keeps a reserve of files that clients cannot use up.
//!
//! Each connection is an open file, be it of a client, to Redis or to the admin port. If clients could take the
//! last file, Weir could neither reconnect to Redis after a failover nor serve its metrics.
//!
//! ```text
//!   0 ────────────────────────────── limit − reserve ──────────── limit
//!     what was open at the start,                     what is opened later:
//!     and connections of clients                      Redis, admin, files that are read again
//! ```
//!
//! The system gives each new file the lowest free descriptor. So if a client's connection gets a descriptor in the
//! reserve, all lower ones are in use, and the connection is closed at once. No client keeps a descriptor of the
//! reserve, so all of them stay free for everything else.

use std::fmt;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Reserve for files that do not depend on the configuration: files that are read again, DNS look-ups.
const STANDING_RESERVE: u64 = 16;

const FEWEST_CONNECTIONS: u64 = 16;

/// Files of a worker's runtime: its epoll instance, two handles to it, and its waker.
const FILES_PER_WORKER: u64 = 4;

/// The limit of open files, and the reserve that clients never get.
#[derive(Debug, Clone)]
pub(super) struct OpenFiles {
    /// The process's limit of open files; `None` if there is none.
    limit: Option<u64>,
    /// Number of descriptors below the limit that clients never get. Clones share it.
    reserve: Arc<AtomicU64>,
}

/// The limit of open files leaves too few connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the limit of open files is {limit}, and Weir needs at least {needed}: {standing} are open without a client, and half \
     of the limit is kept for Redis and the admin port; raise the limit (`ulimit -n`, LimitNOFILE=)"
)]
pub struct TooFewFiles {
    limit: u64,
    needed: u64,
    standing: u64,
}

/// Raises the soft limit of open files to the hard limit. Best effort: a process that may not do so keeps its
/// limit.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => tracing::debug!(before = current, now = maximum, "limit of open files raised"),
        Err(error) => tracing::warn!(%error, current, maximum, "cannot raise the limit of open files"),
    }
}

impl OpenFiles {
    /// Creates the limits of this process, with a reserve that includes the files of the store and the admin port.
    pub(super) fn of_process(reserved: usize) -> Self {
        Self::with_limit(getrlimit(Resource::Nofile).current, reserved)
    }

    /// Creates limits. Under a very low limit, the reserve and the clients get half each.
    fn with_limit(limit: Option<u64>, reserved: usize) -> Self {
        let files = Self { limit, reserve: Arc::default() };
        files.reserve(reserved);
        files
    }

    /// Reserves files for the store and the admin port.
    pub(super) fn reserve(&self, reserved: usize) {
        let wanted = STANDING_RESERVE + reserved as u64;
        self.reserve.store(self.limit.map_or(wanted, |limit| wanted.min(limit / 2)), Relaxed);
    }

    fn reserved(&self) -> u64 {
        self.reserve.load(Relaxed)
    }

    /// True if a client may keep this file: its descriptor is below the reserve.
    pub(super) fn has_place_for(&self, file: &impl AsRawFd) -> bool {
        self.allows(file.as_raw_fd())
    }

    fn allows(&self, number: RawFd) -> bool {
        let number = u64::try_from(number).unwrap_or(0);
        self.limit.is_none_or(|limit| number < limit - self.reserved())
    }

    /// True if a client that connects now would get a file below the reserve.
    pub(super) fn has_place(&self) -> bool {
        File::open("/dev/null").is_ok_and(|file| self.has_place_for(&file))
    }

    /// Warns if `max_connections` do not fit. Fails if fewer than [`FEWEST_CONNECTIONS`] fit.
    pub(super) fn compare(&self, max_connections: usize, workers: usize) -> Result<(), TooFewFiles> {
        let Some(limit) = self.limit else { return Ok(()) };
        let standing = open_now() + FILES_PER_WORKER * workers as u64;
        let fitting = (limit - self.reserved()).saturating_sub(standing);
        if fitting < FEWEST_CONNECTIONS {
            // At limits this low the reserve is half of the limit.
            return Err(TooFewFiles { limit, needed: 2 * (standing + FEWEST_CONNECTIONS), standing });
        }
        if (max_connections as u64) > fitting {
            tracing::warn!(
                max_connections,
                fitting,
                limit,
                reserve = self.reserved(),
                "server.limits.max_connections does not fit into the limit of open files: raise the limit \
                 (`ulimit -n`, LimitNOFILE=), or lower max_connections"
            );
        }
        Ok(())
    }
}

impl fmt::Display for OpenFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            Some(limit) => write!(f, "{limit}, {} of them reserved", self.reserved()),
            None => f.write_str("any number"),
        }
    }
}

/// Returns the number of open files; if the system does not tell, the usual number at the start of a process.
fn open_now() -> u64 {
    const BEGINNING: u64 = 16;
    std::fs::read_dir("/dev/fd").map_or(BEGINNING, |files| files.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_the_end_of_the_numbers() {
        let files = OpenFiles::with_limit(Some(1024), 36);
        assert_eq!(files.reserved(), 52);
        assert!(files.allows(971) && !files.allows(972));
        // With the first queue the store has more connections.
        files.clone().reserve(56);
        assert!(files.allows(951) && !files.allows(952));
        // A low limit is split in halves.
        let files = OpenFiles::with_limit(Some(100), 36);
        assert!(files.allows(49) && !files.allows(50));
        // A very low limit leaves too few, and the error names the limit that is needed.
        let TooFewFiles { limit, needed, .. } =
            OpenFiles::with_limit(Some(16), 36).compare(1, 2).unwrap_err();
        assert!(limit == 16 && needed >= 2 * (FEWEST_CONNECTIONS + 8), "{needed}");
        assert_eq!(OpenFiles::with_limit(Some(needed + 100), 36).compare(1, 2), Ok(()));
        assert!(OpenFiles::with_limit(None, 36).allows(RawFd::MAX));
    }
}
