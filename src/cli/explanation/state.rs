//! The cost of a key under an algorithm: its lifetime and its memory.

use weir_core::algorithm::{Algorithm, Engine, Op, State, decide};
use weir_store::Verdicts;
use weir_units::Micros;

/// Bytes of a key in the memory store, without its state on the heap: its slot, and its share of the index and of the
/// expiry index. A test compares it with the store.
const KEY_BYTES: usize = 60;

/// The memory of one key in the memory store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// After one charge.
    pub(super) one: usize,
    /// The maximum.
    pub(super) most: usize,
}

/// Returns the time until a limit is full again after it was emptied at the start of a window.
pub(in crate::cli) fn renewal(algorithm: &Algorithm) -> Micros {
    let mut verdicts = Verdicts::default();
    charge(algorithm, &mut None, algorithm.limit(), Micros::ZERO, &mut verdicts);
    verdicts.limits.first().map_or(Micros::ZERO, |verdict| verdict.reset_after)
}

/// Measures the state after one charge, and after as many charges as make it largest.
pub(super) fn size(algorithm: &Algorithm) -> Size {
    let (charges, apart) = match algorithm.engine() {
        // Charges at the same time share an entry. A log of attempts keeps one more than the limit.
        Engine::Log(log) => {
            let charges = algorithm.limit() + 1;
            (charges, (log.span / (charges + 1)).max(log.min_gap).max(1))
        }
        Engine::Slots(slots) => (slots.count(), slots.width()),
        Engine::Bucket(_)
        | Engine::Window(_)
        | Engine::Interval(_)
        | Engine::Sliding(_)
        | Engine::WarmUp(_) => (1, 0),
    };
    let (mut state, mut size) = (None, None);
    for charge in 0..charges {
        let now = Micros(charge.saturating_mul(apart));
        self::charge(algorithm, &mut state, 1, now, &mut Verdicts::default());
        let bytes = KEY_BYTES + state.as_ref().map_or(0, State::heap_bytes);
        let Size { one, most } = size.unwrap_or(Size { one: bytes, most: bytes });
        size = Some(Size { one, most: most.max(bytes) });
    }
    size.unwrap_or(Size { one: KEY_BYTES, most: KEY_BYTES })
}

fn charge(algorithm: &Algorithm, state: &mut Option<State>, cost: u64, now: Micros, verdicts: &mut Verdicts) {
    let limits = std::slice::from_ref(algorithm);
    let Ok(()) = decide(limits, state, Op::Charge, cost, now, verdicts);
}
