//! Pending calls of one connection.

use std::collections::VecDeque;

use super::LoadCall;
use crate::answer::CountedAnswer;

/// Calls by stream. Streams are numbered in the order of the calls, so this is a queue with gaps.
#[derive(Debug, Default)]
pub(super) struct Calls {
    row: VecDeque<Option<PendingAnswer>>,
    /// Stream of the first in the queue.
    first: u32,
    unanswered: usize,
}

/// State of a pending call.
#[derive(Debug)]
pub(super) struct PendingAnswer {
    pub(super) call: LoadCall,
    /// Answer message of the call; the status follows.
    pub(super) answer: Option<CountedAnswer>,
}

impl Calls {
    pub(super) const fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// Streams must come in order, each two above the one before.
    pub(super) fn push(&mut self, stream: u32, call: LoadCall) {
        if self.row.is_empty() {
            self.first = stream;
        }
        self.row.push_back(Some(PendingAnswer { call, answer: None }));
        self.unanswered += 1;
    }

    /// The pending call of this stream.
    pub(super) fn get(&mut self, stream: u32) -> Option<&mut PendingAnswer> {
        let place = self.place(stream)?;
        self.row.get_mut(place)?.as_mut()
    }

    /// Removes this stream's call.
    pub(super) fn take(&mut self, stream: u32) -> Option<PendingAnswer> {
        let place = self.place(stream)?;
        let waiting = self.row.get_mut(place)?.take()?;
        self.unanswered -= 1;
        self.close_up();
        Some(waiting)
    }

    /// Removes the oldest call if it was made before this time.
    pub(super) fn take_older(&mut self, before_ns: u64) -> Option<(u32, LoadCall)> {
        let oldest = self.row.front()?.as_ref()?;
        if oldest.call.sent_ns >= before_ns {
            return None;
        }
        let stream = self.first;
        self.take(stream).map(|waiting| (stream, waiting.call))
    }

    /// Removes the calls of this stream and all later ones.
    pub(super) fn take_from(&mut self, stream: u32, mut each: impl FnMut(LoadCall)) {
        let begin = self.place(stream).unwrap_or(0).min(self.row.len());
        for waiting in self.row.drain(begin..).flatten() {
            self.unanswered -= 1;
            each(waiting.call);
        }
        self.close_up();
    }

    fn place(&self, stream: u32) -> Option<usize> {
        (stream % 2 == 1).then_some(())?;
        stream.checked_sub(self.first).map(|distance| (distance / 2) as usize)
    }

    /// Drops gaps, so that the first in the queue is pending.
    fn close_up(&mut self) {
        while let Some(None) = self.row.front() {
            self.row.pop_front();
            self.first += 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(streams: impl IntoIterator<Item = u32>) -> Calls {
        let mut calls = Calls::default();
        for stream in streams {
            calls.push(stream, LoadCall { sent_ns: stream.into(), ..LoadCall::default() });
        }
        calls
    }

    #[test]
    fn answers_may_come_in_any_order() {
        let mut calls = row([1, 3, 5, 7]);
        for stream in [5, 1, 7] {
            assert_eq!(calls.take(stream).unwrap().call.sent_ns, u64::from(stream));
            assert!(calls.take(stream).is_none());
        }
        for stream in [0, 2, 9, u32::MAX] {
            assert!(calls.get(stream).is_none());
        }
        assert_eq!(calls.unanswered(), 1);
        calls.push(9, LoadCall::default());
        assert!(calls.take(3).is_some() && calls.take(9).is_some());
        assert_eq!((calls.unanswered(), calls.row.len()), (0, 0));
    }

    #[test]
    fn the_oldest_go_first() {
        let mut calls = row([1, 3, 5]);
        assert!(calls.take(1).is_some());
        assert_eq!(calls.take_older(5).unwrap().0, 3);
        assert!(calls.take_older(5).is_none());
    }

    #[test]
    fn a_row_can_be_cut() {
        let mut calls = row([1, 3, 5, 7]);
        calls.take(3).unwrap();
        let mut cut = Vec::new();
        calls.take_from(5, |call| cut.push(call.sent_ns));
        assert_eq!((cut, calls.unanswered()), (vec![5, 7], 1));
        let mut cut = Vec::new();
        calls.take_from(0, |call| cut.push(call.sent_ns));
        assert_eq!((cut, calls.unanswered()), (vec![1], 0));
    }
}
