//! Congestion control, the same of TCP and of QUIC.

use std::io;
use std::sync::Arc;

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use socket2::SockRef;

use crate::Failure;
use crate::flight::Watched;

units::named! {
    /// What decides how fast a sender may be.
    #[derive(Default)]
    pub enum Congestion: "congestion control" {
        /// RFC 9438: what Linux and QUIC's libraries have if nothing is said.
        #[default]
        Cubic = "cubic",
        /// RFC 5681 with RFC 6582's recovery, in QUIC RFC 9002 §7: what all others are held against.
        Reno = "reno",
        /// By measured rate and round trip, not by loss: BBR as the kernel has it, version 1 in QUIC.
        Bbr = "bbr",
    }
}

impl Congestion {
    /// Sets it on a TCP socket; those that a listener accepts have it too.
    pub(crate) fn apply(self, socket: &SockRef<'_>) -> Result<(), Failure> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::Plan(format!("this machine's kernel has no congestion control `{self}`"))
            }
            _ => Failure::from_io("setsockopt TCP_CONGESTION", "opening the socket", &error),
        };
        socket.set_tcp_congestion(self.name().as_bytes()).map_err(failed)
    }

    /// QUIC's, with `window` bytes at the start, or the library's own number; watched ([`crate::flight`]).
    pub(crate) fn controller(
        self,
        window: Option<u64>,
    ) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Watched(self.factory(window)))
    }

    fn factory(self, window: Option<u64>) -> Arc<dyn ControllerFactory + Send + Sync> {
        macro_rules! with_window {
            ($config:ty) => {{
                let mut config = <$config>::default();
                if let Some(bytes) = window {
                    config.initial_window(bytes);
                }
                Arc::new(config)
            }};
        }
        match self {
            Congestion::Cubic => with_window!(CubicConfig),
            Congestion::Reno => with_window!(NewRenoConfig),
            Congestion::Bbr => with_window!(BbrConfig),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    use super::*;

    #[test]
    fn accepted_connections_have_the_listeners() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        // The one that every kernel has and grants to everybody.
        Congestion::Reno.apply(&SockRef::from(&listener)).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let set = SockRef::from(&accepted).tcp_congestion().unwrap();
        assert_eq!(set.split(|byte| *byte == 0).next().unwrap(), b"reno");
    }

    #[test]
    fn quic_has_each_of_them_with_its_window_at_the_start() {
        for congestion in Congestion::ALL {
            let built = congestion.controller(Some(3600)).build(Instant::now(), 1200);
            assert_eq!(built.window(), 3600, "{congestion}");
            let usual = congestion.controller(None).build(Instant::now(), 1200);
            assert!(usual.window() >= 12_000, "{congestion}: {}", usual.window());
        }
    }
}
