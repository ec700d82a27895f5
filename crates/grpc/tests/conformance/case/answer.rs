//! The answer of one call.

use super::expected::check;
use crate::client::Event;

/// Received events of one stream.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) fields: Vec<(String, String)>,
    pub(super) bytes: Vec<u8>,
    pub(super) blocks: usize,
    pub(super) ended: bool,
}

impl Answer {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.0 == name).map(|field| &*field.1)
    }

    pub(super) fn has_begun(&self) -> Result<(), String> {
        let status = self.fields.first().map(|field| (&*field.0, &*field.1));
        check(status == Some((":status", "200")), || format!("{:?}", self.fields))?;
        check(self.field("content-type") == Some("application/grpc"), || format!("{:?}", self.fields))
    }

    pub(super) fn ends_with(&self, code: u32) -> Result<(), String> {
        check(self.ended, || "it has not ended".to_owned())?;
        check(self.field("grpc-status") == Some(&*code.to_string()), || format!("{:?}", self.fields))
    }
}

pub(super) fn answer(events: &mut Vec<Event>, of: u32) -> Result<Answer, String> {
    let mut answer = Answer::default();
    let mut fault = Ok(());
    events.retain(|event| {
        let behind = answer.ended;
        match event {
            Event::Headers { stream, fields, end } if *stream == of => {
                answer.fields.extend_from_slice(fields);
                answer.blocks += 1;
                answer.ended = *end;
            }
            Event::Data { stream, bytes, end } if *stream == of => {
                answer.bytes.extend_from_slice(bytes);
                answer.ended = *end;
            }
            _ => return true,
        }
        if behind || answer.blocks > 2 {
            fault = Err(format!("{event:?} came behind the end"));
        }
        false
    });
    fault.map(|()| answer)
}
