//! Everything that a release is asked.

mod budgets;
mod decisions;
mod leases;
mod queues;

use super::rows::{Row, all_rows};
use super::story::{Act, Step, Story};

/// All stories. None has the name of another.
pub(super) fn stories() -> Vec<Story> {
    let stories: Vec<Story> = all_rows()
        .into_iter()
        .map(of_row)
        .chain(decisions::stories())
        .chain(budgets::stories())
        .chain(leases::stories())
        .chain(queues::stories())
        .collect();
    for (place, story) in stories.iter().enumerate() {
        assert!(
            stories[..place].iter().all(|other| other.name != story.name),
            "two are called {}",
            story.name
        );
    }
    stories
}

/// The story of a row.
fn of_row(row: Row) -> Story {
    let states_after = row.before.len();
    let steps = row.before.iter().chain(&row.after).map(|&(after, op, cost)| {
        let (strategy, id) = (row.strategy.clone(), row.id_of(op));
        Step { after, acts: vec![Act::Decide { strategy, consumer: "bob", id, op, cost }] }
    });
    Story { name: format!("limits: {}", row.name), steps: steps.collect(), states_after, law: None }
}

/// Numbers that look random, and are the same in every version of everything.
struct Dice(u64);

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len() as u64) as usize]
    }
}
