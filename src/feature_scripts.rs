//! What the scripts of each feature need of Redis, and the services that need them.

use weir_node::feature_scripts::{FeatureScripts, ScriptList};
use weir_proto::v1::{
    concurrency_service_server, control_service_server, lease_admin_service_server,
    queue_admin_service_server, queue_service_server, usage_service_server,
};
use weir_store::approximate::APPROXIMATE;
use weir_store::control::CONTROL as CONTROL_SCRIPTS;
use weir_store::redis::{LEASES as LEASE_SCRIPTS, QUEUES as QUEUE_SCRIPTS, QUEUES_THAT_DROP};
use weir_store::usage::{TIME_SERIES, USAGE as USAGE_COMMANDS};

/// All of them.
pub const ALL: ScriptList = &[&LEASES, &QUEUES, &COUNTED, &USAGE, &CONTROL];

static LEASES: FeatureScripts = FeatureScripts {
    services: &[concurrency_service_server::SERVICE_NAME, lease_admin_service_server::SERVICE_NAME],
    scripts: &[(&LEASE_SCRIPTS, |snapshot, _| snapshot.rules.has_leases())],
};

static QUEUES: FeatureScripts = FeatureScripts {
    services: &[queue_service_server::SERVICE_NAME, queue_admin_service_server::SERVICE_NAME],
    scripts: &[
        (&QUEUE_SCRIPTS, |snapshot, _| !snapshot.queues.is_empty()),
        (&QUEUES_THAT_DROP, |snapshot, _| snapshot.queues.reads_groups()),
    ],
};

/// Strategies that nodes count on their own. Their calls are those of decisions.
static COUNTED: FeatureScripts = FeatureScripts {
    services: &[],
    scripts: &[(&APPROXIMATE, |snapshot, _| !snapshot.approximate().is_empty())],
};

static USAGE: FeatureScripts = FeatureScripts {
    services: &[usage_service_server::SERVICE_NAME],
    scripts: &[
        (&USAGE_COMMANDS, |_, settings| settings.shared_usage),
        (&TIME_SERIES, |_, settings| settings.time_series),
    ],
};

static CONTROL: FeatureScripts = FeatureScripts {
    services: &[control_service_server::SERVICE_NAME],
    scripts: &[(&CONTROL_SCRIPTS, |_, settings| settings.control)],
};
