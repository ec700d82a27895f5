//! `ShouldAllowBatch`: many questions in one call, each decided for itself.
//!
//! A batch is decided in pieces. A turn of its connection ends between two of them, and a store that answers later gets
//! the next piece when it has room (`batch_gate.rs`). What was not put to the store in time is left to the failure policy.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;
use tonic::Status;
use weir_grpc::{BegunCall, Call, CallContext, CurrentPeer, IncomingCall, Reply, turn};
use weir_store::{Store, TOGETHER, at_once};
use weir_time::clock;

use super::batch_gate::BatchLine;
use super::batch_late::{LONGEST, LateTurn};
use super::several::{LaterResult, RESULT_BYTES};
use super::wire::MessageFields;
use super::{DecisionService, Decisions, status};
use crate::current_method;
use crate::limiter::{LimiterError, check_batch};

/// Field number of the response in a result; the error's is the next one.
const RESPONSE_FIELD: u32 = 1;

/// Questions that a store which answers later gets at once: as many as share a script call while there is room for them,
/// and a few where others wait for room, too.
const LARGE_PIECE: usize = 512;
const PIECE: usize = 2 * TOGETHER;

/// Questions that are left to the failure policy at a time. They take some 30 µs.
const LATE_PIECE: usize = 4 * TOGETHER;

struct Batch<S> {
    service: Arc<Decisions<S>>,
    context: CallContext,
    /// The questions that are left.
    rest: Bytes,
    /// Encoded results of questions that were answered at once.
    out: Vec<u8>,
    others: Vec<LaterBytes>,
    /// Number of questions whose results come later.
    numbered: usize,
    /// The lines of its caller, and its place in one of them.
    line: Arc<BatchLine>,
    place: Option<PlaceInLine>,
    /// Until then questions are put to the store.
    until: Option<Instant>,
    /// From then on what is left waits no longer for the share of late answers.
    latest: Option<Instant>,
    /// True once there is no time for the store.
    is_late: bool,
}

/// The questions that may be decided next.
struct NextPiece<'a> {
    most: usize,
    room: Option<OwnedSemaphorePermit>,
    turn: Option<LateTurn<'a>>,
}

/// A result that came later: its number among those, its offset in the results before, and its bytes.
type LaterBytes = (usize, usize, Vec<u8>);

/// Ends a task when its call ends.
struct EndsWithCall(AbortHandle);

impl Drop for EndsWithCall {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The place of a batch at the head of a line. The next batch follows once this one has put all its questions.
type PlaceInLine = OwnedSemaphorePermit;

impl<S: Store> DecisionService<S> {
    /// Answers up to a thousand questions; at once, if the message has arrived, the store answers at once and the turn has
    /// time for it.
    pub fn should_allow_batch(self: &Arc<Self>, call: IncomingCall) -> BegunCall {
        let IncomingCall { context, mut messages } = call;
        let message = match at_once(messages.only()).transpose() {
            Ok(message) => message,
            Err(status) => return BegunCall::Call(status.into()),
        };
        let (deadline, service) = (context.deadline, Arc::clone(self));
        if S::AT_ONCE
            && let Some(message) = &message
        {
            let line = self.batches.line(self.rights_caller(&context));
            if let Ok(place) = Arc::clone(&line.asking).try_acquire_owned() {
                return BegunCall::Call(match self.begin(message, &context, line) {
                    Err(status) => status.into(),
                    Ok(mut batch) => match batch.decide(usize::MAX, &mut Vec::new()) {
                        false => Call::done(Ok(batch.reply())),
                        true => Call::waiting(&self.deadlines, deadline, async move {
                            let _held = service.batches.hold_first(batch.rest.len());
                            batch.place = Some(place);
                            Ok(service.decide_batch(batch).await)
                        }),
                    },
                });
            }
        }
        let arrived = clock::monotonic();
        BegunCall::Call(Call::waiting(&self.deadlines, deadline, async move {
            let message = match message {
                Some(message) => message,
                None => messages.only().await?,
            };
            count(&message)?;
            let decided = service.decide_in_line(message, context, arrived);
            if S::AT_ONCE {
                return decided.await;
            }
            // A task of its own: a connection whose client reads no answers polls no calls, and would keep the room.
            let task = tokio::spawn(CurrentPeer::get().polls(decided));
            let _ends_with_call = EndsWithCall(task.abort_handle());
            task.await.unwrap_or_else(|_| Err(Status::internal("the batch failed")))
        }))
    }

    /// Decides a batch when those before it in the line of its caller have asked the store, or leaves it to the failure
    /// policy when it is out of time before.
    async fn decide_in_line(
        self: Arc<Self>,
        message: Bytes,
        context: CallContext,
        arrived: Instant,
    ) -> Result<Reply, Status> {
        let line = self.batches.line(self.rights_caller(&context));
        let _held = self.batches.hold(&line, message.len())?;
        let until = self.batch_deadline(&context, arrived);
        // It is never closed.
        let closed = |_| Status::internal("the line of batches is closed");
        let place = self.until(until, Arc::clone(&line.asking).acquire_owned()).await;
        let mut batch = self.begin(&message, &context, line)?;
        (batch.place, batch.until) = (place.transpose().map_err(closed)?, until);
        batch.latest = match batch.context.deadline {
            Some(_) => until,
            None => until.map(|until| until + LONGEST),
        };
        if batch.place.is_none() {
            batch.end();
        }
        Ok(self.decide_batch(batch).await)
    }

    /// Returns the time at which a batch that arrived at `arrived` stops asking: its caller's deadline, or else the store's.
    fn batch_deadline(&self, context: &CallContext, arrived: Instant) -> Option<Instant> {
        let limiter = &self.current.load().limiter;
        let own = || Some(arrived + limiter.store_patience()?);
        limiter.store_deadline(context.deadline, arrived).or_else(own)
    }

    /// Begins a batch under the current snapshot.
    fn begin(
        &self,
        message: &Bytes,
        context: &CallContext,
        line: Arc<BatchLine>,
    ) -> Result<Batch<S>, Status> {
        let count = count(message)?;
        current_method::set("ShouldAllowBatch");
        let (service, context, rest) = (self.current(), context.clone(), message.clone());
        Ok(Batch {
            service,
            context,
            rest,
            out: Vec::with_capacity(count * RESULT_BYTES),
            others: Vec::new(),
            numbered: 0,
            line,
            place: None,
            until: None,
            latest: None,
            is_late: false,
        })
    }

    fn rights_caller(&self, context: &CallContext) -> u32 {
        self.current.load().rights.of(context).caller()
    }

    /// Decides what is left of a batch, a piece in each turn, and waits for all answers.
    async fn decide_batch(self: Arc<Self>, mut batch: Batch<S>) -> Reply {
        let mut pending = FuturesUnordered::new();
        let mut later = Vec::new();
        loop {
            turn::pause().await;
            let mut piece = self.next_piece(&mut batch, &mut pending).await;
            let is_left = batch.decide(piece.most, &mut later);
            for later in later.drain(..) {
                let (number, at, service) = (batch.numbered, later.at, Arc::clone(&batch.service));
                batch.numbered += 1;
                let permit = piece.room.as_mut().and_then(|room| room.split(1));
                pending.push(service.result(later).map(move |result| {
                    drop(permit);
                    (number, at, result)
                }));
            }
            drop(piece.room);
            // Pending questions ask the store at their first poll.
            while let Some(Some(answered)) = at_once(pending.next()) {
                batch.others.push(answered);
            }
            drop(piece.turn);
            if !is_left {
                break;
            }
        }
        batch.place = None;
        while let Some(answered) = pending.next().await {
            batch.others.push(answered);
        }
        batch.reply()
    }

    /// Waits until the next questions of a batch may be put: for room in the store, or once the batch is out of time for
    /// its turn. Answers that come meanwhile are taken.
    async fn next_piece(
        &self,
        batch: &mut Batch<S>,
        pending: &mut FuturesUnordered<impl Future<Output = LaterBytes>>,
    ) -> NextPiece<'_> {
        if S::AT_ONCE {
            return NextPiece { most: usize::MAX, room: None, turn: None };
        }
        // Outside a turn of a connection: other work goes on between two pieces.
        tokio::task::yield_now().await;
        let until = batch.until;
        let is_over = || until.is_some_and(|until| clock::monotonic() >= until);
        if !batch.is_late && !is_over() {
            let mut room = self.batches.free_room(LARGE_PIECE);
            if room.is_none() {
                let has_room = while_answered(self.batches.room(PIECE), pending, &mut batch.others);
                room = self.until(until, has_room).await.flatten();
            }
            if let Some(room) = room {
                return NextPiece { most: room.num_permits(), room: Some(room), turn: None };
            }
        }
        if !batch.is_late {
            batch.end();
        }
        let turn = self.late_turn(&batch.line, &mut batch.place, batch.latest);
        let turn = while_answered(turn, pending, &mut batch.others).await;
        NextPiece { most: LATE_PIECE, room: None, turn: Some(turn) }
    }

    /// Waits for the turn of a batch out of time, behind those of its caller, until it must answer.
    async fn late_turn(
        &self,
        line: &BatchLine,
        place: &mut Option<PlaceInLine>,
        latest: Option<Instant>,
    ) -> LateTurn<'_> {
        let late = &self.batches.late;
        let turn = async {
            if place.is_none() {
                *place = Arc::clone(&line.late).acquire_owned().await.ok();
            }
            late.spared(&self.deadlines, || self.batches.store_has_work()).await
        };
        match self.until(latest, turn).await {
            Some(turn) => turn,
            None => late.due().await,
        }
    }

    /// The output of `future`, if it comes before a deadline.
    async fn until<T>(&self, deadline: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
        match deadline {
            Some(deadline) => self.deadlines.until(deadline, future).await.ok(),
            None => Some(future.await),
        }
    }
}

impl<S: Store> Batch<S> {
    /// Decides questions until the turn is over, but no more than `most`. Returns true if some are left. Those whose
    /// answers come later are appended to `later`.
    fn decide(&mut self, most: usize, later: &mut Vec<LaterResult>) -> bool {
        let Self { service, context, rest, out, is_late, .. } = self;
        let (message, mut left) = (std::mem::take(rest), most);
        let mut fields = MessageFields::new(&message);
        let mut round = service.limiter.round();
        if *is_late {
            round.end();
        }
        let is_left = loop {
            let next = || next_question(&mut fields).map(|question| (0, Ok(question)));
            let together = left.min(TOGETHER);
            let decided =
                service.decide_next(&mut round, (out, later), RESPONSE_FIELD, context, together, next);
            turn::spend(decided);
            left = left.saturating_sub(decided);
            if decided == 0 {
                break false;
            }
            if left == 0 || turn::is_over() {
                break fields.left() > 0;
            }
        };
        *rest = message.slice(message.len() - fields.left()..);
        is_left
    }

    /// Leaves what has not been decided to the failure policy. The next batch of its caller may ask.
    fn end(&mut self) {
        self.is_late = true;
        self.place = None;
        self.context.deadline = self.until;
    }

    /// Merges the results that were ready and those that came later, in the order of the questions.
    fn reply(mut self) -> Reply {
        self.others.sort_unstable_by_key(|(number, ..)| *number);
        let bytes = self.out.len() + self.others.iter().map(|(.., result)| result.len()).sum::<usize>();
        Reply::message(bytes, |out| {
            let mut from = 0;
            for (_, at, result) in &self.others {
                out.extend_from_slice(self.out.get(from..*at).unwrap_or(&[]));
                out.extend_from_slice(result);
                from = *at;
            }
            out.extend_from_slice(self.out.get(from..).unwrap_or(&[]));
        })
    }
}

/// The output of `future`. Meanwhile the pending questions go on.
async fn while_answered<T>(
    future: impl Future<Output = T>,
    pending: &mut FuturesUnordered<impl Future<Output = LaterBytes>>,
    others: &mut Vec<LaterBytes>,
) -> T {
    let mut future = pin!(future);
    poll_fn(|context| {
        while let Poll::Ready(Some(answered)) = pending.poll_next_unpin(context) {
            others.push(answered);
        }
        future.as_mut().poll(context)
    })
    .await
}

/// Returns the number of questions of a batch; 0 if it will be refused.
pub(super) fn decisions_of(batch: &[u8]) -> usize {
    count(batch).unwrap_or(0)
}

/// Counts the questions of a batch, and checks the bound. A malformed question affects only itself.
fn count(batch: &[u8]) -> Result<usize, Status> {
    let (mut count, mut fields) = (0, MessageFields::new(batch));
    while let Some((number, value)) = fields.next().map_err(status::malformed)? {
        if number == 1 {
            value.bytes().map_err(status::malformed)?;
            count += 1;
        }
    }
    check_batch(count).map_err(|invalid| status::new(LimiterError::Invalid(invalid)))?;
    Ok(count)
}

/// The next question of a batch that was counted. As a call of its own it took 47 instructions a decision.
#[inline(always)]
fn next_question<'a>(fields: &mut MessageFields<'a>) -> Option<&'a [u8]> {
    while let Ok(Some((number, value))) = fields.next() {
        if number == 1 {
            return value.bytes().ok();
        }
    }
    None
}
