//! The commands, as they are read.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A command: what questions get from now on, or what happens to connections.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScriptCommand {
    /// Neither reads, writes nor accepts.
    Freeze {},
    /// Ends `Freeze`.
    Thaw {},
    /// Cuts all connections and closes the port.
    Refuse {},
    /// Opens the port again.
    Listen {},
    /// Sends GOAWAY on every connection.
    Goaway {},
    /// Returns the questions.
    Log {},
    /// Forgets rules and questions.
    Clear {},
    /// Ends the server.
    Stop {},
    /// Says what questions get.
    #[serde(untagged)]
    ScriptRule(Box<ScriptRule>),
}

/// The answer to matching questions.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScriptRule {
    /// A message.
    Answer(RuleFields),
    /// A status.
    Status(RuleFields),
    /// Nothing.
    Silent(RuleFields),
    /// A connection that is cut.
    Lose(RuleFields),
    /// The call is refused as one that no server has read: REFUSED_STREAM.
    Unread(RuleFields),
    /// The answer of the next rule, but later.
    Late(RuleFields),
    /// Bytes, or a text.
    Raw(RuleFields),
    /// Over HTTP, an answer that is none of Weir: a text with a status.
    Html(RuleFields),
    /// Over HTTP, a redirect.
    Redirect(RuleFields),
}

/// The fields of rules. A field that is not known is a mistake of a scenario.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RuleFields {
    /// Fields of the question, and `method`.
    pub(crate) r#match: Map<String, Value>,
    /// Number of questions that the rule answers: all, if it is not set.
    pub(crate) times: Option<u64>,
    /// Wait before the answer.
    pub(crate) delay_ms: u64,
    /// The message of `Answer`.
    pub(crate) decision: Value,
    /// The code of `Status`: its name or its number.
    pub(crate) code: Value,
    /// The text of `Status`, `Raw` and `Html`.
    pub(crate) message: String,
    /// The status of `Html` and `Redirect`.
    pub(crate) status: Option<u16>,
    /// The target of `Redirect`.
    pub(crate) location: String,
    /// The details of `Status`, in hexadecimal digits.
    pub(crate) details: String,
    /// The bytes of `Raw`, in hexadecimal digits.
    pub(crate) hex: String,
}

impl ScriptRule {
    /// The fields of the rule.
    pub(crate) const fn given(&self) -> &RuleFields {
        match self {
            Self::Answer(given)
            | Self::Status(given)
            | Self::Silent(given)
            | Self::Lose(given)
            | Self::Unread(given)
            | Self::Late(given)
            | Self::Raw(given)
            | Self::Html(given)
            | Self::Redirect(given) => given,
        }
    }
}
