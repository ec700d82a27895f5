//! Writes the states and the parts of a decision.

use weir_units::Micros;

use super::standing::{Standing, Standings};
use super::{BudgetCells, MAX_ENDS, NotDecided};

impl Standings<'_> {
    /// Checks the number of ends, and reserves room for new states; nothing fails after it.
    pub(super) fn reserve<C: BudgetCells>(&self, cells: &mut C) -> Result<(), NotDecided<C::Full>> {
        if self.each.iter().any(|one| one.adds_part && one.parts.ends.len() > MAX_ENDS) {
            return Err(NotDecided::TooManyEnds);
        }
        let grows = |one: &Standing<'_>| one.write.is_some_and(|level| level > one.reading.level);
        let mut growing =
            self.each.iter().enumerate().filter(|(_, one)| grows(one) || one.adds_part).peekable();
        if growing.peek().is_none() {
            return Ok(());
        }
        let absent = growing.filter(|(index, _)| cells.get(*index).is_none()).count();
        cells.reserve(absent).map_err(NotDecided::Full)
    }

    /// Writes what was reserved for, and computes how long each limit takes to be full again.
    pub(super) fn write<C: BudgetCells>(&mut self, cells: &mut C) {
        let (now, at) = (self.now, self.at);
        for (index, one) in self.each.iter_mut().enumerate() {
            if one.parts_changed {
                one.parts.seen = at;
                cells.put_parts(index, one.parts.clone());
            }
            let (algorithm, reading) = (&one.limit.algorithm, &mut one.reading);
            let reset_after = match one.write {
                None => {
                    let reset_after = algorithm.reset_after(cells.get(index), reading);
                    algorithm.cover(cells.get(index), reading);
                    reset_after
                }
                Some(level) => {
                    let mut reset_after = Micros::ZERO;
                    cells.put(index, |state| {
                        algorithm.write(state, reading, level);
                        reset_after = algorithm.reset_after(state.as_ref(), reading);
                        algorithm.cover(state.as_ref(), reading);
                        algorithm.kept(reset_after, reading, Micros(now))
                    });
                    reset_after
                }
            };
            let last = one.parts.last_end().map_or(0, |end| end.saturating_sub(now));
            one.reset_after = reset_after.max(Micros(last));
        }
    }
}
