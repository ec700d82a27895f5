//! The codec of methods that are not hot: prost's, with small buffers.
//!
//! Those of tonic begin with 8 KiB in each direction, which an open stream keeps for as long as it is open.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::ProstCodec;

/// Bytes that a buffer begins with: most messages of streams are shorter.
const BUFFER: usize = 256;

/// Bytes of ready messages that are sent together: that of tonic.
const ENOUGH: usize = 32 << 10;

/// Buffers that begin small.
pub(crate) fn small_buffers() -> BufferSettings {
    BufferSettings::new(BUFFER, ENOUGH)
}

/// Encodes and decodes messages with buffers that begin small.
pub struct CompactCodec<T, U>(PhantomData<fn() -> (T, U)>);

impl<T, U> Default for CompactCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for CompactCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = <ProstCodec<T, U> as Codec>::Encoder;
    type Decoder = <ProstCodec<T, U> as Codec>::Decoder;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(small_buffers())
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(small_buffers())
    }
}
