//! Leases, ids and holds of token budgets while nodes of Weir and Redis are killed and frozen, and calls to Redis and their replies are lost: no
//! permit is held twice, nothing is charged twice or lost, and what a dead holder held comes back. `long_queue_kills` does the same for queues.
//!
//! `WEIR_FAULT_SECONDS` says for how long; half a minute by default. Redis has `appendfsync always`, so that what it has
//! answered survives.

mod holds;
mod ids;
mod leases;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::spawn_blocking;

use self::holds::{BUDGETS, Holds};
use self::ids::{CHARGES, Charges};
use self::leases::{PERMITS, Permits};
use crate::support::faulty_nodes::{FAULTS, FaultyNodes};
use crate::support::seconds_of;

/// Number of callers of each kind.
const CALLERS: u64 = 8;

fn span() -> Duration {
    seconds_of("WEIR_FAULT_SECONDS", 30)
}

#[tokio::test]
async fn no_permit_is_held_twice_and_no_id_charged_twice_whatever_fails() {
    let resources = "resources: [{ match: charges, strategy: charges }, { match: permits, strategy: permits }, \
                     { match: budgets, strategy: budgets }]\n";
    let nodes = FaultyNodes::start(&format!("strategies:\n{CHARGES}{PERMITS}{BUDGETS}{resources}"), "a bug");
    let nodes = Arc::new(nodes);
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let until = Instant::now() + span();
    let (charges, permits, holds) =
        (Arc::new(Charges::default()), Arc::new(Permits::default()), Arc::new(Holds::default()));
    let mut callers = Vec::new();
    for number in 0..CALLERS {
        callers.push(tokio::spawn(ids::charge(number, Arc::clone(&nodes), Arc::clone(&charges), until)));
        callers.push(tokio::spawn(ids::charge_plainly(
            number,
            Arc::clone(&nodes),
            Arc::clone(&charges),
            until,
        )));
        callers.push(tokio::spawn(leases::hold(number, Arc::clone(&nodes), Arc::clone(&permits), until)));
        callers.push(tokio::spawn(holds::hold(number, Arc::clone(&nodes), Arc::clone(&holds), until)));
    }
    let mut counts = [0; FAULTS.len()];
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(random.random_range(50..800))).await;
        let index = random.random_range(0..FAULTS.len());
        let (node, lasts) =
            (random.random_range(0..2), Duration::from_millis(random.random_range(20..1_200)));
        let faulty = Arc::clone(&nodes);
        spawn_blocking(move || faulty.inflict(FAULTS[index], node, lasts)).await.unwrap();
        counts[index] += 1;
    }
    for caller in callers {
        caller.await.unwrap();
    }
    let faults: Vec<_> =
        FAULTS.iter().zip(counts).map(|(fault, count)| format!("{fault:?} {count}")).collect();
    println!("{}", faults.join(", "));
    holds.check(&nodes).await;
    charges.check(&nodes).await;
    permits.check(&nodes).await;
    assert_eq!(spawn_blocking(move || nodes.stop()).await.unwrap(), Vec::<String>::new());
}
