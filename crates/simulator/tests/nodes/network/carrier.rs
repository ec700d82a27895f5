//! The tasks that carry the bytes of a connection, one for each direction.

use std::sync::{Arc, Weak};

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::pipe::{Pipe, SentBytes};
use super::{SimulatedNetwork, Way};
use weir_simulator::redis::SimulatedConnection;

/// Carries the bytes of a connection between a node and a server.
pub(super) struct Carrier {
    pub(super) network: SimulatedNetwork,
    pub(super) node: usize,
    pub(super) server: usize,
}

impl Carrier {
    /// Begins. What the node sends comes through `sent`; what the server replies goes into `pipe`.
    pub(super) fn begin(
        self,
        pipe: &Arc<Pipe>,
        sent: UnboundedReceiver<SentBytes>,
        connection: SimulatedConnection,
    ) {
        let (replies, replied) = mpsc::unbounded_channel();
        let (carrier, to, from) = (Arc::new(self), Arc::clone(pipe), Arc::downgrade(pipe));
        tokio::spawn(Arc::clone(&carrier).carry_calls(to, sent, connection, replies));
        tokio::spawn(carrier.carry_replies(from, replied));
    }

    async fn carry_calls(
        self: Arc<Self>,
        pipe: Arc<Pipe>,
        mut sent: UnboundedReceiver<SentBytes>,
        mut connection: SimulatedConnection,
        replies: UnboundedSender<SentBytes>,
    ) {
        let mut last = 0;
        while let Some(SentBytes { at, bytes }) = sent.recv().await {
            last = self.arrival(last, at);
            self.wait(last, Way::ToServer).await;
            if pipe.loses_calls() {
                return;
            }
            let mut reply = Vec::new();
            connection.receive(&bytes, &mut reply);
            if self.network.repeats() {
                self.network.0.servers[self.server].connect().receive(&bytes, &mut Vec::new());
            }
            if !reply.is_empty() {
                let _ = replies.send(SentBytes { at: self.network.0.timeline.now(), bytes: reply });
            }
        }
    }

    async fn carry_replies(self: Arc<Self>, pipe: Weak<Pipe>, mut replied: UnboundedReceiver<SentBytes>) {
        let mut last = 0;
        while let Some(SentBytes { at, bytes }) = replied.recv().await {
            last = self.arrival(last, at);
            self.wait(last, Way::ToNode).await;
            let Some(pipe) = pipe.upgrade() else { return };
            pipe.arrive(&bytes);
        }
    }

    /// Returns the time at which bytes arrive: none overtakes earlier bytes.
    fn arrival(&self, last: u64, sent: u64) -> u64 {
        last.max(sent + self.network.delay())
    }

    async fn wait(&self, until: u64, way: Way) {
        self.network.0.timeline.until(until).await;
        self.network.open_way(self.node, self.server, way).await;
    }
}
