//! The rules, and the questions that were asked.

use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::command::{RuleFields, ScriptRule};
use crate::messages::{ScriptedForm, WireMessages};

/// More questions are not kept.
const MOST_LOGGED: usize = 100_000;

const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// A question, with what a log says of it.
pub(crate) struct AskedQuestion<'a> {
    /// The path of the method.
    pub(crate) path: &'a str,
    /// The message.
    pub(crate) bytes: &'a [u8],
    /// The form of the message, and of its answer.
    pub(crate) form: ScriptedForm,
    /// Names and values of the metadata.
    pub(crate) metadata: Vec<(String, String)>,
    /// The number of the connection.
    pub(crate) connection: u64,
}

/// The answer to a question.
pub(crate) enum ScriptedOutcome {
    /// A message.
    Message(Bytes),
    /// A status: its number, its text and its details.
    Status(u64, String, Bytes),
    /// Nothing.
    Silent,
    /// A connection that is cut.
    Lose,
    /// A refusal that says that nobody has read it.
    Unread,
    /// An answer of HTTP that is none of Weir: its status, its text, and where it redirects to.
    Page(u16, String, Option<String>),
}

/// The rules and the log.
pub(crate) struct AnswerScript {
    messages: WireMessages,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rules: Vec<(ScriptRule, Option<u64>)>,
    log: Vec<Value>,
}

impl AnswerScript {
    /// Creates a script without rules.
    pub(crate) fn new(messages: WireMessages) -> Self {
        Self { messages, state: Mutex::default() }
    }

    /// Adds a rule, which comes before all others. What it can never answer with is refused now.
    pub(crate) fn add(&self, rule: ScriptRule) -> Result<(), String> {
        let given = rule.given();
        match &rule {
            ScriptRule::Status(RuleFields { code, details, .. }) => {
                code_of(code)?;
                bytes_of(details)?;
            }
            ScriptRule::Raw(given) => drop(raw(given)?),
            ScriptRule::Answer(_) if !given.r#match.contains_key("method") => {
                drop(self.messages.answer(
                    "/weir.v1.RateLimitService/ShouldAllow",
                    &given.decision,
                    ScriptedForm::Proto,
                )?);
            }
            _ => {}
        }
        let times = given.times;
        self.state.lock().rules.push((rule, times));
        Ok(())
    }

    /// Forgets rules and questions.
    pub(crate) fn clear(&self) {
        *self.state.lock() = State::default();
    }

    /// Returns the questions.
    pub(crate) fn log(&self) -> Vec<Value> {
        self.state.lock().log.clone()
    }

    /// Logs a question, and returns what it gets and after which time.
    pub(crate) fn ask(&self, question: &AskedQuestion<'_>) -> (Duration, ScriptedOutcome) {
        let method = question.path.rsplit('/').next().unwrap_or_default();
        let request = self.messages.request(question.path, question.bytes, question.form).unwrap_or_default();
        let mut state = self.state.lock();
        if state.log.len() < MOST_LOGGED {
            let (metadata, connection) = (&question.metadata, question.connection);
            state.log.push(
                json!({ "method": method, "metadata": metadata, "request": request, "connection": connection }),
            );
        }
        let (mut delay, mut outcome) = (0, none());
        for (rule, left) in state.rules.iter_mut().rev() {
            let given = rule.given();
            if *left == Some(0) || !matches(&given.r#match, method, &request) {
                continue;
            }
            *left = left.map(|left| left - 1);
            delay += given.delay_ms;
            if let Some(found) = self.outcome(rule, question.path, question.form) {
                outcome = found;
                break;
            }
        }
        (Duration::from_millis(delay), outcome)
    }

    /// The answer of a rule, or nothing if the next one answers.
    fn outcome(&self, rule: &ScriptRule, path: &str, form: ScriptedForm) -> Option<ScriptedOutcome> {
        let mistake = |reason| ScriptedOutcome::Status(13, reason, Bytes::new());
        Some(match rule {
            ScriptRule::Late(_) => return None,
            ScriptRule::Silent(_) => ScriptedOutcome::Silent,
            ScriptRule::Lose(_) => ScriptedOutcome::Lose,
            ScriptRule::Unread(_) => ScriptedOutcome::Unread,
            ScriptRule::Raw(given) => raw(given).map_or_else(mistake, ScriptedOutcome::Message),
            ScriptRule::Html(given) => {
                ScriptedOutcome::Page(given.status.unwrap_or(200), given.message.clone(), None)
            }
            ScriptRule::Redirect(given) => ScriptedOutcome::Page(
                given.status.unwrap_or(302),
                given.message.clone(),
                Some(given.location.clone()),
            ),
            ScriptRule::Answer(given) => self
                .messages
                .answer(path, &given.decision, form)
                .map_or_else(mistake, ScriptedOutcome::Message),
            ScriptRule::Status(given) => match (code_of(&given.code), bytes_of(&given.details)) {
                (Ok(code), Ok(details)) => ScriptedOutcome::Status(code, given.message.clone(), details),
                (Err(reason), _) | (_, Err(reason)) => mistake(reason),
            },
        })
    }
}

/// A mistake of the caller, so that no policy answers a scenario that has forgotten its rule.
fn none() -> ScriptedOutcome {
    ScriptedOutcome::Status(9, "the script has no rule for this question".into(), Bytes::new())
}

fn matches(wanted: &Map<String, Value>, method: &str, request: &Map<String, Value>) -> bool {
    wanted.iter().all(|(name, value)| match &name[..] {
        "method" => value == method,
        // Fields that have their default are not in protobuf's JSON.
        name => request.get(name).map_or_else(|| value == "", |found| found == value),
    })
}

fn code_of(code: &Value) -> Result<u64, String> {
    let named = |name: &str| CODES.iter().position(|code| *code == name).map(|place| place as u64);
    let number = code.as_u64().or_else(|| named(code.as_str()?));
    number.ok_or_else(|| format!("code: {code} is not the name or the number of a gRPC code"))
}

fn raw(given: &RuleFields) -> Result<Bytes, String> {
    if given.hex.is_empty() { Ok(given.message.clone().into()) } else { bytes_of(&given.hex) }
}

fn bytes_of(hex: &str) -> Result<Bytes, String> {
    let digits: Option<Vec<u8>> =
        hex.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => {
            Ok(digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect())
        }
        _ => Err(format!("{hex} is not an even number of hexadecimal digits")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/weir.v1.RateLimitService/ShouldAllow";

    fn script(rules: &[&str]) -> AnswerScript {
        let script = AnswerScript::new(WireMessages::new().unwrap());
        for rule in rules {
            script.add(serde_json::from_str(rule).unwrap()).unwrap();
        }
        script
    }

    fn ask(script: &AnswerScript, consumer: &str) -> (u128, String) {
        let bytes = script.messages.answer(PATH, &Value::Null, ScriptedForm::Proto).unwrap();
        assert!(bytes.is_empty());
        let bytes = [&[0x12, u8::try_from(consumer.len()).unwrap()], consumer.as_bytes()].concat();
        let question = AskedQuestion {
            path: PATH,
            bytes: &bytes,
            form: ScriptedForm::Proto,
            metadata: Vec::new(),
            connection: 0,
        };
        let (delay, outcome) = script.ask(&question);
        let text = match outcome {
            ScriptedOutcome::Message(bytes) => format!("{:02x?}", &bytes[..]),
            ScriptedOutcome::Status(code, text, _) => format!("{code} {text}"),
            ScriptedOutcome::Silent => "silent".into(),
            ScriptedOutcome::Lose => "lose".into(),
            ScriptedOutcome::Unread => "unread".into(),
            ScriptedOutcome::Page(status, ..) => status.to_string(),
        };
        (delay.as_millis(), text)
    }

    #[test]
    fn the_newest_rule_that_matches_answers_as_often_as_it_says() {
        let script = script(&[
            r#"{"answer":{"decision":{"allowed":true}}}"#,
            r#"{"status":{"match":{"consumer":"bob"},"code":"NOT_FOUND","message":"no","times":1}}"#,
            r#"{"late":{"delay_ms":30,"times":2}}"#,
        ]);
        assert_eq!(ask(&script, "bob"), (30, "5 no".into()));
        assert_eq!(ask(&script, "carol"), (30, "[08, 01]".into()));
        assert_eq!(ask(&script, "bob"), (0, "[08, 01]".into()));
        assert_eq!(script.log()[0]["request"]["consumer"], "bob");
        script.clear();
        assert_eq!(ask(&script, "bob").1, "9 the script has no rule for this question");
    }

    #[test]
    fn what_can_never_answer_is_refused() {
        for rule in [
            r#"{"status":{"code":"NOT_A_CODE"}}"#,
            r#"{"raw":{"hex":"abc"}}"#,
            r#"{"answer":{"decision":{"alowed":true}}}"#,
        ] {
            let script = AnswerScript::new(WireMessages::new().unwrap());
            assert!(script.add(serde_json::from_str(rule).unwrap()).is_err(), "{rule}");
        }
        assert!(serde_json::from_str::<ScriptRule>(r#"{"silent":{"time":1}}"#).is_err());
    }
}
