//! The members of a sorted set.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

/// Members in the order of their scores, and of their bytes where these are equal.
#[derive(Debug, Clone, Default)]
pub(super) struct ScoredMembers {
    scores: HashMap<Vec<u8>, f64>,
    order: BTreeSet<(OrderedScore, Vec<u8>)>,
}

/// A score as the order compares it: both zeros are equal, and none is NaN.
#[derive(Debug, Clone, Copy)]
struct OrderedScore(f64);

impl PartialEq for OrderedScore {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for OrderedScore {}

impl PartialOrd for OrderedScore {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedScore {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal)
    }
}

/// A bound of scores.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScoreBound {
    pub(super) score: f64,
    pub(super) excludes: bool,
}

impl ScoredMembers {
    pub(super) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    /// Sets the score of a member, new or not.
    pub(super) fn set(&mut self, member: &[u8], score: f64) {
        // A small set keeps no negative zero.
        let score = score + 0.0;
        if let Some(before) = self.scores.insert(member.to_vec(), score) {
            self.order.remove(&(OrderedScore(before), member.to_vec()));
        }
        self.order.insert((OrderedScore(score), member.to_vec()));
    }

    /// Returns whether there was such a member.
    pub(super) fn remove(&mut self, member: &[u8]) -> bool {
        let Some(score) = self.scores.remove(member) else { return false };
        self.order.remove(&(OrderedScore(score), member.to_vec()))
    }

    /// Iterates over all members, in order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], f64)> {
        self.order.iter().map(|(score, member)| (member.as_slice(), score.0))
    }

    /// Iterates over the members between two bounds, in order.
    pub(super) fn between(
        &self,
        [least, most]: [ScoreBound; 2],
    ) -> impl DoubleEndedIterator<Item = (&[u8], f64)> {
        let is_empty = least.score > most.score;
        let from = (OrderedScore(least.score), Vec::new());
        let fits = move |score: f64| {
            let is_above = score > least.score || score == least.score && !least.excludes;
            is_above && (score < most.score || score == most.score && !most.excludes)
        };
        // The least bytes come first, so this range begins with the score.
        let starts = self.order.range(from..).filter(move |_| !is_empty);
        starts.map(|(score, member)| (member.as_slice(), score.0)).filter(move |(_, score)| fits(*score))
    }

    /// The place of a member.
    pub(super) fn rank(&self, member: &[u8]) -> Option<usize> {
        let score = self.score(member)?;
        Some(self.order.range(..(OrderedScore(score), member.to_vec())).count())
    }
}
