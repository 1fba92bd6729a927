//! What lies between the request and TCP: nothing, or a TLS session.

use tls::{Error, Facts, Session, Ticket};

/// Plain bytes or a TLS session, driven alike.
pub(crate) enum Layer {
    Plain(Plain),
    Tls(Box<dyn Session>),
}

/// The layer that does nothing.
#[derive(Default)]
pub(crate) struct Plain {
    inbound: Vec<u8>,
    outbound: Vec<u8>,
}

impl Layer {
    pub(crate) fn plain() -> Self {
        Layer::Plain(Plain::default())
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Layer::Tls(_))
    }

    /// Feeds bytes that came from TCP. The caller takes what `receive` gives before feeding more.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Layer::Plain(plain) => {
                plain.inbound.extend_from_slice(bytes);
                Ok(())
            }
            Layer::Tls(session) => session.read_tls(bytes),
        }
    }

    /// Appends all that is to go to TCP now.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Layer::Plain(plain) => {
                out.append(&mut plain.outbound);
                Ok(())
            }
            Layer::Tls(session) => session.write_tls(out).map(|_| ()),
        }
    }

    pub(crate) fn may_send(&self) -> bool {
        match self {
            Layer::Plain(_) => true,
            Layer::Tls(session) => session.may_send(),
        }
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        match self {
            Layer::Plain(_) => false,
            Layer::Tls(session) => session.is_handshaking(),
        }
    }

    pub(crate) fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        match self {
            Layer::Plain(plain) => {
                plain.outbound.extend_from_slice(data);
                Ok(())
            }
            Layer::Tls(session) => session.send(data),
        }
    }

    pub(crate) fn receive(&mut self, out: &mut Vec<u8>) -> Result<usize, Error> {
        match self {
            Layer::Plain(plain) => {
                let count = plain.inbound.len();
                out.append(&mut plain.inbound);
                Ok(count)
            }
            Layer::Tls(session) => session.receive(out),
        }
    }

    pub(crate) fn facts(&self) -> Option<Facts> {
        match self {
            Layer::Plain(_) => None,
            Layer::Tls(session) => Some(session.facts()),
        }
    }

    pub(crate) fn take_ticket(&mut self) -> Option<Ticket> {
        match self {
            Layer::Plain(_) => None,
            Layer::Tls(session) => session.take_ticket(),
        }
    }

    pub(crate) fn peer_closed(&self) -> bool {
        match self {
            Layer::Plain(_) => false,
            Layer::Tls(session) => session.peer_closed(),
        }
    }

    pub(crate) fn close(&mut self) {
        if let Layer::Tls(session) = self {
            session.close();
        }
    }
}
