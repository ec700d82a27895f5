//! Requests about a resource and a consumer, under a strategy.

use weir_proto::v1::{
    CancelReservationRequest, CountRequest, DebitRequest, RefundRequest, ReserveRequest, ResetRequest,
    SettleRequest,
};

pub(crate) trait About {
    /// A request with nothing else.
    fn about(strategy: &str, resource: &str, consumer: &str) -> Self;
}

macro_rules! about {
    ($($request:ident)*) => {$(
        impl About for $request {
            fn about(strategy: &str, resource: &str, consumer: &str) -> Self {
                let [strategy, resource, consumer] = [strategy, resource, consumer].map(str::to_owned);
                Self { strategy, resource, consumer, ..Self::default() }
            }
        }
    )*};
}

about! {
    CancelReservationRequest CountRequest DebitRequest RefundRequest ReserveRequest ResetRequest SettleRequest
}
