//! The budget of buffered bytes: what all connections of a process may hold for their clients.
//!
//! Counted are open calls by what they take, messages from their announcement until their calls are decided, retained
//! metadata and unsent answers. Each worker takes bytes from the budget in chunks, so a connection touches memory that workers share
//! only when its worker needs a further chunk. A message that arrives in one read and is answered in one write is
//! never counted.
//!
//! When the budget is full, the connection that holds most has to give: see [`Account::grow`].

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

/// Bounds of the chunks that workers take.
const CHUNK: (usize, usize) = (16 << 10, 256 << 10);

/// The budget of a process. Clones share it.
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

/// What one connection holds, as the others see it.
#[derive(Debug, Default)]
struct Holder {
    held: AtomicUsize,
    /// Bytes that another connection has asked it to give.
    demanded: AtomicUsize,
    waker: AtomicWaker,
}

/// One worker's part of the budget. Only its own thread changes it.
#[derive(Debug, Clone)]
pub struct WorkerBudget(Arc<WorkerShare>);

#[derive(Debug)]
struct WorkerShare {
    budget: BufferBudget,
    /// Bytes that the worker has taken and no connection holds.
    spare: AtomicUsize,
    /// Connections with an account. Without any, nothing is spare.
    accounts: AtomicUsize,
}

/// Bytes that are held until this is dropped: for servers whose connections have no accounts.
#[derive(Debug)]
pub struct HeldBytes {
    budget: BufferBudget,
    bytes: usize,
}

/// What one connection holds.
#[derive(Debug)]
pub(crate) struct Account {
    worker: WorkerBudget,
    holder: Arc<Holder>,
    key: usize,
    held: usize,
}

/// Why an account cannot grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// This connection holds most: it has to give first.
    HoldsMost,
    /// Other connections were asked to give more than they may owe already.
    Exhausted,
}

impl BufferBudget {
    /// A budget of `limit` bytes for so many workers.
    #[must_use]
    pub fn new(limit: usize, workers: usize) -> Self {
        Self::with_streams(limit, workers, usize::MAX)
    }

    /// The same, where so many streams may be open.
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

    /// The part of one more worker.
    #[must_use]
    pub fn worker(&self) -> WorkerBudget {
        WorkerBudget(Arc::new(WorkerShare {
            budget: self.clone(),
            spare: AtomicUsize::new(0),
            accounts: AtomicUsize::new(0),
        }))
    }

    /// Bytes that workers have taken: what connections hold, and at most two chunks for each worker that has any.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.0.taken.load(Relaxed)
    }

    /// The bytes that there are.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// The count of open streams.
    #[must_use]
    pub fn streams(&self) -> &OpenStreams {
        &self.0.streams
    }

    /// Holds so many bytes, unless the budget is full.
    #[must_use]
    pub fn hold(&self, bytes: usize) -> Option<HeldBytes> {
        self.take(bytes, self.0.limit).then(|| HeldBytes { budget: self.clone(), bytes })
    }

    /// Holds so many bytes, whether the budget is full or not.
    #[must_use]
    pub fn hold_anyway(&self, bytes: usize) -> HeldBytes {
        self.0.taken.fetch_add(bytes, Relaxed);
        HeldBytes { budget: self.clone(), bytes }
    }

    /// Whether more is taken than there is.
    #[must_use]
    pub fn is_overdrawn(&self) -> bool {
        self.taken() > self.0.limit
    }

    /// Takes `bytes` unless that is above `limit`.
    fn take(&self, bytes: usize, limit: usize) -> bool {
        let fits = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= limit);
        self.0.taken.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }

    /// The most that connections together may be asked to give before they have: the budget may be passed by as
    /// much until they have their turns.
    fn overdraft(&self) -> usize {
        self.0.limit / 8
    }
}

impl WorkerBudget {
    /// The budget that it is a part of.
    #[must_use]
    pub fn budget(&self) -> &BufferBudget {
        &self.0.budget
    }

    /// An account for one connection.
    pub(crate) fn open(&self) -> Account {
        self.0.accounts.fetch_add(1, Relaxed);
        let holder = Arc::new(Holder::default());
        let key = self.0.budget.0.connections.lock().insert(Arc::clone(&holder));
        Account { worker: self.clone(), holder, key, held: 0 }
    }

    /// Moves bytes from the budget to a connection, within `limit`.
    fn draw(&self, bytes: usize, limit: usize) -> bool {
        let (spare, budget) = (self.0.spare.load(Relaxed), &self.0.budget);
        if spare >= bytes {
            // What has arrived is held even beyond the budget. What is freed of that is not there for others.
            if bytes > 0 && limit != usize::MAX && budget.taken() > limit {
                return false;
            }
            self.0.spare.store(spare - bytes, Relaxed);
            return true;
        }
        let missing = bytes - spare;
        let whole = missing.div_ceil(budget.0.chunk).saturating_mul(budget.0.chunk);
        // Beyond the budget only what is needed is taken: others would take the rest of a chunk for space that there is.
        let within = limit.min(budget.0.limit);
        let tries = [(whole, within), (missing, limit)];
        let Some((taken, _)) = tries.into_iter().find(|(bytes, limit)| budget.take(*bytes, *limit)) else {
            return false;
        };
        self.0.spare.store(spare + taken - bytes, Relaxed);
        true
    }

    /// Takes bytes back from a connection, and gives back what the worker need not keep.
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
    /// Holds `bytes` more. When the budget is full, the connection that holds most has to give. If that is another
    /// one, it is asked to at its next turn, and these bytes are held already.
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
                // Headers that arrived without being asked for may have passed even that, and nobody else would ask.
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

    /// Holds exactly `bytes`, whether the budget is full or not: what has arrived cannot be sent back.
    pub(crate) fn set_exactly(&mut self, bytes: usize) {
        if bytes > self.held && !self.worker.draw(bytes - self.held, usize::MAX) {
            return;
        }
        if bytes < self.held {
            self.worker.put_back(self.held - bytes);
            // What was given back by itself is not demanded any more.
            if self.holder.demanded.load(Relaxed) > 0 {
                self.has_given(if bytes == 0 { usize::MAX } else { self.held - bytes });
            }
        }
        if bytes != self.held {
            self.set(bytes);
        }
    }

    /// The budget of the process.
    pub(crate) fn budget(&self) -> &BufferBudget {
        self.worker.budget()
    }

    /// What the connection holds.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// Bytes that other connections have asked this one to give. `waker` is woken when there are more.
    pub(crate) fn demanded(&self, waker: &Waker) -> usize {
        if self.held == 0 {
            return 0;
        }
        self.holder.waker.register(waker);
        self.holder.demanded.load(Relaxed)
    }

    /// So many bytes were given, or there was nothing to give.
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

/// The status of a call for which there is no space.
#[must_use]
pub fn no_space() -> Status {
    Status::resource_exhausted(
        "max_buffered_bytes: the server holds as many bytes as it may; try again later",
    )
}
