//! The clients: populations that share a way to the server.

use std::time::Duration;

use units::Delay;

units::named! {
    /// Clients that share a way to the server: GREE 2018's two.
    #[derive(Default)]
    pub enum Population: "population" {
        /// At about 25 ms.
        #[default]
        Wifi = "wifi",
        /// At about 55 ms.
        Cellular = "cellular",
    }
}

impl Population {
    /// The round-trip time of its link, without jitter.
    #[must_use]
    pub const fn round_trip(self) -> Duration {
        match self {
            Population::Wifi => Duration::from_millis(25),
            Population::Cellular => Duration::from_millis(55),
        }
    }

    /// Jitter of each way: the deviation of a half-normal distribution, added to its delay.
    pub(super) fn jitter(self) -> Delay {
        match self {
            Population::Wifi => Duration::from_micros(700).into(),
            Population::Cellular => Duration::from_micros(1500).into(),
        }
    }

    /// The library that its clients run over TCP.
    pub(super) const fn library(self) -> tls::Library {
        match self {
            Population::Wifi => tls::Library::OpenSsl,
            Population::Cellular => tls::Library::Rustls,
        }
    }
}
