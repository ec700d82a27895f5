//! Words and numbers of an answer that its limits share.

use weir_core::algorithm::Cause;
use weir_proto::v1::Reason;
use weir_units::{Micros, Retry};

pub(super) const fn cause(cause: Option<Cause>) -> &'static str {
    match cause {
        None => "",
        Some(Cause::Count) => "count",
        Some(Cause::MinGap) => "min_gap",
        Some(Cause::Never) => "never",
    }
}

pub(super) const fn reason(allowed: bool, retry: Retry) -> Reason {
    match retry {
        _ if allowed => Reason::Ok,
        Retry::Never => Reason::Never,
        Retry::Now | Retry::After(_) | Retry::Unknown => Reason::Limited,
    }
}

pub(super) const fn wait(retry: Retry) -> Option<Micros> {
    match retry {
        Retry::After(wait) => Some(wait),
        Retry::Now | Retry::Unknown | Retry::Never => None,
    }
}
