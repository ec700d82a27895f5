//! The buffer budget: it bounds the bytes that all connections of a process hold for their clients.
//!
//! It counts the memory of open calls, messages from their announcement until their calls are decided, retained
//! metadata, and unsent responses. Each worker takes bytes from the budget in chunks, so a connection touches
//! memory that workers share only when its worker needs a further chunk. A message that arrives in one read and is
//! answered in one write is never counted.
//!
//! When the budget is full, the connection that holds most has to free memory: see [`Account::grow`].

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use slab::Slab;
use tonic::Status;

use crate::open_streams::OpenStreams;

/// Smallest and largest chunk that workers take, in bytes.
const CHUNK: (usize, usize) = (16 << 10, 256 << 10);

/// The buffer budget of a process. Clones share it.
#[derive(Debug, Clone)]
pub struct BufferBudget(Arc<SharedBudget>);

#[derive(Debug)]
struct SharedBudget {
    limit: usize,
    chunk: usize,
    taken: AtomicUsize,
    connections: Mutex<Slab<Arc<Holder>>>,
    streams: OpenStreams,
}

/// The bytes that one connection holds, visible to the others.
#[derive(Debug, Default)]
struct Holder {
    held: AtomicUsize,
    /// Bytes that other connections have demanded and that are not freed yet.
    demanded: AtomicUsize,
    waker: AtomicWaker,
}

/// One worker's share of the budget. Only its own thread changes it.
#[derive(Debug, Clone)]
pub struct WorkerBudget(Arc<WorkerShare>);

#[derive(Debug)]
struct WorkerShare {
    budget: BufferBudget,
    /// Bytes taken by the worker and held by no connection.
    spare: AtomicUsize,
    /// Number of open accounts. At zero nothing is kept spare.
    accounts: AtomicUsize,
}

/// Bytes that are held until this is dropped, for servers whose connections have no accounts.
#[derive(Debug)]
pub struct HeldBytes {
    budget: BufferBudget,
    bytes: usize,
}

/// The account of one connection.
#[derive(Debug)]
pub(crate) struct Account {
    worker: WorkerBudget,
    holder: Arc<Holder>,
    key: usize,
    held: usize,
}

/// The reason why an account cannot grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The connection holds most of all: it must free memory first.
    HoldsMost,
    /// The overdraft is used up: the outstanding demands on other connections come first.
    Exhausted,
}

impl BufferBudget {
    /// Creates a budget of `limit` bytes for `workers` workers.
    #[must_use]
    pub fn new(limit: usize, workers: usize) -> Self {
        Self::with_streams(limit, workers, usize::MAX)
    }

    /// Creates a budget of `limit` bytes for `workers` workers, and a bound of `max_streams` open streams.
    #[must_use]
    pub fn with_streams(limit: usize, workers: usize, max_streams: usize) -> Self {
        let chunk = (limit / 8 / workers.max(1)).clamp(CHUNK.0, CHUNK.1);
        Self(Arc::new(SharedBudget {
            limit,
            chunk,
            taken: AtomicUsize::new(0),
            connections: Mutex::default(),
            streams: OpenStreams::new(max_streams),
        }))
    }

    /// Creates the share of one more worker.
    #[must_use]
    pub fn worker(&self) -> WorkerBudget {
        WorkerBudget(Arc::new(WorkerShare {
            budget: self.clone(),
            spare: AtomicUsize::new(0),
            accounts: AtomicUsize::new(0),
        }))
    }

    /// Returns the bytes taken: those held, and at most two spare chunks for each worker that has connections.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.0.taken.load(Relaxed)
    }

    /// Returns the limit in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Returns the count of open streams.
    #[must_use]
    pub fn streams(&self) -> &OpenStreams {
        &self.0.streams
    }

    /// Holds `bytes`; `None` if they do not fit into the budget.
    #[must_use]
    pub fn hold(&self, bytes: usize) -> Option<HeldBytes> {
        self.hold_beside(bytes, 0)
    }

    /// Holds `bytes` if so many others stay free; `None` if they do not.
    #[must_use]
    pub fn hold_beside(&self, bytes: usize, free: usize) -> Option<HeldBytes> {
        let fits = self.take(bytes, self.0.limit.saturating_sub(free));
        fits.then(|| HeldBytes { budget: self.clone(), bytes })
    }

    /// Holds `bytes` even beyond the limit.
    #[must_use]
    pub fn hold_anyway(&self, bytes: usize) -> HeldBytes {
        self.0.taken.fetch_add(bytes, Relaxed);
        HeldBytes { budget: self.clone(), bytes }
    }

    /// True if more bytes are taken than the limit.
    #[must_use]
    pub fn is_overdrawn(&self) -> bool {
        self.taken() > self.0.limit
    }

    /// Takes `bytes`; false if the sum would exceed `limit`.
    fn take(&self, bytes: usize, limit: usize) -> bool {
        let fits = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= limit);
        self.0.taken.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }

    /// Returns the bytes by which outstanding demands may overdraw the budget, until the connections in question
    /// have had their turns.
    fn overdraft(&self) -> usize {
        self.0.limit / 8
    }
}

impl WorkerBudget {
    /// Returns the budget that this is a share of.
    #[must_use]
    pub fn budget(&self) -> &BufferBudget {
        &self.0.budget
    }

    pub(crate) fn open(&self) -> Account {
        self.0.accounts.fetch_add(1, Relaxed);
        let holder = Arc::new(Holder::default());
        let key = self.0.budget.0.connections.lock().insert(Arc::clone(&holder));
        Account { worker: self.clone(), holder, key, held: 0 }
    }

    /// Moves bytes from the budget to a connection; false if more than `limit` would be taken.
    fn draw(&self, bytes: usize, limit: usize) -> bool {
        let (spare, budget) = (self.0.spare.load(Relaxed), &self.0.budget);
        if spare >= bytes {
            // Received bytes are held even beyond the limit. When some of these are freed, they do not become space
            // for others.
            if bytes > 0 && limit != usize::MAX && budget.taken() > limit {
                return false;
            }
            self.0.spare.store(spare - bytes, Relaxed);
            return true;
        }
        let missing = bytes - spare;
        let whole = missing.div_ceil(budget.0.chunk).saturating_mul(budget.0.chunk);
        // Beyond the limit only the missing bytes are taken: the rest of a chunk would be spare bytes that do not
        // exist.
        let within = limit.min(budget.0.limit);
        let tries = [(whole, within), (missing, limit)];
        let Some((taken, _)) = tries.into_iter().find(|(bytes, limit)| budget.take(*bytes, *limit)) else {
            return false;
        };
        self.0.spare.store(spare + taken - bytes, Relaxed);
        true
    }

    /// Returns a connection's bytes to the worker, and surplus spare bytes to the budget.
    fn put_back(&self, bytes: usize) {
        let (spare, chunk) = (self.0.spare.load(Relaxed) + bytes, self.0.budget.0.chunk);
        let kept = if spare > 2 * chunk { chunk } else { spare };
        self.0.spare.store(kept, Relaxed);
        if kept < spare {
            self.0.budget.0.taken.fetch_sub(spare - kept, Relaxed);
        }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.budget.0.taken.fetch_sub(self.bytes, Relaxed);
    }
}

impl WorkerShare {
    fn give_spare_back(&self) {
        self.budget.0.taken.fetch_sub(self.spare.swap(0, Relaxed), Relaxed);
    }
}

impl Drop for WorkerShare {
    fn drop(&mut self) {
        self.give_spare_back();
    }
}

impl Account {
    /// Holds `bytes` more. When the budget is full, the connection that holds most has to free memory. If that is
    /// another one, it gets a demand for its next turn, and these bytes are held already.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Full> {
        if !self.worker.draw(bytes, self.worker.0.budget.0.limit) {
            let budget = self.worker.0.budget.clone();
            let most = {
                let connections = budget.0.connections.lock();
                let load =
                    |holder: &Holder| holder.held.load(Relaxed).saturating_sub(holder.demanded.load(Relaxed));
                connections
                    .iter()
                    .max_by_key(|(_, holder)| load(holder))
                    .map(|(_, holder)| Arc::clone(holder))
            };
            let Some(most) = most.filter(|most| !Arc::ptr_eq(most, &self.holder)) else {
                return Err(Full::HoldsMost);
            };
            let most_taken = budget.0.limit + budget.overdraft();
            if !self.worker.draw(bytes, most_taken) {
                // Headers are held without a reservation and may exceed even the overdraft. Nothing else would
                // demand the excess.
                let excess = budget.taken().saturating_sub(most_taken);
                if excess > 0 && most.demanded.load(Relaxed) == 0 {
                    most.demanded.fetch_add(excess + bytes, Relaxed);
                    most.waker.wake();
                }
                return Err(Full::Exhausted);
            }
            most.demanded.fetch_add(bytes, Relaxed);
            most.waker.wake();
        }
        self.set(self.held + bytes);
        Ok(())
    }

    /// Holds exactly `bytes`, even beyond the limit: received bytes cannot be sent back.
    pub(crate) fn set_exactly(&mut self, bytes: usize) {
        if bytes > self.held && !self.worker.draw(bytes - self.held, usize::MAX) {
            return;
        }
        if bytes < self.held {
            self.worker.put_back(self.held - bytes);
            // Memory that was freed without a demand counts against the demand.
            if self.holder.demanded.load(Relaxed) > 0 {
                self.has_given(if bytes == 0 { usize::MAX } else { self.held - bytes });
            }
        }
        if bytes != self.held {
            self.set(bytes);
        }
    }

    pub(crate) fn budget(&self) -> &BufferBudget {
        self.worker.budget()
    }

    /// Returns the bytes that the connection holds.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// Returns the bytes that other connections demand of this one. `waker` is woken when there are more.
    pub(crate) fn demanded(&self, waker: &Waker) -> usize {
        if self.held == 0 {
            return 0;
        }
        self.holder.waker.register(waker);
        self.holder.demanded.load(Relaxed)
    }

    /// Deducts freed bytes from the demand; `usize::MAX` if nothing more can be freed.
    pub(crate) fn has_given(&self, bytes: usize) {
        let rest = |demanded: usize| Some(demanded.saturating_sub(bytes));
        let _ = self.holder.demanded.fetch_update(Relaxed, Relaxed, rest);
    }

    fn set(&mut self, bytes: usize) {
        self.held = bytes;
        self.holder.held.store(bytes, Relaxed);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.worker.put_back(self.held);
        self.worker.0.budget.0.connections.lock().try_remove(self.key);
        if self.worker.0.accounts.fetch_sub(1, Relaxed) == 1 {
            self.worker.0.give_spare_back();
        }
    }
}

/// Returns the status of a call for which there is no space.
#[must_use]
pub fn no_space() -> Status {
    Status::resource_exhausted(
        "max_buffered_bytes: the server holds as many bytes as it may; try again later",
    )
}
