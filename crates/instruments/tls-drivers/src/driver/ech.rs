//! Encrypted Client Hello by the drivers' interface.

use std::ffi::c_int;

use tls::ech::RawKey;

use super::{Conn, Context, Library, Transport};
use crate::abi::{self, Bytes, RawConn};
use crate::job::{Identity, Sessions};
use crate::suite::Suite;
use crate::{DriverError, function};

/// The most that a server can give for a retry: a list of two bytes' length (RFC 9849 §4), and these two.
const MOST_CONFIGS: usize = 2 + (1 << 16);
/// The most that a name can be (RFC 6066 §3).
const MOST_NAME: usize = 1 << 16;

/// What a context is to do about ECH.
#[derive(Debug, Clone, Copy)]
pub enum EchConfig<'a> {
    /// Nothing.
    Without,
    /// A client that sends a placeholder (GREASE).
    Placeholder,
    /// A client that seals its hellos by one of these configurations (an ECHConfigList).
    Sealed(&'a [u8]),
    /// A server with a key, whose configuration it has published.
    Key(&'a RawKey),
}

/// What a library says that became of ECH (`enum wt_ech_answer`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchAnswer {
    /// Nothing was sealed, or a server opened nothing.
    None,
    /// The sealed hello counts.
    Accepted,
    /// A client: the server could not open it, and is who the public name says.
    Rejected,
}

impl Library {
    /// Refuses a library whose driver does not say that ECH can be asked of this side of it.
    pub(crate) fn must_have_ech(&self, server: bool) -> Result<(), DriverError> {
        let (bit, side) = if server {
            (function::ECH_SERVER, "server")
        } else {
            (function::ECH_CLIENT, "client")
        };
        if self.described().functions & bit != 0 {
            return Ok(());
        }
        let what = format!("{}: its driver's {side} has no ECH", self.described().library);
        Err(DriverError::Unsupported { what })
    }
}

impl Context {
    /// A client's or a server's context of TLS 1.3, without tickets, with ECH.
    ///
    /// # Errors
    /// The driver does not say that it has it; what the library cannot do, or not with this.
    pub fn with_ech(
        library: &Library,
        server: bool,
        suite: Suite,
        identity: &Identity,
        ech: &EchConfig<'_>,
    ) -> Result<Self, DriverError> {
        library.must_have_ech(server)?;
        let bytes = |of: &[u8]| Bytes { bytes: of.as_ptr(), len: of.len() };
        let asked = |placeholder: bool, configs: &[u8], key: &[u8]| abi::Ech {
            size: size_of::<abi::Ech>() as u32,
            placeholder: placeholder.into(),
            configs: bytes(configs),
            key: bytes(key),
        };
        let ech = match *ech {
            EchConfig::Without => None,
            EchConfig::Placeholder => Some(asked(true, &[], &[])),
            EchConfig::Sealed(configs) => Some(asked(false, configs, &[])),
            EchConfig::Key(key) => Some(asked(false, key.config_list(), key.private_key())),
        };
        Self::new(library, server, suite, identity, (0, Sessions::Tickets), ech.as_ref())
    }
}

impl<T: Transport> Conn<T> {
    /// What became of ECH: after the handshake, or after its failure.
    ///
    /// # Errors
    /// The handshake is not over, or has failed for another reason than ECH; or the driver says what is no answer.
    pub fn ech(&mut self) -> Result<EchAnswer, DriverError> {
        match self.facts()?.ech {
            abi::ECH_NONE => Ok(EchAnswer::None),
            abi::ECH_ACCEPTED => Ok(EchAnswer::Accepted),
            abi::ECH_REJECTED => Ok(EchAnswer::Rejected),
            other => Err(DriverError::Failed {
                doing: "telling what became of ECH",
                what: format!("{other} is no answer"),
            }),
        }
    }

    /// A client, after [`EchAnswer::Rejected`]: the configurations that the server gave for the next connection, if any.
    ///
    /// # Errors
    /// What the library says.
    pub fn ech_retry(&mut self) -> Result<Option<Vec<u8>>, DriverError> {
        self.told(self.calls().ech_retry, MOST_CONFIGS, "telling the configurations for a retry")
    }

    /// A server that has read a hello: the name that the client asks for, the inner one where that was opened.
    ///
    /// # Errors
    /// What the library says.
    pub fn server_name(&self) -> Result<Option<String>, DriverError> {
        let name = self.told(self.calls().server_name, MOST_NAME, "telling the server's name")?;
        Ok(name.map(|name| super::clean(&String::from_utf8_lossy(&name))))
    }

    /// The bytes that a function of the driver tells, `most` at most; `None` for none.
    fn told<B>(
        &self,
        call: Option<unsafe extern "C" fn(*mut RawConn, *mut B, usize, *mut usize) -> c_int>,
        most: usize,
        doing: &'static str,
    ) -> Result<Option<Vec<u8>>, DriverError> {
        let call = call.ok_or(DriverError::Null { doing })?;
        let (mut bytes, mut done) = (vec![0; most], 0);
        // SAFETY: the connection is valid and this thread's, with room for as many bytes as said.
        let status = unsafe {
            call(self.raw.as_ptr(), bytes.as_mut_ptr().cast(), bytes.len(), &raw mut done)
        };
        self.calls().check(status, doing)?;
        taken(bytes, done, doing)
    }
}

/// The bytes that a driver says it has written; `None` for none.
fn taken(
    mut bytes: Vec<u8>,
    done: usize,
    doing: &'static str,
) -> Result<Option<Vec<u8>>, DriverError> {
    if done > bytes.len() {
        return Err(DriverError::Nonsense { doing, done, most: bytes.len() });
    }
    bytes.truncate(done);
    Ok((done > 0).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_wrote_more_than_there_was_room_for_is_not_believed() {
        let taken = |done| taken(vec![1, 2, 3], done, "x");
        assert_eq!(taken(2).unwrap(), Some(vec![1, 2]));
        assert_eq!(taken(0).unwrap(), None);
        assert!(matches!(taken(4), Err(DriverError::Nonsense { done: 4, most: 3, .. })));
    }
}
