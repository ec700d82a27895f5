//! Estimates of the clocks of the store's servers. Each answer narrows it.

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use weir_core::approximate::StoreClock;
use weir_units::Micros;

/// Servers that are remembered: many more than a cluster has at a time.
const MAX_SERVERS: usize = 2_000;

/// The clocks of the servers, by their numbers. Decisions read them without a lock.
#[derive(Default)]
pub(super) struct StoreClocks {
    known: ArcSwap<Vec<(u64, StoreClock)>>,
    changes: Mutex<()>,
}

impl StoreClocks {
    /// Returns the known bounds of a server's clock.
    pub(super) fn of(&self, server: u64) -> Option<StoreClock> {
        let known = self.known.load();
        known.iter().find(|(number, _)| *number == server).map(|(_, clock)| *clock)
    }

    /// Takes in the time of an answer to what was sent at `sent` and answered at `received`, by the node's clock.
    pub(super) fn learn(&self, server: u64, time: Micros, sent: Micros, received: Micros) {
        let answered = StoreClock::of_answer(time, sent, received);
        let _changes = self.changes.lock();
        let mut known = Vec::clone(&self.known.load());
        match known.iter_mut().find(|(number, _)| *number == server) {
            Some((_, clock)) => {
                let both = clock.and(answered);
                // Nearly every answer says nothing new.
                if both.error(received) >= clock.error(received) && is_within(*clock, answered, received) {
                    return;
                }
                *clock = both;
            }
            None => {
                if known.len() >= MAX_SERVERS {
                    known.remove(0);
                }
                known.push((server, answered));
            }
        }
        self.known.store(known.into());
    }
}

/// True if the answer does not contradict what is known.
fn is_within(known: StoreClock, answered: StoreClock, now: Micros) -> bool {
    let ((least, most), (answered_least, answered_most)) = (known.at(now), answered.at(now));
    answered_least <= most && least <= answered_most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_a_clock_that_answers_narrow() {
        let clocks = StoreClocks::default();
        clocks.learn(1, Micros(5_000_000), Micros(100), Micros(900));
        clocks.learn(2, Micros(9_000_000), Micros(100), Micros(200));
        let error = |server, now| clocks.of(server).unwrap().error(Micros(now)).0;
        assert_eq!((error(1, 900), error(2, 200)), (800, 100));
        clocks.learn(1, Micros(5_000_900), Micros(1_000), Micros(1_200));
        assert_eq!(error(1, 1_200), 200);
        clocks.learn(1, Micros(5_000_950), Micros(1_000), Micros(1_900));
        assert!(error(1, 1_900) <= 202, "a slow answer says nothing new");
        clocks.learn(1, Micros(7_000_000), Micros(2_000), Micros(2_400));
        assert_eq!(error(1, 2_400), 400, "the clock has stepped");
        assert!(clocks.of(3).is_none());
    }
}
