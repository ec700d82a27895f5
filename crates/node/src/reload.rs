//! The configuration in force: the files', and changes of live control on top of it. Each change of either makes the
//! next snapshot.

use std::sync::Arc;

use parking_lot::Mutex;
use weir_config::{Config, DenialMessages, StrategyMeanings, WrittenStrategies};
use weir_core::strategy::Rules;
use weir_store::scripts::UsesInForce;
use weir_units::Micros;

use crate::access::SnapshotRights;
use crate::feature::{self, FeatureList};
use crate::feature_parts::{FeaturePart, FeatureParts};
use crate::overlay_target::{MakeEdits, Overlay, OverlayTarget};
use crate::server::LiveSnapshot;
use crate::service::{Snapshot, Templates};
use crate::telemetry::Metrics;

/// Receives the rules, and the parts of features, before they are served.
pub type ShareMemory = dyn Fn(&Rules, &FeatureParts) + Send + Sync;

/// Receives what the files say of each strategy.
pub type PublishMeanings = dyn Fn(&StrategyMeanings) + Send + Sync;

/// The configuration in force. Clones share it.
#[derive(Clone)]
pub struct RunningConfig(Arc<Running>);

struct Running {
    live: Arc<LiveSnapshot>,
    followers: SnapshotFollowers,
    sources: Mutex<Sources>,
}

/// Inputs of a snapshot, besides the parts that features set while the node runs.
struct Sources {
    rules: Arc<Rules>,
    /// The strategies as the files write them.
    written: Arc<WrittenStrategies>,
    overlay: Option<Overlay>,
}

/// Observers of each snapshot, besides the workers.
pub struct SnapshotFollowers {
    /// The metrics, whose rows follow the names.
    pub metrics: Metrics,
    /// The capabilities that the store's probes exercise.
    pub engines: UsesInForce,
    /// The shares of the memory store.
    pub share: Arc<ShareMemory>,
    /// The features, whose scripts the probes exercise as well.
    pub features: FeatureList,
    /// Time for which denials are valid.
    pub denials_valid: Micros,
    /// Shows other nodes what the files say of each strategy.
    pub publish: Arc<PublishMeanings>,
}

/// The parts of the files that make a snapshot.
pub struct FileRules {
    /// The strategies, resources, lists and overrides.
    pub rules: Rules,
    /// The strategies as the files write them.
    pub written: Arc<WrittenStrategies>,
    /// The parts of features.
    pub features: FeatureParts,
    /// The rules of `authorize`, if they change.
    pub rights: Option<SnapshotRights>,
    /// The texts of denials.
    pub messages: DenialMessages,
    /// Meaning of each strategy.
    pub meanings: StrategyMeanings,
}

impl RunningConfig {
    /// Begins with the current snapshot, which is that of the files.
    pub fn new(live: Arc<LiveSnapshot>, config: &Config, followers: SnapshotFollowers) -> Self {
        (followers.publish)(&config.meanings);
        let written = Arc::clone(&config.written);
        let sources = Mutex::new(Sources { rules: live.current().rules, written, overlay: None });
        let running = Running { live, followers, sources };
        running.follow(&running.live.current());
        Self(Arc::new(running))
    }

    /// The current snapshot.
    pub fn current(&self) -> Snapshot {
        self.0.live.current()
    }

    /// Makes the parts of features of other files. If one of them finds mistakes, nothing of these files may be served.
    pub fn prepare(&self, next: &Config) -> Result<FeatureParts, Vec<String>> {
        let before = self.current().features;
        feature::prepare(self.0.followers.features, next, &before).map_err(|(_, mistakes)| mistakes)
    }

    /// Serves what other files say. Live control stays on top of it.
    pub fn set_files(&self, files: FileRules) {
        let FileRules { rules, written, features, rights, messages, meanings } = files;
        let mut sources = self.0.sources.lock();
        sources.written = written;
        sources.rules = Arc::new(rules.after(&sources.rules));
        let templates = Templates::new(&messages).with_denials_valid_for(self.0.followers.denials_valid);
        self.0.replace(|before| Snapshot {
            rights: rights.unwrap_or_else(|| before.rights.clone()),
            templates: Arc::new(templates),
            features: features.after(&before.features),
            ..self.0.under(sources.in_force(), before)
        });
        (self.0.followers.publish)(&meanings);
    }

    /// Serves another part of a feature that runs.
    pub fn set_part(&self, feature: &'static str, part: FeaturePart) {
        self.0.replace(|before| Snapshot { features: before.features.with(feature, part), ..before.clone() });
    }
}

impl OverlayTarget for RunningConfig {
    fn rules(&self) -> Arc<Rules> {
        self.current().rules
    }

    fn files(&self) -> (Arc<Rules>, Arc<WrittenStrategies>) {
        let sources = self.0.sources.lock();
        (Arc::clone(&sources.rules), Arc::clone(&sources.written))
    }

    fn set_overlay(&self, overlay: Option<Overlay>) {
        let mut sources = self.0.sources.lock();
        sources.overlay = overlay;
        self.0.replace(|before| self.0.under(sources.in_force(), before));
    }

    fn edit_overlay(&self, overlay: Overlay, edits: &MakeEdits<'_>) {
        let mut sources = self.0.sources.lock();
        sources.overlay = Some(overlay);
        let edits = edits(&sources.rules, &sources.written);
        self.0.live.replace(|before| match edits.as_deref().and_then(|edits| before.rules.edited(edits)) {
            Some(rules) => self.0.edited(rules, before),
            None => {
                let next = self.0.under(sources.in_force(), before);
                self.0.follow(&next);
                next
            }
        });
    }
}

impl Sources {
    fn in_force(&self) -> Arc<Rules> {
        match &self.overlay {
            None => Arc::clone(&self.rules),
            Some(overlay) => Arc::new(overlay(&self.rules, &self.written)),
        }
    }
}

impl Running {
    /// The snapshot of `rules` after `before`, with everything else as it was.
    fn under(&self, rules: Arc<Rules>, before: &Snapshot) -> Snapshot {
        let rules = Arc::new(Arc::unwrap_or_clone(rules).after(&before.rules));
        Snapshot {
            rows: self.followers.metrics.reconfigure(&rules),
            removed: Arc::new(rules.removed_permits([&before.rules, &before.removed])),
            rules,
            ..before.clone()
        }
    }

    /// The snapshot of `rules` that have other exceptions than those of `before`, and the same strategies: rows, removed
    /// strategies and owners stay.
    fn edited(&self, rules: Rules, before: &Snapshot) -> Snapshot {
        let has_new_engines = !rules.engines().eq(before.rules.engines());
        let next = Snapshot { rules: Arc::new(rules), ..before.clone() };
        if has_new_engines {
            let SnapshotFollowers { engines, features, .. } = &self.followers;
            engines.set(feature::uses(features, &next));
        }
        next
    }

    fn replace(&self, next: impl FnOnce(&Snapshot) -> Snapshot) {
        self.live.replace(|before| {
            let next = next(before);
            self.follow(&next);
            next
        });
    }

    fn follow(&self, snapshot: &Snapshot) {
        let SnapshotFollowers { engines, share, features, .. } = &self.followers;
        engines.set(feature::uses(features, snapshot));
        share(&snapshot.rules, &snapshot.features);
    }
}
