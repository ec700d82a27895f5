//! Messages of hot methods: their servers read and write the bytes themselves.

use std::marker::PhantomData;

use bytes::{Buf as _, BufMut as _, Bytes};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::compact::small_buffers;

/// The bytes of one message of type `T`, without its prefix. Nothing has checked that they can be parsed.
pub struct Encoded<T>(Bytes, PhantomData<fn() -> T>);

impl<T> Encoded<T> {
    /// The message with these bytes.
    #[must_use]
    pub const fn new(bytes: Bytes) -> Self {
        Self(bytes, PhantomData)
    }

    /// Borrows its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its bytes.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

/// Passes messages as they are.
pub struct EncodedCodec<T, U>(PhantomData<fn() -> (T, U)>);

impl<T, U> Default for EncodedCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: 'static, U: 'static> Codec for EncodedCodec<Encoded<T>, Encoded<U>> {
    type Encode = Encoded<T>;
    type Decode = Encoded<U>;
    type Encoder = EncodedCodec<T, U>;
    type Decoder = EncodedCodec<T, U>;

    fn encoder(&mut self) -> Self::Encoder {
        EncodedCodec::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        EncodedCodec::default()
    }
}

impl<T, U> Encoder for EncodedCodec<T, U> {
    type Item = Encoded<T>;
    type Error = Status;

    fn encode(&mut self, message: Encoded<T>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message.0);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        small_buffers()
    }
}

impl<T, U> Decoder for EncodedCodec<T, U> {
    type Item = Encoded<U>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Encoded<U>>, Status> {
        Ok(Some(Encoded::new(buffer.copy_to_bytes(buffer.remaining()))))
    }

    fn buffer_settings(&self) -> BufferSettings {
        small_buffers()
    }
}
