//! Whose keys, without borrowing from a caller, for a call that may outlive it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::{Decision, Part};
use weir_core::key::Subject;
use weir_core::strategy::{Attributes, Strategy};

pub(super) struct Owned {
    resource: String,
    consumer: String,
    group: Option<String>,
    attributes: HashMap<String, String>,
}

impl Owned {
    pub(super) fn of(subject: &Subject<'_>) -> Self {
        let Subject { resource, consumer, group, attributes } = *subject;
        Self {
            resource: resource.to_owned(),
            consumer: consumer.to_owned(),
            group: group.map(str::to_owned),
            attributes: attributes.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        }
    }

    pub(super) fn decision<'a>(
        &'a self,
        strategy: &'a Arc<Strategy>,
        deadline: Option<Instant>,
    ) -> Decision<'a> {
        let subject = Subject {
            resource: &self.resource,
            consumer: &self.consumer,
            group: self.group.as_deref(),
            attributes: Attributes::of(&self.attributes),
        };
        Decision { strategy, subject, deadline, part: Part::ALL }
    }
}
