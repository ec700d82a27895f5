//! Reactions of a server. The names say which of them are accepted.

use super::requests::call;
use super::session::Session;

impl Session {
    /// Sends bytes that must not matter: stream `stream` is still answered.
    #[track_caller]
    pub(super) fn does_not_mind(&mut self, stream: u32, bytes: &[u8]) {
        self.send(bytes);
        self.send(&call(stream));
        self.ended(stream).allows();
    }

    /// The connection is closed, after a GOAWAY with one of these codes.
    #[track_caller]
    pub(super) fn has_ended(&mut self, what: &str, codes: &[u32]) {
        self.until(what, |it| it.closed);
        let goaway = self.goaways.last();
        assert!(goaway.is_some_and(|(_, code)| codes.contains(code)), "{what}: {goaway:?}");
    }
}
