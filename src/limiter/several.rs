//! Several questions of one round, which cost less when they are put to the store together.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Answer, Ask, Limiter, LimiterError, Logged, Outcome, Round, bounds, count_as, log};
use crate::algorithm::{LimitVerdict, Verdict};
use crate::key::Subject;
use crate::store::{AreKnown, Ended, Single, Store, StoreError, TOGETHER, no_verdict};
use crate::strategy::{Listed, Resolved, Strategy};

/// An answer that borrows what its limits say.
pub type Lent<'a, 'l> = Answer<'a, &'l [LimitVerdict]>;

/// A question, in its turn.
enum BatchSlot<'a, 'q> {
    /// The next one that the store was asked, under the strategy of this number.
    Asked(usize, &'a Arc<Strategy>),
    /// It needs no store.
    Listed(usize, &'a Arc<Strategy>, Logged<'q>, Listed),
    /// It cannot be asked.
    Refused(LimiterError),
}

/// The resource and the strategy that a question has named, and what they are: the next question mostly
/// names the same.
struct Named<'a, 'q> {
    resource: &'q str,
    strategy: &'q str,
    resolved: Resolved<'a>,
}

impl Named<'_, '_> {
    #[inline]
    fn is_by(&self, ask: &Ask<'_>) -> bool {
        is_same(self.resource, ask.resource) && is_same(self.strategy, ask.strategy)
    }
}

/// Whether both are the same text. Mostly they lie at the same place; and an empty text may lie nowhere,
/// where some C libraries are slow to compare none of its bytes.
#[inline]
fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && (one.is_empty() || one.as_ptr() == other.as_ptr() || one == other)
}

impl<'a: 'q, 'q, S: Store> Round<'a, S> {
    /// Answers several questions as [`Limiter::decide`] would one after the other, and gives `each` the
    /// answers in their order. More than [`TOGETHER`] at a time save nothing more. Only for stores that answer
    /// at once.
    pub fn decide_each(
        &mut self,
        asks: impl Iterator<Item = Ask<'q>>,
        mut each: impl FnMut(Result<Lent<'a, '_>, LimiterError>),
    ) {
        let put = |store: &S, singles: &[Single<'_>], ended: &mut Ended| {
            store.decide_each(singles, ended);
            AreKnown::new()
        };
        self.put_each(asks, put, |answer| answer.into_iter().for_each(&mut each));
    }

    /// The same as far as the answers need not be waited for, on a store that does not answer all at once. Of
    /// a question whose answer does, `each` gets nothing: it is to be asked with [`Limiter::decide`], and counts
    /// only then.
    pub fn decide_known(
        &mut self,
        asks: impl Iterator<Item = Ask<'q>>,
        each: impl FnMut(Option<Result<Lent<'a, '_>, LimiterError>>),
    ) {
        let put = |store: &S, singles: &[Single<'_>], ended: &mut Ended| {
            let mut known = AreKnown::new();
            store.known_each(singles, &mut known, ended);
            known
        };
        self.put_each(asks, put, each);
    }

    /// `put` puts the questions to the store, and says which of them have been answered, if not all.
    #[inline]
    fn put_each(
        &mut self,
        asks: impl Iterator<Item = Ask<'q>>,
        put: impl FnOnce(&S, &[Single<'_>], &mut Ended) -> AreKnown,
        mut each: impl FnMut(Option<Result<Lent<'a, '_>, LimiterError>>),
    ) {
        let mut turns = SmallVec::<[BatchSlot<'a, 'q>; TOGETHER]>::new();
        let mut singles = SmallVec::<[Single<'q>; TOGETHER]>::new();
        let mut named = None;
        for ask in asks {
            if let Err(error) = self.limiter.turn(&ask, &mut named, &mut turns, &mut singles) {
                turns.push(BatchSlot::Refused(self.limiter.refused(error)));
            }
        }
        let mut ended = std::mem::take(&mut self.ended);
        ended.decisions.clear();
        ended.limits.clear();
        let mut known = put(&self.limiter.store, &singles, &mut ended).into_iter();
        let (mut singles, mut decisions) = (singles.iter(), ended.decisions.drain(..));
        let mut limits = &ended.limits[..];
        for turn in turns {
            match turn {
                BatchSlot::Asked(index, strategy) => match (singles.next(), known.next()) {
                    (_, Some(false)) => each(None),
                    (Some(single), _) => {
                        let decided = decisions.next().unwrap_or_else(|| Err(no_verdict()));
                        let answer = self.said(strategy, decided, &mut limits);
                        each(Some(self.record(index, strategy, &Logged::of_single(single), answer)));
                    }
                    (None, _) => {
                        let answer = self.failed(strategy, no_verdict());
                        each(Some(answer.map(|outcome| Answer { strategy, outcome })));
                    }
                },
                BatchSlot::Listed(index, strategy, asked, listed) => {
                    each(Some(self.record(index, strategy, &asked, Ok(Outcome::Listed(listed)))));
                }
                BatchSlot::Refused(error) => each(Some(Err(error))),
            }
        }
        drop(decisions);
        self.ended = ended;
    }

    /// What the store said, or its strategy instead. `limits` begins with what its limits say.
    #[inline]
    fn said<'l>(
        &mut self,
        strategy: &'a Strategy,
        decided: Result<Verdict, StoreError>,
        limits: &mut &'l [LimitVerdict],
    ) -> Result<Outcome<&'l [LimitVerdict]>, LimiterError> {
        match decided {
            Ok(verdict) => {
                self.answered();
                let (own, others) = limits.split_at(strategy.limits().len().min(limits.len()));
                *limits = others;
                Ok(Outcome::Decided { verdict, limits: own })
            }
            Err(error) => self.failed(strategy, error),
        }
    }

    /// The one event of a decision.
    #[inline]
    fn record<'l>(
        &mut self,
        index: usize,
        strategy: &'a Strategy,
        asked: &Logged<'_>,
        answer: Result<Outcome<&'l [LimitVerdict]>, LimiterError>,
    ) -> Result<Lent<'a, 'l>, LimiterError> {
        let counted = count_as(&answer);
        self.count(index, counted);
        log(asked, None, counted, &answer);
        answer.map(|outcome| Answer { strategy, outcome })
    }
}

impl<S: Store> Limiter<S> {
    /// Appends what becomes of a question; what the store is to be asked goes to `singles`.
    #[inline]
    fn turn<'a: 'q, 'q>(
        &'a self,
        ask: &Ask<'q>,
        named: &mut Option<Named<'a, 'q>>,
        turns: &mut SmallVec<[BatchSlot<'a, 'q>; TOGETHER]>,
        singles: &mut SmallVec<[Single<'q>; TOGETHER]>,
    ) -> Result<(), LimiterError> {
        bounds::check(ask)?;
        let resolved = match named {
            Some(named) if named.is_by(ask) => named.resolved,
            _ => {
                let resolved = self.rules.resolve(ask.resource, ask.strategy).map_err(bounds::shortened)?;
                *named = Some(Named { resource: ask.resource, strategy: ask.strategy, resolved });
                resolved
            }
        };
        let Resolved { index, strategy, group, listing, .. } =
            self.rules.excepted(resolved, ask.resource, ask.consumer);
        bounds::check_needed(ask, strategy)?;
        if let Some(listing) = listing {
            turns.push(BatchSlot::Listed(index, strategy, Logged::of(ask, strategy), listing.listed));
            return Ok(());
        }
        let Ask { resource, consumer, cost, peek, attributes, .. } = *ask;
        let subject = Subject { resource, consumer, group, attributes };
        singles.push(Single { strategy, subject, cost, peek });
        turns.push(BatchSlot::Asked(index, strategy));
        Ok(())
    }
}
