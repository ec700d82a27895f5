//! A node's facts as fields of a hash. Other nodes' fields are untrusted data, and bounded.

/// The longest text of a row, in characters.
const MAX_TEXT: usize = 128;

/// State of a node in serving calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodePhase {
    /// The node decides.
    Serving,
    /// The node decides, or its failure policies do: some or all nodes of the store do not.
    Degraded,
    /// The node is not ready.
    NotReady,
    /// The node is about to end.
    Draining,
    /// The node has ended.
    Ended,
}

/// One node: a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeploymentNode {
    /// Name of the node; several processes may have the same.
    pub(crate) name: String,
    /// Address of the gRPC port.
    pub(crate) address: String,
    /// State in serving calls.
    pub(crate) state: NodePhase,
    /// End in seconds since 1970, or the last write of a crashed node.
    pub(crate) ended: Option<u64>,
    /// Version of the program.
    pub(crate) version: String,
    /// Start in seconds since 1970.
    pub(crate) started: u64,
    /// Last reading of the files without a mistake, in seconds since 1970.
    pub(crate) files_read: u64,
    /// The hash of its files.
    pub(crate) files: String,
    /// The version of live control in force; 0 without.
    pub(crate) control: u64,
}

impl NodePhase {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Serving, "serving"),
        (Self::Degraded, "degraded"),
        (Self::NotReady, "not_ready"),
        (Self::Draining, "draining"),
        (Self::Ended, "ended"),
    ];

    /// Name of the state.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }
}

impl DeploymentNode {
    /// The fields of its hash.
    pub(super) fn fields(&self) -> Vec<(String, String)> {
        let Self { name, address, state, ended, version, started, files_read, files, control } = self;
        let fields = [
            ("name", name.clone()),
            ("address", address.clone()),
            ("state", state.name().to_owned()),
            ("ended", ended.unwrap_or_default().to_string()),
            ("version", version.clone()),
            ("started", started.to_string()),
            ("files_read", files_read.to_string()),
            ("files", files.clone()),
            ("control", control.to_string()),
        ];
        fields.map(|(field, value)| (field.to_owned(), value)).into()
    }

    /// Reads the fields of a hash. A node that is not up has ended; `None` if there is no row.
    pub(super) fn read(fields: Vec<(String, String)>, is_up: bool) -> Option<Self> {
        let text = |name: &str| {
            let value = fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value);
            value.chars().take(MAX_TEXT).collect::<String>()
        };
        let number = |name: &str| text(name).parse::<u64>().unwrap_or_default();
        if fields.is_empty() {
            return None;
        }
        let said = text("state");
        let state = NodePhase::ALL
            .iter()
            .find(|(_, name)| *name == said)
            .map_or(NodePhase::NotReady, |(state, _)| *state);
        let ended = number("ended");
        let has_ended = state == NodePhase::Ended || !is_up;
        Some(Self {
            name: text("name"),
            address: text("address"),
            state: if has_ended { NodePhase::Ended } else { state },
            ended: has_ended.then(|| if ended > 0 { ended } else { number("seen") }),
            version: text("version"),
            started: number("started"),
            files_read: number("files_read"),
            files: text("files"),
            control: number("control"),
        })
    }

    /// Nodes that run come first, by name; then those that have ended, the last first.
    pub(super) fn order(&self) -> (bool, std::cmp::Reverse<Option<u64>>, &str, u64) {
        (self.ended.is_some(), std::cmp::Reverse(self.ended), &self.name, self.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, ended: Option<u64>) -> DeploymentNode {
        DeploymentNode {
            name: name.to_owned(),
            address: "10.0.0.1:8081".to_owned(),
            state: if ended.is_some() { NodePhase::Ended } else { NodePhase::Degraded },
            ended,
            version: "0.1.0".to_owned(),
            started: 7,
            files_read: 8,
            files: "0123".to_owned(),
            control: 9,
        }
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        for node in [node("a", None), node("b", Some(70))] {
            assert_eq!(DeploymentNode::read(node.fields(), true), Some(node));
        }
        let mut crashed = node("a", None).fields();
        crashed.push(("seen".to_owned(), "60".to_owned()));
        assert_eq!(DeploymentNode::read(crashed, false), Some(node("a", Some(60))));
        assert_eq!(DeploymentNode::read(Vec::new(), true), None);
        let foreign = vec![("name".to_owned(), "x".repeat(1_000)), ("started".to_owned(), "soon".to_owned())];
        let read = DeploymentNode::read(foreign, true).unwrap();
        assert_eq!((read.name.len(), read.started, read.state), (MAX_TEXT, 0, NodePhase::NotReady));
    }

    #[test]
    fn nodes_that_have_ended_are_apart() {
        let mut nodes = [node("z", Some(10)), node("b", None), node("y", Some(20)), node("a", None)];
        nodes.sort_by(|one, other| one.order().cmp(&other.order()));
        assert_eq!(nodes.map(|node| node.name), ["a", "b", "y", "z"]);
    }
}
