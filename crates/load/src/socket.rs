//! A non-blocking socket, in plain text or with TLS.

use std::io::{self, ErrorKind, Read, Write};

use rustls::ClientConnection;
use socket2::Socket;

use crate::access::ClientTls;

pub(super) struct LoadSocket {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

impl LoadSocket {
    /// Begins TLS on the socket, if `tls` is given.
    pub(super) fn new(socket: Socket, tls: Option<&ClientTls>) -> io::Result<Self> {
        let tls = match tls {
            None => None,
            Some(ClientTls { config, name }) => {
                let connection = ClientConnection::new(config.clone(), name.clone());
                Some(Box::new(connection.map_err(io::Error::other)?))
            }
        };
        Ok(Self { socket, tls })
    }

    pub(super) fn inner(&self) -> &Socket {
        &self.socket
    }

    /// True if there are bytes of TLS to write.
    pub(super) fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Writes the bytes of TLS, as far as the socket takes them.
    pub(super) fn flush_tls(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            tls.write_tls(&mut self.socket)?;
        }
        Ok(())
    }
}

impl Write for LoadSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What is encrypted is bounded by what the socket takes.
        self.flush_tls()?;
        let Some(tls) = &mut self.tls else { return self.socket.write(bytes) };
        match tls.writer().write(bytes)? {
            0 => Err(ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_tls()
    }
}

impl Read for LoadSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.read(buffer) };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            if tls.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            tls.process_new_packets().map_err(io::Error::other)?;
        }
    }
}
