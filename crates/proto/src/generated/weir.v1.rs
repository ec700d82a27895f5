include!("weir.v1.admin.rs");
include!("weir.v1.control.rs");
include!("weir.v1.leases.rs");
include!("weir.v1.queues.rs");
include!("weir.v1.rate_limit.rs");
include!("weir.v1.usage.rs");
