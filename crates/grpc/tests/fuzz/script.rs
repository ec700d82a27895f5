//! The bytes that decide what happens. When they are used up, zeros follow.

pub(crate) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let mut number = usize::from(self.byte());
        if bound > 256 {
            number = number << 8 | usize::from(self.byte());
        }
        if bound > 65_536 {
            number = number << 8 | usize::from(self.byte());
        }
        number % bound
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}
