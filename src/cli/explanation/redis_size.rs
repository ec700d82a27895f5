//! Bytes of a key in Redis, as `MEMORY USAGE` reports them on Redis 7 with jemalloc. `documented::footprint` compares them.

use weir_core::algorithm::{Algorithm, Engine, EngineKind};

use super::state::Size;

/// The entry of the key in Redis' own table.
const TABLE_ENTRY: usize = 24;

/// The header of a value.
const VALUE: usize = 16;

/// A list and its first node, without the bytes of the elements.
const LIST: usize = VALUE + 80;

/// Bytes of an entry of a log: the time and the total, as elements of a list.
const LOG_ENTRY: usize = 13;

/// Longest string that is stored beside the header of its value.
const EMBEDDED: usize = 44;

/// Returns the bytes of a key of this length after one charge, and at most.
pub(in crate::cli) fn redis_size(algorithm: &Algorithm, key: usize) -> Size {
    let key = TABLE_ENTRY + string(key);
    let (one, most) = match algorithm.engine() {
        Engine::Log(_) => {
            let entries = usize::try_from(algorithm.limit()).unwrap_or(usize::MAX);
            let entries = entries.saturating_add(usize::from(algorithm.counts_denied()));
            (list(1), list(entries))
        }
        engine => {
            let (one, most) = state_bytes(engine);
            (value(one), value(most))
        }
    };
    Size { one: key + one, most: key + most.max(one) }
}

/// Returns the bytes of a string of this length under a key of this length.
pub(super) fn string_size(key: usize, bytes: usize) -> usize {
    TABLE_ENTRY + string(key) + value(bytes)
}

/// Returns the largest state of a limit, in bytes; of a log, the bytes of its list.
pub(in crate::cli) fn largest_state(algorithm: &Algorithm) -> usize {
    match algorithm.engine() {
        Engine::Log(_) => usize::try_from(algorithm.limit()).unwrap_or(usize::MAX).saturating_mul(LOG_ENTRY),
        engine => state_bytes(engine).1,
    }
}

/// The length of the string after one charge, and at most: see the files of the engines in `lua/`.
fn state_bytes(engine: &Engine) -> (usize, usize) {
    match engine {
        Engine::Window(_) | Engine::Interval(_) => (24, 24),
        Engine::Bucket(_) | Engine::Sliding(_) | Engine::WarmUp(_) | Engine::Log(_) => (32, 32),
        Engine::Slots(slots) => {
            let parts = usize::try_from(slots.count()).unwrap_or(usize::MAX);
            match engine.kind() {
                EngineKind::Sparse => (72, 64 + 12 * parts),
                _ => (48, 48 + 16 * (parts - 1)),
            }
        }
    }
}

fn list(entries: usize) -> usize {
    LIST + allocated(entries.saturating_mul(LOG_ENTRY).saturating_add(9))
}

/// A value that is a string.
fn value(length: usize) -> usize {
    match length {
        ..=EMBEDDED => allocated(VALUE + 4 + length),
        _ => VALUE + string(length),
    }
}

/// A string with its header and its last byte.
fn string(length: usize) -> usize {
    let header = match length {
        ..32 => 1,
        32..256 => 3,
        256..65_536 => 5,
        _ => 9,
    };
    allocated(length.saturating_add(header + 1))
}

/// The size class of an allocation: four between two powers of two.
fn allocated(bytes: usize) -> usize {
    match bytes {
        ..=8 => 8,
        9..=128 => bytes.next_multiple_of(16),
        _ => {
            let step = (bytes - 1).checked_ilog2().map_or(1, |log| 1_usize << log.saturating_sub(2));
            bytes.checked_next_multiple_of(step).unwrap_or(bytes)
        }
    }
}
