//! Inputs of a store from outside: the time, connections to the nodes of Redis, and random numbers.
//!
//! A simulation of several nodes gives its own; everything else has the machine's.

mod random_source;

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use weir_time::clock::Clock;

pub use self::random_source::RandomSource;

/// Parts of a store from outside.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// The clock. With a manual one the scripts get the time instead of reading the server's.
    pub clock: Clock,
    /// Opener of connections.
    pub dialer: Dialer,
    /// For pauses that differ from node to node, and for names of probes.
    pub random: RandomSource,
}

/// Opens connections to the nodes of Redis.
#[derive(Clone, Default)]
pub enum Dialer {
    /// TCP, with TLS if it is configured, and Unix sockets.
    #[default]
    Sockets,
    /// The dialer of a simulation.
    Given(Arc<dyn Dial>),
}

/// Opens byte streams.
pub trait Dial: Send + Sync + 'static {
    /// Opens one to the server at this address.
    fn dial(&self, host: &str, port: u16) -> Dialling;
}

/// A byte stream that is being opened.
pub type Dialling = Pin<Box<dyn Future<Output = io::Result<Box<dyn DialledStream>>> + Send>>;

/// A byte stream to a server.
pub trait DialledStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> DialledStream for T {}
