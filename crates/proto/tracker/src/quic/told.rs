//! When a QUIC connection's record can be given out before its end.

use super::QuicFlow;

/// Frames of a connection after which nothing more is expected of its handshake, where a direction
/// or the Finished was not captured.
const MANY_FRAMES: u64 = 256;

impl QuicFlow {
    /// Whether nothing more will be told of it: both sides have sent 1-RTT packets, the server's in
    /// answer to the client's. How a QUIC connection ends is encrypted.
    pub(crate) fn is_told(&self, frames: u64) -> bool {
        let (client, server) = (self.facts.client_one_rtt, self.facts.server_one_rtt);
        let answered = match (client, self.response) {
            (Some(_), Some(response)) => {
                let finished = self.tls.client_finished.is_some();
                finished && self.request.is_some_and(|request| response.at >= request)
            }
            _ => false,
        };
        answered || (frames >= MANY_FRAMES && (client.is_some() || server.is_some()))
    }
}
