//! The question of Envoy's rate limit service: it is sent whether or not the program has the feature.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct EnvoyQuestion {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) descriptors: Vec<AskedDescriptor>,
    #[prost(uint32, tag = "3")]
    pub(super) hits_addend: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AskedDescriptor {
    #[prost(message, repeated, tag = "1")]
    pub(super) entries: Vec<AskedEntry>,
    #[prost(message, optional, tag = "3")]
    pub(super) hits_addend: Option<u64>,
    #[prost(bool, tag = "4")]
    pub(super) is_negative_hits: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AskedEntry {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}
