//! The files of the configuration, watched: a reload makes the next snapshot of them.

use std::sync::Arc;

use weir_config::{Applies, Config, ConfigErrors, ConfigOrigin, FilesSnapshot, Settling};

use crate::access::{CallerAccess, SnapshotRights};
use crate::feature::FollowConfig;
use crate::feature_parts::FeatureParts;
use crate::readiness::FileKind;
use crate::reload::{FileRules, RunningConfig};
use crate::telemetry::Metrics;
use crate::watch::{ReloadReport, WatchedFiles};

pub(super) struct WatchedConfig {
    /// The settings in force, without the rules. One that needs a restart keeps its value here.
    settings: Config,
    origin: ConfigOrigin,
    files: Settling<FilesSnapshot>,
    running: RunningConfig,
    metrics: Metrics,
    /// The access of callers; `None` without identity.
    access: Option<Arc<CallerAccess>>,
    followers: Vec<FollowConfig>,
}

impl WatchedConfig {
    /// Watches the files of a configuration, if it came from any.
    pub(super) fn new(
        settings: &Config,
        running: &RunningConfig,
        metrics: &Metrics,
        (access, followers): (Option<Arc<CallerAccess>>, Vec<FollowConfig>),
    ) -> Option<Self> {
        let origin = settings.origin.clone()?;
        // As they were read at the start: what has changed since then is found by the first looks.
        let files = Settling::new(origin.as_read().clone());
        let origin = if settings.server.control { origin.keeping_written() } else { origin };
        let (settings, running, metrics) = (settings.clone(), running.clone(), metrics.clone());
        Some(Self { settings, origin, files, running, metrics, access, followers })
    }

    /// Applies what was read, or logs and returns every mistake in it.
    fn take(&mut self, read: Result<Config, ConfigErrors>) -> ReloadReport {
        match read {
            Ok(next) => match self.running.prepare(&next) {
                Ok(features) => {
                    self.apply(next, features);
                    Ok(())
                }
                Err(mistakes) => Err(self.refuse(mistakes)),
            },
            Err(errors) => Err(self.refuse(errors.to_string().lines().map(str::to_owned).collect())),
        }
    }

    /// Counts and logs mistakes, for which everything stays as it was.
    fn refuse(&self, mistakes: Vec<String>) -> Vec<String> {
        self.metrics.config().refused();
        for mistake in &mistakes {
            tracing::error!("configuration rejected; keeping the previous one: {mistake}");
        }
        mistakes
    }

    fn apply(&mut self, next: Config, features: FeatureParts) {
        for change in self.settings.setting_changes(&next) {
            if change.applies == Applies::AtRestart {
                tracing::warn!(
                    setting = change.path, %change,
                    "setting changed, but needs a restart; keeping the old value"
                );
            }
        }
        let rights = self.changed_rights(&next);
        self.followers.iter_mut().for_each(|follow| follow(&next));
        let Config { authorize, rules, written, messages, server, fingerprint, meanings, .. } = next;
        self.settings.messages = messages.clone();
        self.settings.server.inline_limits = server.inline_limits;
        self.running.set_files(FileRules {
            rules,
            written,
            features,
            rights: rights.clone(),
            messages,
            meanings,
        });
        if let (Some(access), Some(rights)) = (&self.access, &rights) {
            access.set_rules(rights);
            self.settings.authorize = authorize;
            tracing::info!("rules of `authorize` reloaded");
        }
        self.metrics.config().read(fingerprint);
        let strategies = self.running.current().rules.strategies().len();
        tracing::info!(strategies, "configuration reloaded");
    }

    /// The rules of `authorize` that are next, if they differ.
    fn changed_rights(&self, next: &Config) -> Option<SnapshotRights> {
        let access = self.access.as_ref().filter(|_| next.has_identity())?;
        access.next_rules(next.authorize.as_deref())
    }
}

impl WatchedFiles for WatchedConfig {
    fn kind(&self) -> FileKind {
        FileKind::CONFIG
    }

    fn poll(&mut self) -> Option<ReloadReport> {
        if !self.files.is_settled(self.origin.snapshot()) {
            return None;
        }
        let read = self.origin.read();
        // Files that have changed meanwhile may have been read in part: a later look reads them again.
        if self.origin.snapshot() != *self.origin.as_read() {
            return None;
        }
        self.files.was_read_as(self.origin.as_read().clone());
        Some(self.take(read))
    }

    fn reload(&mut self) -> ReloadReport {
        let read = self.origin.read();
        self.files.was_read_as(self.origin.as_read().clone());
        self.take(read)
    }
}
