//! The dialogs before TLS as state machines: bytes in, bytes out, no sockets.
//!
//! A [`Dialog`] asks a server to change to TLS, by the rules of its [`Protocol`]. A
//! [`proxy::Tunnel`] asks a proxy for a connection to the server. Both hold at most 64 KiB of input.
//!
//! A server that sends plaintext behind its go-ahead is an [`Error::Injected`]: a client that kept such
//! bytes would take them for protected ones (CVE-2011-0411).
//!
//! ```
//! use starttls::{Dialog, Protocol};
//!
//! # fn main() -> Result<(), starttls::Error> {
//! let mut dialog = Dialog::new(Protocol::Pop3, "mail.example", [192, 0, 2, 1].into());
//! dialog.input(b"+OK ready\r\n")?;
//! assert_eq!(dialog.take_output(), b"CAPA\r\n");
//! dialog.input(b"+OK\r\nSTLS\r\n.\r\n")?;
//! assert_eq!(dialog.take_output(), b"STLS\r\n");
//! dialog.input(b"+OK begin\r\n")?;
//! assert!(dialog.is_done());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod dialog;
mod error;
pub mod fuzz;
mod input;
mod protocol;
pub mod proxy;
mod reply;
mod scripts;

pub use dialog::Dialog;
pub use error::Error;
pub use input::MAX_INPUT;
pub use protocol::Protocol;
