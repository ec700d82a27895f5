//! Commands that are sent together.

/// Commands in the order in which they are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commands(Vec<LinkCommand>);

/// A command: its name and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkCommand(Vec<Vec<u8>>);

impl Commands {
    /// Adds a command, and returns it for its arguments.
    pub fn add(&mut self, name: &str) -> &mut LinkCommand {
        let place = self.0.len();
        self.0.push(LinkCommand(vec![name.into()]));
        &mut self.0[place]
    }

    /// Returns the number of commands.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the words of each command.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[Vec<u8>]> {
        self.0.iter().map(|command| &*command.0)
    }
}

impl LinkCommand {
    /// Adds an argument.
    pub fn arg(&mut self, argument: impl AsRef<[u8]>) -> &mut Self {
        self.0.push(argument.as_ref().to_vec());
        self
    }

    /// Adds a number.
    pub fn number(&mut self, number: impl Into<i128>) -> &mut Self {
        self.arg(number.into().to_string())
    }
}
