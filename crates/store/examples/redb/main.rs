//! Decides on a file: `cargo run -p weir-store --example redb -- limits.redb`. A second run goes on where the first one ended.

mod backend;
mod store;

use std::error::Error;
use std::path::Path;

use weir_core::algorithm::{Algorithm, Op, Rate};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir_store::backend::Backend;
use weir_store::{StoreAnswer, decide_one};
use weir_time::clock::Clock;
use weir_units::Micros;

use self::store::RedbStore;

fn main() -> Result<(), Box<dyn Error>> {
    #[allow(clippy::disallowed_methods)] // this is a program
    let file = std::env::args().nth(1).ok_or("the file of the limits is missing")?;
    let backend = RedbStore::open(Path::new(&file), Clock::System)?;
    let store = backend.decisions(&backend.worker());
    let algorithm = Algorithm::bucket(5, Rate { count: 1, period: Micros::from_secs(10) })?;
    let limit = Limit { name: "each".into(), scope: Scope::new(&[Field::Consumer]), algorithm };
    let strategy = Strategy::new("example", vec![limit], false, FailurePolicy::Error)?.into();
    let subject = Subject { resource: "api", consumer: "alice", ..Subject::default() };
    for call in 1..=3 {
        let decision = weir_store::Decision::new(&strategy, subject, Op::Charge, &[1]);
        let StoreAnswer::Ready(verdicts) = decide_one(&store, &decision) else { continue };
        let verdicts = verdicts?;
        let Some((verdict, limits)) = verdicts.get(0) else { continue };
        let remaining = limits.first().map_or(0, |limit| limit.remaining);
        println!("call {call}: {}, {remaining} left", if verdict.allowed { "allowed" } else { "denied" });
    }
    Ok(store.sweep()?)
}
