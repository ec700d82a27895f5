//! ListBans and LiftBan: messages into names of bans, and back.

use tonic::Status;
use weir_node::access::Rights;
use weir_node::audit::named_caller;
use weir_node::limiter::InvalidField;
use weir_node::service::status;
use weir_proto::v1::{ConsumerBan, LiftBanRequest, ListBansRequest, ListBansResponse};

use super::failed;
use crate::bans::BannedCaller;
use crate::model::MAX_BAN_MEMBER;
use crate::task::{BanLift, ControlFault, ControlHandle, MAX_REASON};

const DEFAULT_PAGE: u32 = 100;
const MAX_PAGE: u32 = 1_000;

/// A page of bans.
pub(super) fn page(control: &ControlHandle, asked: &ListBansRequest) -> Result<ListBansResponse, Status> {
    let size = asked.page_size.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&size) {
        return Err(invalid("page_size", size.to_string(), format!("it must be 1 to {MAX_PAGE}")));
    }
    if asked.page_token.len() > MAX_BAN_MEMBER {
        let bound = format!("at most {MAX_BAN_MEMBER}: it must be the next_page_token of the page before");
        return Err(invalid("page_token", format!("{} bytes", asked.page_token.len()), bound));
    }
    let all = control.bans(&asked.page_token);
    let is = |wanted: &str, given: &str| wanted.is_empty() || wanted == given;
    let mut wanted = all.iter().filter(|(_, ban)| {
        is(&asked.strategy, &ban.caller.strategy) && is(&asked.consumer, &ban.caller.consumer)
    });
    let (mut bans, mut last) = (Vec::new(), String::new());
    for (member, ban) in wanted.by_ref().take(size as usize) {
        bans.push(ban.into());
        member.clone_into(&mut last);
    }
    let next_page_token = if wanted.next().is_some() { last } else { String::new() };
    let total = u32::try_from(all.total()).unwrap_or(u32::MAX);
    let incomplete = control.view().incomplete.clone().unwrap_or_default();
    Ok(ListBansResponse { bans, next_page_token, total, incomplete })
}

/// The ban that a caller names.
pub(super) fn lift(
    control: &ControlHandle,
    request: LiftBanRequest,
    rights: Rights<'_>,
) -> Result<BanLift, Status> {
    let LiftBanRequest { ban, reason, dry_run } = request;
    let Some(ban) = ban else {
        let bound = "name the strategy, the limit and the consumer".to_owned();
        return Err(invalid("ban", "not set".to_owned(), bound));
    };
    if reason.len() > MAX_REASON {
        let bound = format!("it may have at most {MAX_REASON}");
        return Err(invalid("reason", format!("{} bytes", reason.len()), bound));
    }
    let ConsumerBan { strategy, limit, consumer, resource, attributes, ends_at: _ } = ban;
    let mut attributes: Vec<_> = attributes.into_iter().collect();
    attributes.sort_unstable();
    let caller = BannedCaller { strategy, limit, consumer, resource, attributes };
    let member = control.ban_of(&caller).ok_or_else(|| failed(ControlFault::NoBan))?;
    Ok(BanLift { member, reason, dry_run, by: named_caller(rights.name()) })
}

fn invalid(field: &'static str, value: String, bound: String) -> Status {
    status::invalid(&InvalidField { field, value, bound })
}
