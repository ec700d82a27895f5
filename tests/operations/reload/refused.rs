//! A feature that finds mistakes in other files keeps all of what is served: limits, texts and parts of other features.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_config::Config;
use weir_node::feature::{Feature, FeatureList, NodeBuilder, RunningFeature, StartError};
use weir_node::feature_parts::FeaturePart;

use super::{Configured, limited_to};
use crate::support::{SOON, eventually};

const FEATURES: FeatureList = &[&Witness, &Picky];

/// The part of the first feature in the snapshot that is served.
static SERVED: AtomicU64 = AtomicU64::new(0);

/// A feature whose part is the number of the files that were read.
struct Witness;

/// A feature that bears one strategy.
struct Picky;

impl Feature for Witness {
    fn name(&self) -> &'static str {
        "witness"
    }

    fn prepare(
        &self,
        _: &Config,
        previous: Option<&FeaturePart>,
    ) -> Result<Option<FeaturePart>, Vec<String>> {
        let before = previous.and_then(FeaturePart::get::<u64>).map_or(0, |number| *number);
        Ok(Some(FeaturePart::new(Arc::new(before + 1))))
    }

    fn start(&self, node: &mut NodeBuilder<'_>) -> Result<Option<Arc<dyn RunningFeature>>, StartError> {
        node.followers.push(Box::new(|snapshot| {
            SERVED.store(snapshot.features.get::<u64>("witness").map_or(0, |number| *number), Relaxed);
            true
        }));
        struct Running;
        impl RunningFeature for Running {}
        Ok(Some(Arc::new(Running)))
    }
}

impl Feature for Picky {
    fn name(&self) -> &'static str {
        "picky"
    }

    fn prepare(&self, next: &Config, _: Option<&FeaturePart>) -> Result<Option<FeaturePart>, Vec<String>> {
        match next.rules.strategies().len() {
            1 => Ok(None),
            count => Err(vec![format!("{count} strategies are too many")]),
        }
    }
}

#[tokio::test]
async fn a_feature_that_refuses_keeps_every_part_of_what_is_served() {
    let file = Configured::start_with(&limited_to(2), FEATURES);
    assert_eq!(SERVED.load(Relaxed), 1);
    assert_eq!(file.asks_under("x", 2).await.limit, Some(2));
    let more = "strategies: { other: { limits: [{ name: l, per: [consumer], fixed_window: { limit: 9, window: 1h } }] },";
    file.write(&limited_to(5).replace("strategies: {", more));
    eventually(SOON, "the files are refused", || file.loads("error") == 1);
    assert_eq!(SERVED.load(Relaxed), 1, "the part of the feature before the one that refused");
    assert_eq!(file.asks("x").await.limit, Some(2), "the limits");
    let says = || file.server.get("/readyz").1.contains("2 strategies are too many");
    eventually(SOON, "the mistake is on the page", says);
    file.write(&limited_to(7));
    assert_eq!(file.asks_under("x", 7).await.limit, Some(7));
    assert_eq!(SERVED.load(Relaxed), 2);
}
