//! Interface of a connection, whatever its protocol: bytes in, bytes and outcomes out.

use weir_grpc::frames::FrameFault;

use super::outcome::{CallOutcome, LoadCall};

/// One connection, without a socket.
pub(super) trait ProtocolConnection: Send {
    /// True if a call can be made now.
    fn has_room(&self) -> bool;

    /// True if no call can ever be made again, and none is pending.
    fn is_over(&self) -> bool;

    /// Number of pending calls.
    fn unanswered(&self) -> usize;

    /// True if the server has shown that it speaks the protocol, or has had no reason to.
    fn is_greeted(&self) -> bool;

    /// Recognizes another protocol by the first bytes of the server.
    fn foreign(&self, bytes: &[u8]) -> Option<FrameFault>;

    /// Sends a call with this message. There must be room.
    fn call(&mut self, message: &[u8], call: LoadCall);

    /// Ends the sending side: no further call is made.
    fn finish(&mut self);

    /// Bytes to write to the socket; [`ProtocolConnection::written`] removes them.
    fn to_write(&self) -> &[u8];

    /// Removes `count` written bytes.
    fn written(&mut self, count: usize);

    /// Processes received bytes. An error ends the connection.
    fn receive(&mut self, bytes: &[u8], sink: &mut dyn FnMut(CallOutcome)) -> Result<(), FrameFault>;

    /// Fails the calls that were made before this time.
    fn expire(&mut self, before_ns: u64, sink: &mut dyn FnMut(CallOutcome));

    /// Fails all calls, because the socket is closed.
    fn lose(&mut self, sink: &mut dyn FnMut(CallOutcome));
}

/// True if the bytes begin an alert of TLS.
pub(super) fn is_tls_alert(bytes: &[u8]) -> bool {
    const ALERT: &[u8] = &[0x15, 3];
    bytes.starts_with(ALERT)
}
