//! Calls of operators: browse items, redrive dead letters, purge queues.

use std::time::Instant;

use crate::model::{
    BrowsedItem, ItemId, OutcomeRecord, OutcomeSearch, OutcomeTotals, QueueAnswer, QueueOp, QueuePart,
    QueueReply,
};
use weir_config::AccessRight;
use weir_node::access::Rights;

use super::{QueueFailure, Queues, bounds};
use crate::metrics::QueueEvent;

/// A page of a queue: at most `max_items` items after a cursor.
#[derive(Debug, Clone, Copy)]
pub struct QueuePage {
    /// Cursor: items with ids up to this one are skipped.
    pub after: ItemId,
    /// The most items.
    pub max_items: usize,
}

/// A page of items.
#[derive(Debug, Clone)]
pub struct Browsed {
    /// The items, in the order of their ids.
    pub items: Vec<BrowsedItem>,
    /// Cursor of the next page; `None` after the last one.
    pub next: Option<ItemId>,
    /// Number of items that hold a place.
    pub depth: u64,
}

/// A page of outcomes.
#[derive(Debug, Clone)]
pub struct FoundOutcomes {
    /// The outcomes, the newest first.
    pub outcomes: Vec<OutcomeRecord>,
    /// Totals of outcomes by fate.
    pub totals: OutcomeTotals,
    /// Cursor of the next page; `None` after the last one.
    pub next: Option<ItemId>,
}

/// Dead letters that came back.
#[derive(Debug, Clone)]
pub struct Redriven {
    /// New ids of the items.
    pub items: Vec<ItemId>,
    /// Cursor of the next call; `None` after the last dead letter.
    pub next: Option<ItemId>,
    /// True if the queue had no place for the next one.
    pub is_full: bool,
    /// Number of items that hold a place.
    pub depth: u64,
    /// Number of dead letters that are left.
    pub dead_depth: u64,
}

impl Queues {
    /// Shows items without taking them.
    pub async fn browse(
        &self,
        rights: Rights<'_>,
        queue: &str,
        page: QueuePage,
        deadline: Option<Instant>,
    ) -> Result<Browsed, QueueFailure> {
        let named = self.find((rights, &[AccessRight::Inspect]), queue)?;
        let QueuePage { after, max_items } = page;
        self.checked(bounds::check_page(max_items))?;
        let QueueAnswer { depth, reply, .. } =
            self.ask(named, QueueOp::Browse { after, max_items }, deadline).await?;
        let QueueReply::Browsed { items, next } = reply else { return Err(self.garbled()) };
        Ok(Browsed { items, next, depth })
    }

    /// Looks for outcomes; for totals alone if `max_items` is 0.
    pub async fn outcomes(
        &self,
        rights: Rights<'_>,
        queue: &str,
        search: OutcomeSearch<'_>,
        deadline: Option<Instant>,
    ) -> Result<FoundOutcomes, QueueFailure> {
        let named = self.find((rights, &[AccessRight::Enqueue, AccessRight::Take]), queue)?;
        self.checked(bounds::check_outcome(search.text))?;
        self.checked(bounds::check_shown("max_items", search.max_items))?;
        let answer = self.ask(named, QueueOp::Outcomes(search), deadline).await?;
        let QueueReply::Outcomes { found, totals, next } = answer.reply else { return Err(self.garbled()) };
        Ok(FoundOutcomes { outcomes: redacted_for(rights, queue, found), totals, next })
    }

    /// Moves dead letters of a queue back into it.
    pub async fn redrive(
        &self,
        rights: Rights<'_>,
        queue: &str,
        page: QueuePage,
        deadline: Option<Instant>,
    ) -> Result<Redriven, QueueFailure> {
        let named = self.find((rights, &[AccessRight::Reset]), queue)?;
        if named.is_removed {
            return Err(self.unknown(self.shared.rules.unknown(queue)));
        }
        if named.part == QueuePart::Dead {
            let own = named.rule.name();
            return Err(
                self.unsupported(format!("name the queue itself, `{own}`: its dead letters come back"))
            );
        }
        if named.rule.numbers().max_deliveries.is_none() {
            return Err(self.unsupported(format!("queue `{queue}` has no dead letters")));
        }
        let QueuePage { after, max_items } = page;
        self.checked(bounds::check_page(max_items))?;
        let QueueAnswer { depth, reply, .. } =
            self.ask(named, QueueOp::Redrive { after, max_items }, deadline).await?;
        let QueueReply::Redriven { items, next, is_full, dead_depth } = reply else {
            return Err(self.garbled());
        };
        if !items.is_empty() {
            self.count(named, QueueEvent::Redriven, items.len() as u64);
            self.line(named).wake();
        }
        Ok(Redriven { items, next, is_full, depth, dead_depth })
    }

    /// Removes all items of a queue, and returns their number.
    pub async fn purge(
        &self,
        rights: Rights<'_>,
        queue: &str,
        deadline: Option<Instant>,
    ) -> Result<u64, QueueFailure> {
        let named = self.find((rights, &[AccessRight::Reset]), queue)?;
        let answer = self.ask(named, QueueOp::Purge, deadline).await?;
        let QueueReply::Purged { items } = answer.reply else { return Err(self.garbled()) };
        self.count(named, QueueEvent::Purged, items);
        Ok(items)
    }
}

/// Removes the kept parts of payloads from outcomes, unless the caller may see items.
pub(super) fn redacted_for(
    caller: Rights<'_>,
    queue: &str,
    mut outcomes: Vec<OutcomeRecord>,
) -> Vec<OutcomeRecord> {
    if !caller.may_queue(&[AccessRight::Take, AccessRight::Inspect], queue) {
        outcomes.iter_mut().for_each(|outcome| outcome.payload = None);
    }
    outcomes
}
