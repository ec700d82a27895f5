//! Chunks that nodes take: a window never admits more than its limit, and a bucket at most one chunk of each place beyond what an
//! exact one would.
//!
//! The traces are as those of `over`: nodes come, crash, end and come back, calls and answers are late, lost and overtake one another,
//! the nodes' clocks are off and drift. Each rule is switched off once: then there is an excess.

mod node;
mod world;

use weir_core::approximate::{
    ApproximateBound, ChunkLimit, ChunkTerms, HeldPlace, PlaceAnswer, PlaceAsk, Places,
};
use weir_units::Micros;

use self::world::{ChunkWorld, Kind, WithoutRule};

/// Traces with all rules, of each kind of limit.
const TRACES: u64 = 2_000;

/// Traces of each rule that is switched off; the first excess ends them.
const TRACES_WITHOUT: u64 = 40_000;

#[test]
fn windows_and_buckets_keep_to_their_bounds() {
    for kind in [Kind::Window, Kind::Bucket] {
        let (mut local, mut central, mut returned, mut beyond) = (0, 0, 0, 0);
        for seed in 0..TRACES {
            let world = ChunkWorld::run(seed, kind, WithoutRule::None);
            assert_eq!(world.excess(), None, "{kind:?}, seed {seed}");
            local += world.local;
            central += world.central;
            returned += world.returned;
            beyond += u64::from(world.is_beyond_exact());
        }
        println!(
            "{kind:?}: {local} decisions of nodes, {central} of the store, {returned} rests taken back; {beyond} of {TRACES} traces \
             beyond an exact limit"
        );
        // The traces are of use only if nodes spend chunks and give them back, and if buckets do admit more.
        assert!(local > 10 * TRACES && returned > TRACES, "{local} {returned}");
        assert!((kind == Kind::Window) == (beyond == 0), "{beyond}");
    }
}

/// Losses of data and steps of the clock add what the documents say, and not more.
#[test]
fn exceptions_add_what_the_documents_say() {
    for kind in [Kind::Window, Kind::Bucket] {
        let mut beyond = 0;
        for seed in 0..TRACES {
            let world = ChunkWorld::with_exceptions(seed, kind);
            let (over, most) = (world.over(), world.most_with_exceptions());
            assert!(over <= most, "{kind:?}, seed {seed}: {over} units over, at most {most}");
            beyond += u64::from(world.excess().is_some());
        }
        println!("{kind:?}: {beyond} of {TRACES} traces with exceptions were beyond the bound itself");
    }
}

#[test]
fn without_a_rule_there_is_an_excess() {
    use WithoutRule::{Age, ClockError, Once, OneWindow, Unanswered};
    for (kind, without) in [
        (Kind::Window, Once),
        (Kind::Bucket, Once),
        (Kind::Window, OneWindow),
        (Kind::Window, ClockError),
        (Kind::Bucket, Unanswered),
        (Kind::Bucket, Age),
    ] {
        let found = (0..TRACES_WITHOUT).find(|seed| ChunkWorld::run(*seed, kind, without).excess().is_some());
        println!("{kind:?} without {without:?}: an excess with seed {found:?}");
        assert!(found.is_some(), "{kind:?} without {without:?}");
    }
}

/// What a node took of a bucket in the last moment in which it may, by the last heartbeat that was answered, can be given back no
/// more when another node gets its place. One window less would be too early, and so would 10 s where chunks grow older than 5 s.
#[test]
fn a_place_is_blocked_until_its_chunk_is_gone() {
    for (max_age, blocked, is_enough) in [(5, 2, true), (10, 2, true), (10, 1, false)] {
        let max_age = Micros::from_secs(max_age);
        let terms = ChunkTerms { chunk: 1, max_age, of: ChunkLimit::Bucket };
        let bound = ApproximateBound::of_chunks(terms, 2).unwrap();
        let (mut places, begun) = (Places::blocked_for(bound, blocked), Micros::from_secs(1_000));
        for _ in 0..2 {
            assert!(matches!(places.answer(PlaceAsk::Take, begun), PlaceAnswer::Holds { .. }));
        }
        let held = HeldPlace::new(&bound, (0, 1), begun, begun, Micros(0));
        let seconds = (0..).map(|second| Micros(begun.0 + second * 1_000_000));
        let last = seconds.clone().take_while(|now| held.may_count(*now)).last().unwrap();
        let mut later = seconds.skip(1);
        let next = later.find(|now| places.answer(PlaceAsk::Take, *now) != PlaceAnswer::None).unwrap();
        assert_eq!(next.0 > last.0 + terms.lasts().0, is_enough, "{max_age}: {last}, {next}");
    }
}
