//! Header blocks of the server, read by a decoder that insists on what RFC 9113, section 4.3.1, demands of an
//! encoder whose peer has changed its table.

use fluke_hpack::Decoder;

pub(super) type Fields = Vec<(String, String)>;

pub(super) struct Blocks {
    decoder: Decoder<'static>,
    /// As it was said last.
    size: usize,
    /// What the next block must begin by coming down to.
    demanded: Option<usize>,
}

impl Blocks {
    pub(super) fn new() -> Self {
        let mut decoder = Decoder::new();
        decoder.set_max_allowed_table_size(4096);
        Self { decoder, size: 4096, demanded: None }
    }

    /// The server has acknowledged this size.
    pub(super) fn allow(&mut self, size: usize) {
        if size < self.demanded.unwrap_or(self.size) {
            self.demanded = Some(size);
        }
        self.decoder.set_max_allowed_table_size(size);
    }

    pub(super) fn read(&mut self, block: &[u8]) -> Fields {
        let updates = size_updates(block);
        if let Some(demanded) = self.demanded.take() {
            let smallest = updates.iter().min().expect("a smaller table is said at the next block's start");
            assert!(*smallest <= demanded, "{updates:?} while {demanded} is demanded");
        }
        self.size = updates.last().copied().unwrap_or(self.size);
        let fields = self.decoder.decode(block).unwrap_or_else(|error| panic!("{error:?} in {block:02x?}"));
        let text = |bytes| String::from_utf8(bytes).expect("fields of ours are text");
        fields.into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }
}

/// Those that the block begins with.
fn size_updates(mut block: &[u8]) -> Vec<usize> {
    let mut sizes = Vec::new();
    while let Some((first, mut rest)) = block.split_first().filter(|(first, _)| **first & 0xe0 == 0x20) {
        let mut size = usize::from(first & 0x1f);
        let mut shift = 0;
        while size >= 0x1f {
            let (byte, behind) = rest.split_first().expect("a whole number");
            size += usize::from(byte & 0x7f) << shift;
            (rest, shift) = (behind, shift + 7);
            if byte & 0x80 == 0 {
                break;
            }
        }
        sizes.push(size);
        block = rest;
    }
    sizes
}
