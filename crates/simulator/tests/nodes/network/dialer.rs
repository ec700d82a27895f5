//! The connections that a node opens.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::sync::mpsc;
use weir_store::redis::{Dial, DialledStream, Dialling};

use super::carrier::Carrier;
use super::pipe::{Pipe, SimulatedStream};
use super::{FIRST_PORT, OpenPath, SimulatedNetwork, Way};

/// The dialer of one process of a node.
#[derive(Clone)]
pub(crate) struct NodeDialer {
    network: SimulatedNetwork,
    node: usize,
    has_crashed: Arc<AtomicBool>,
}

impl NodeDialer {
    pub(crate) fn new(network: &SimulatedNetwork, node: usize) -> Self {
        Self { network: network.clone(), node, has_crashed: Arc::default() }
    }

    /// The process is gone. What is left of it opens no connection.
    pub(crate) fn crash(&self) {
        self.has_crashed.store(true, Relaxed);
    }

    async fn open(self, port: u16) -> io::Result<Box<dyn DialledStream>> {
        let Self { network, node, has_crashed } = self;
        let server = usize::from(port.wrapping_sub(FIRST_PORT));
        let state = &network.0;
        state.timeline.until(state.timeline.now() + network.delay()).await;
        network.open_way(node, server, Way::ToServer).await;
        let redis = state.servers.get(server).ok_or(io::ErrorKind::HostUnreachable)?;
        if has_crashed.load(Relaxed) || state.paths.lock().down.contains(&server) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (pipe, (sent, received)) = (Arc::new(Pipe::default()), mpsc::unbounded_channel());
        let mut paths = state.paths.lock();
        paths.forget_closed();
        paths.open.push(OpenPath { node, server, pipe: Arc::downgrade(&pipe) });
        drop(paths);
        let carrier = Carrier { network: network.clone(), node, server };
        carrier.begin(&pipe, received, redis.connect());
        Ok(Box::new(SimulatedStream { timeline: state.timeline, pipe, sent }))
    }
}

impl Dial for NodeDialer {
    fn dial(&self, _: &str, port: u16) -> Dialling {
        Box::pin(self.clone().open(port))
    }
}
