//! Entry points for fuzzing: any bytes in; a panic, a hang or a broken promise is the finding.

use crate::proxy::{Address, Tunnel};
use crate::{Dialog, Error, MAX_INPUT, Protocol};

/// A server's bytes to a dialog. The first byte chooses the protocol, the second the length of the pieces
/// that the bytes come in.
///
/// # Panics
/// When pieces of another length lead elsewhere, or TLS begins behind plaintext.
pub fn dialog(bytes: &[u8]) {
    let [choice, cut, bytes @ ..] = bytes else { return };
    let Some(protocol) = Protocol::ALL.get(usize::from(*choice) % Protocol::ALL.len()) else {
        return;
    };
    let pieces = spoken(*protocol, bytes, usize::from(*cut).max(1));
    let single = spoken(*protocol, bytes, 1);
    // Only a server that answers before it was asked is told apart by the pieces.
    if let (Ok(one), Ok(other)) = (&pieces, &single) {
        assert_eq!(one, other, "{protocol}");
    }
    if pieces == Ok(true) {
        assert!(bytes.len() <= MAX_INPUT);
    }
}

/// Whether TLS may begin after these bytes and no more.
fn spoken(protocol: Protocol, bytes: &[u8], cut: usize) -> Result<bool, Error> {
    let mut dialog = Dialog::new(protocol, "server.test", [192, 0, 2, 1].into());
    let mut said = dialog.take_output().len();
    for piece in bytes.chunks(cut) {
        let was_done = dialog.is_done();
        let read = dialog.input(piece);
        assert!(!was_done || read.is_err(), "plaintext behind the go-ahead");
        read?;
        said += dialog.take_output().len();
    }
    // Commands are few and short, whatever the server says.
    assert!(said < 1024);
    let _ = (dialog.closed().to_string(), dialog.silent(std::time::Duration::ZERO));
    Ok(dialog.is_done())
}

/// A proxy's bytes to a tunnel. The first byte chooses the kind of proxy, the second the length of the
/// pieces.
///
/// # Panics
/// When pieces of another length lead elsewhere.
pub fn proxy(bytes: &[u8]) {
    let [choice, cut, bytes @ ..] = bytes else { return };
    let address = match choice % 4 {
        0 => "http://proxy.test:3128",
        1 => "http://user:password@proxy.test:3128",
        2 => "socks5://proxy.test",
        _ => "socks5://user:password@proxy.test",
    };
    let Ok(address) = address.parse::<Address>() else { return };
    let pieces = tunnelled(&address, bytes, usize::from(*cut).max(1));
    let whole = tunnelled(&address, bytes, bytes.len().max(1));
    assert_eq!(pieces.is_some(), whole.is_some());
    if let (Some(pieces), Some(whole)) = (pieces, whole) {
        assert_eq!(pieces, whole);
    }
    let _ = String::from_utf8_lossy(bytes).parse::<Address>();
}

/// Whether there is a connection, and the server's bytes behind the proxy's answer.
fn tunnelled(address: &Address, bytes: &[u8], cut: usize) -> Option<(bool, Vec<u8>)> {
    let mut tunnel = Tunnel::new(address, "server.test", 443).ok()?;
    for piece in bytes.chunks(cut) {
        tunnel.input(piece).ok()?;
        let _ = tunnel.take_output();
    }
    Some((tunnel.is_done(), tunnel.take_rest()))
}
