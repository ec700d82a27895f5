//! Kinds of keys: the letter after the tag. Each kind has its own, so no key of one kind is a key of another.

use crate::algorithm::EngineKind;

/// Operations that an id makes idempotent. Ids of different operations are different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A charge, of all its cost or of as much as fits.
    Charge,
    /// A forced debit.
    Debit,
    /// A reservation.
    Reserve,
}

/// State of a limit that nodes count.
pub(super) const APPROXIMATE: u8 = b'A';
/// Reservations beside a log.
pub(super) const HELD: u8 = b'H';
pub(super) const LEASES: u8 = b'R';
pub(super) const LEASE_ENDS: u8 = b'E';
/// Places of the nodes that count a strategy.
pub(super) const PLACES: u8 = b'N';
pub(super) const QUEUE: u8 = b'Q';
/// Marker of a refund under an id.
pub(super) const REFUND: u8 = b'F';
/// Open parts of holds beside a limit's state. The limit's own kind follows.
pub(super) const PARTS: u8 = b'O';
/// Record of a hold under an id.
pub(super) const HOLD: u8 = b'T';

/// The kind of a limit's state.
pub(super) const fn of_engine(engine: EngineKind) -> u8 {
    match engine {
        EngineKind::Bucket => b'B',
        EngineKind::Window => b'W',
        EngineKind::Interval => b'I',
        EngineKind::Log => b'L',
        EngineKind::Sliding => b'S',
        EngineKind::Slots => b'P',
        EngineKind::WarmUp => b'U',
        EngineKind::Sparse => b'M',
    }
}

/// The kind of the record of an operation under an id.
pub(super) const fn of_operation(operation: Operation) -> u8 {
    match operation {
        Operation::Charge => b'C',
        Operation::Debit => b'D',
        Operation::Reserve => b'V',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key would otherwise have two meanings. Probes begin with a small letter.
    #[test]
    fn no_two_kinds_share_a_letter() {
        let operations = [Operation::Charge, Operation::Debit, Operation::Reserve].map(of_operation);
        let others = [APPROXIMATE, HELD, LEASES, LEASE_ENDS, PLACES, QUEUE, REFUND, PARTS, HOLD];
        let mut all = [&EngineKind::ALL.map(of_engine)[..], &operations, &others].concat();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(all.iter().all(u8::is_ascii_uppercase));
    }
}
