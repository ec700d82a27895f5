//! Overrides and shadows of rules, in two tiers: those of the files, and those of live control, which take precedence. Rules
//! that differ from others in a few strategies keep the tables of the rest.

use std::sync::Arc;

use super::rules::engines_of;
use super::shadows::TieredOverrides;
use super::{Field, Override, Overrides, Rules, Shadow, ShadowLimit, Strategy};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KeptStrategies<'a> {
    /// The other rules; `None`: all strategies are new.
    pub(super) of: Option<&'a Rules>,
    /// True for each place whose strategy is the same in both.
    pub(super) same: &'a [bool],
}

impl<'a> KeptStrategies<'a> {
    /// The rules that have the strategy at this place as well.
    fn at(self, place: usize) -> Option<&'a Rules> {
        self.of.filter(|_| self.same.get(place).copied().unwrap_or_default())
    }
}

impl Rules {
    /// Sets the overrides; each names its strategy.
    #[must_use]
    pub fn with_overrides(self, overrides: impl IntoIterator<Item = Override>) -> Self {
        self.with_tiers(overrides, [], KeptStrategies::default())
    }

    /// Sets the overrides of the files, and those of live control, which take precedence. The files' overrides of
    /// strategies that are `kept` stay as they are there.
    pub(super) fn with_tiers(
        mut self,
        files: impl IntoIterator<Item = Override>,
        first: impl IntoIterator<Item = Override>,
        kept: KeptStrategies<'_>,
    ) -> Self {
        let (files, first) = (self.by_strategy(files), self.by_strategy(first));
        self.engines.extend(kept.of.into_iter().flat_map(Self::engines));
        for (place, (files, first)) in files.into_iter().zip(first).enumerate() {
            let kept = kept.at(place).and_then(|rules| rules.exceptions.get(place));
            match (kept, self.exceptions.get_mut(place)) {
                (Some(kept), Some(own)) => {
                    own.overrides = kept.overrides.rest().after(Overrides::live(first))
                }
                _ => self.set_overrides(place, files, first),
            }
        }
        self
    }

    fn by_strategy(&mut self, overrides: impl IntoIterator<Item = Override>) -> Vec<Vec<Override>> {
        let mut each: Vec<Vec<Override>> = self.strategies.iter().map(|_| Vec::new()).collect();
        for one in overrides {
            let index = self.by_name.get(one.strategy.name());
            if let Some(all) = index.and_then(|&index| each.get_mut(index)) {
                self.engines.extend(engines_of(&one.strategy));
                all.push(one);
            }
        }
        each
    }

    /// Sets the overrides of one strategy. Of a counter that resources share, an override for some of them charges with
    /// other numbers than the rest.
    fn set_overrides(&mut self, place: usize, mut files: Vec<Override>, mut first: Vec<Override>) {
        let (Some(exceptions), Some(base)) = (self.exceptions.get_mut(place), self.strategies.get_mut(place))
        else {
            return;
        };
        if mixes(base, files.iter().chain(&first)) {
            *base = Arc::new(Strategy::clone(base).mixing_numbers());
            for one in files.iter_mut().chain(&mut first) {
                one.strategy = one.strategy.clone().mixing_numbers();
            }
        }
        exceptions.overrides = Overrides::new(files).after(Overrides::live(first));
    }

    /// Sets the shadows: for each strategy the indexes of its shadows, and their `overrides`. Limits in shadow mode
    /// are found here as well.
    #[must_use]
    pub fn with_shadows(self, shadows: &[Vec<usize>], overrides: &[Override]) -> Self {
        let kept = KeptStrategies::default();
        self.with_tiered_shadows(shadows, TieredOverrides { files: overrides, first: &[] }, kept)
    }

    pub(super) fn with_tiered_shadows(
        mut self,
        shadows: &[Vec<usize>],
        overrides: TieredOverrides<'_>,
        kept: KeptStrategies<'_>,
    ) -> Self {
        let mut pairs = 0..;
        let of = |(own, (live, places)): (usize, (&Arc<Strategy>, &Vec<usize>))| {
            let known = places.iter().filter_map(|&place| Some((place, self.strategies.get(place)?)));
            let shadow = |((place, strategy), pair): ((usize, &Arc<Strategy>), usize)| {
                let kept = kept.at(own).and(kept.at(place));
                let same = kept.and_then(|rules| rules.shadows(own).iter().find(|one| one.index == place));
                match same {
                    Some(same) => same.with_first(live, pair, overrides.first),
                    None => Shadow::new((place, strategy), live, pair, overrides),
                }
            };
            known.zip(&mut pairs).map(shadow).collect()
        };
        self.shadows = self.strategies.iter().zip(shadows).enumerate().map(of).collect();
        let limits = self.strategies.iter().map(|strategy| ShadowLimit::all_of(strategy, &mut pairs));
        self.shadow_limits = limits.collect();
        self.has_shadows = pairs.start > 0;
        self
    }
}

/// True if an override for some resources would charge a counter that other resources share.
pub(super) fn mixes<'o>(base: &Strategy, mut overrides: impl Iterator<Item = &'o Override>) -> bool {
    base.limits().iter().any(|limit| !limit.scope.has(Field::Resource))
        && overrides.any(|one| one.resource != "*")
}
