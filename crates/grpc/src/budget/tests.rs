use super::*;

#[test]
fn workers_take_chunks_and_give_them_back() {
    let budget = BufferBudget::new(64 << 20, 2);
    let worker = budget.worker();
    let mut account = worker.open();
    account.grow(100).unwrap();
    assert_eq!((account.held(), budget.taken()), (100, CHUNK.1));
    for _ in 0..1000 {
        account.set_exactly(60_000);
        account.set_exactly(0);
    }
    assert_eq!(budget.taken(), CHUNK.1, "nothing shared was touched");
    account.set_exactly(10 << 20);
    assert!(budget.taken() >= 10 << 20);
    let other = worker.open();
    drop(account);
    assert!(budget.taken() > 0 && budget.taken() <= 2 * CHUNK.1, "{}", budget.taken());
    drop(other);
    assert_eq!(budget.taken(), 0, "without connections nothing is spare");
    drop(worker);
    assert_eq!(budget.taken(), 0);
}

/// Bytes that cannot be refused (`set_exactly`) once left the rest of a chunk as spare, and others drew from it
/// unchecked.
#[test]
fn what_is_taken_beyond_the_budget_leaves_nothing_for_others() {
    let budget = BufferBudget::new(1 << 20, 1);
    let worker = budget.worker();
    let (mut one, mut other) = (worker.open(), worker.open());
    one.set_exactly((1 << 20) + 100);
    assert_eq!(budget.taken(), (1 << 20) + 100);
    assert!(worker.draw(0, 0) && !worker.draw(1, 1 << 20));
    other.set_exactly(10);
    assert_eq!(one.grow(1000), Err(Full::HoldsMost));
}

/// 8,604 calls of 12 KiB each were once admitted to 64 MiB: headers are held without a check, and the bytes that
/// ended calls freed of an overdrawn budget were handed out.
#[test]
fn what_was_held_beyond_the_budget_is_not_handed_out() {
    let budget = BufferBudget::new(1 << 20, 1);
    let worker = budget.worker();
    let (mut large, mut small) = (worker.open(), worker.open());
    large.set_exactly(2 << 20);
    large.set_exactly((2 << 20) - (10 << 10));
    assert_eq!(small.grow(1 << 10), Err(Full::Exhausted));
    let excess = (1 << 20) - (1 << 17);
    assert_eq!(large.demanded(Waker::noop()), excess + (1 << 10), "what is beyond an eighth is asked for");
    large.set_exactly(0);
    small.grow(1 << 10).unwrap();
}

#[test]
fn the_largest_holder_gives_back_first() {
    let budget = BufferBudget::new(1 << 20, 2);
    let (one, other) = (budget.worker(), budget.worker());
    let (mut large, mut small) = (one.open(), other.open());
    large.grow((1 << 20) - (64 << 10)).unwrap();
    assert_eq!(large.grow(100 << 10), Err(Full::HoldsMost));
    // The small connection is served at once, and the large one gets a demand.
    small.grow(100 << 10).unwrap();
    assert_eq!(large.demanded(Waker::noop()), 100 << 10);
    // Bytes that are freed without the demand count against it.
    large.set_exactly(large.held() - (60 << 10));
    assert_eq!(large.demanded(Waker::noop()), 40 << 10);
    large.set_exactly(large.held() + (60 << 10));
    assert_eq!(small.grow(200 << 10), Err(Full::Exhausted), "an eighth of the budget at most");
    large.set_exactly(0);
    large.has_given(1 << 20);
    assert_eq!(large.demanded(Waker::noop()), 0);
    small.grow(200 << 10).unwrap();
    assert_eq!(small.held(), 300 << 10);
}
