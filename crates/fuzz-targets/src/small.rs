//! Targets of a few lines.

use load::Response;
use units::{Bytes, Delay, Probability, Rate};

/// The first byte, which chooses something, and the rest.
fn chosen(bytes: &[u8]) -> Option<(u8, &[u8])> {
    bytes.split_first().map(|(first, rest)| (*first, rest))
}

/// A link of any configuration, driven by any script: no frame is made or lost but by the model.
pub fn link_script(bytes: &[u8]) {
    if let Err(broken) = linkmodel::script::run_input(bytes) {
        panic!("{broken}");
    }
}

/// Any text as a capacity trace, a profile and a delay table.
pub fn link_texts(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = linkmodel::Trace::parse(text);
    let _ = linkmodel::Profile::parse(text);
    let _ = linkmodel::DelayTable::parse(text);
}

/// Any bytes as a line of samples and as a manifest, any text as a distribution.
pub fn results(bytes: &[u8]) {
    let _ = record::parse_line(bytes);
    let _ = record::parse_manifest(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = stats::Distribution::parse(text);
    }
}

/// Any text as a quantity: what is read prints as what reads back the same.
pub fn quantities(bytes: &[u8]) {
    fn reads_back<T>(text: &str)
    where
        T: std::str::FromStr + ToString + PartialEq + std::fmt::Debug,
        T::Err: std::fmt::Debug,
    {
        if let Ok(value) = text.parse::<T>() {
            assert_eq!(value.to_string().parse::<T>().expect("it reads back"), value);
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    reads_back::<Delay>(text);
    reads_back::<Bytes>(text);
    reads_back::<Rate>(text);
    reads_back::<Probability>(text);
}

/// Any bytes where a live server's certificate, QUIC handshake messages or first bytes are expected.
pub fn conn_untrusted(bytes: &[u8]) {
    let Some((cut, bytes)) = chosen(bytes) else { return };
    conn::untrusted::certificate(bytes);
    // A chain of somebody else's, as `wiretax chain` reads it.
    let read =
        [tls::chain::Chain::from_der(&[bytes.to_vec()]), tls::chain::Chain::from_file(bytes)];
    for chain in read.into_iter().flatten() {
        let _ = (chain.oddities(0), chain.name(), chain.lengths(), chain.without_roots());
    }
    conn::untrusted::quic_handshake(bytes, cut.into());
    conn::untrusted::first_bytes(bytes, cut.into());
}

/// Any bytes as envelopes, cut anywhere, and as a flight to be lengthened.
pub fn sslmtcp_envelope(bytes: &[u8]) {
    sslmtcp::fuzz::envelope(bytes);
    sslmtcp::fuzz::pad(bytes);
}

/// Any bytes as callgrind's output.
pub fn callgrind_output(bytes: &[u8]) {
    if let Ok(profile) = callgrind::Profile::parse(bytes) {
        for (&(object, _), executed) in &profile.instructions {
            assert!((object as usize) < profile.objects.len());
            assert!((executed.function as usize) < profile.functions.len());
        }
        for (caller, callee) in profile.calls.keys() {
            for place in [caller, callee] {
                assert!((place.object as usize) < profile.objects.len());
                assert!((place.function as usize) < profile.functions.len());
            }
        }
        let _ = profile.total();
    }
}

/// Any bytes as an HTTP/1.1 response: however they are cut, the reader comes to the same end.
pub fn load_http_response(bytes: &[u8]) {
    let Some((cut, bytes)) = chosen(bytes) else { return };
    let whole = read(bytes, bytes.len().max(1));
    let pieces = read(bytes, usize::from(cut).max(1));
    assert_eq!(whole, pieces, "in pieces of {cut}");
}

/// How reading ends, in pieces of this size.
fn read(bytes: &[u8], size: usize) -> (bool, Result<(u16, bool, bool), load::Malformed>) {
    let mut response = Response::default();
    for piece in bytes.chunks(size) {
        if let Err(malformed) = response.receive(piece) {
            return (false, Err(malformed));
        }
    }
    let done = response.is_done();
    let ended = response.ends();
    (done, Ok((response.status(), response.keeps_alive(), ended)))
}
