//! What a key is made of under an algorithm: how long it lives, and how much memory it takes.

use weir_core::algorithm::{Algorithm, Engine, Op, State, decide};
use weir_store::Verdicts;
use weir_units::Micros;

/// Bytes of a key in the memory store beside what its state holds elsewhere: its place, its part of the index
/// and of the times of expiry. A test holds it against what the store takes.
const KEY_BYTES: usize = 60;

/// What one key takes in the memory store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// After one charge.
    pub(super) one: usize,
    /// At most.
    pub(super) most: usize,
}

/// How long until a limit is full again after all of it was spent at the start of a window.
pub(in crate::cli) fn renewal(algorithm: &Algorithm) -> Micros {
    let mut verdicts = Verdicts::default();
    charge(algorithm, &mut None, algorithm.limit(), Micros::ZERO, &mut verdicts);
    verdicts.limits.first().map_or(Micros::ZERO, |verdict| verdict.reset_after)
}

/// Charges as often as makes the state largest.
pub(super) fn size(algorithm: &Algorithm) -> Size {
    let (charges, apart) = match algorithm.engine() {
        // Charges at one time share an entry. One more than the limit is what a log of attempts keeps.
        Engine::Log(log) => {
            let charges = algorithm.limit() + 1;
            (charges, (log.span / (charges + 1)).max(log.min_gap).max(1))
        }
        Engine::Slots(slots) => (slots.count, slots.width),
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
