//! The reasons for doubt: meaning, and the facts that each touches. A doubt takes those facts from the figures
//! and leaves the others.

use std::ops::BitOr;

/// Facts of a handshake that a doubt can touch, as a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Facts(u8);

impl Facts {
    const NONE: Facts = Facts(0);
    /// The class.
    pub(crate) const CLASS: Facts = Facts(1);
    /// The client's Finished: how long the handshake took.
    pub(crate) const FINISHED: Facts = Facts(2);
    /// The client's first application data.
    pub(crate) const CLIENT_DATA: Facts = Facts(4);
    /// The server's first application data.
    pub(crate) const SERVER_DATA: Facts = Facts(8);
    /// All of these. No doubt touches TCP's round trip: it is known or not.
    const ALL: Facts = Facts(15);
    /// Those that the figures are made of.
    const TIMES: Facts = Facts(Facts::FINISHED.0 | Facts::CLIENT_DATA.0);

    const fn and(self, other: Facts) -> Facts {
        Facts(self.0 | other.0)
    }

    /// Whether any of `facts` is among them.
    pub(crate) const fn touch(self, facts: Facts) -> bool {
        self.0 & facts.0 != 0
    }

    /// Whether a time of the figures is among them.
    pub(crate) const fn touch_times(self) -> bool {
        self.touch(Facts::TIMES)
    }

    /// The facts that doubts touch, by their names in the records.
    pub(crate) fn touched_by<'a>(names: impl Iterator<Item = &'a str>) -> Facts {
        names.map(touched).fold(Facts::NONE, BitOr::bitor)
    }

    /// The names of those in the set.
    fn names(self) -> String {
        let all = [
            (Facts::CLASS, "class"),
            (Facts::FINISHED, "handshake"),
            (Facts::CLIENT_DATA, "client's data"),
            (Facts::SERVER_DATA, "server's data"),
        ];
        let names = all.into_iter().filter(|(one, _)| self.touch(*one)).map(|(_, name)| name);
        let names: Vec<&str> = names.collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}

impl BitOr for Facts {
    type Output = Facts;
    fn bitor(self, other: Facts) -> Facts {
        self.and(other)
    }
}

/// A reason for doubt.
struct Doubt {
    /// Its name in the records.
    name: &'static str,
    touches: Facts,
    meaning: &'static str,
}

/// All reasons, and the facts that they touch.
const DOUBTS: &[Doubt] = &[
    Doubt {
        name: "mid_stream",
        touches: Facts::ALL,
        meaning: "the capture began in the middle of the connection, so that its beginning is not known",
    },
    Doubt {
        name: "capture_ended",
        touches: Facts::ALL,
        meaning: "the capture ended in the middle of the handshake: whether it went well is not known",
    },
    Doubt {
        name: "fell_silent",
        touches: Facts::ALL,
        meaning: "the connection simply stops in the capture, in the middle of the handshake: whether it \
                  went well is not known",
    },
    Doubt {
        name: "server_hello",
        touches: Facts::ALL,
        meaning: "no ServerHello could be read: it is malformed, or over QUIC was not captured or could \
                  not be opened",
    },
    Doubt {
        name: "one_direction",
        touches: Facts::ALL,
        meaning: "only one direction was captured: what the other side chose, and when, is not known",
    },
    Doubt {
        name: "bytes_missing",
        touches: Facts::ALL,
        meaning: "the handshake is longer than what is put in order, or the capture lost bytes of it",
    },
    Doubt {
        name: "client_finished",
        touches: Facts::ALL,
        meaning: "no record of the client has the size of its Finished (a client certificate, or padding): \
                  the first of its flight was taken, so that the handshake may seem too short",
    },
    Doubt {
        name: "server_finished",
        touches: Facts::SERVER_DATA,
        meaning: "the server's Finished could be another of its encrypted records",
    },
    Doubt {
        name: "end_of_early_data",
        touches: Facts::CLASS.and(Facts::CLIENT_DATA).and(Facts::SERVER_DATA),
        meaning: "a record of EndOfEarlyData's size, or padding, is all that says that early data were \
                  accepted",
    },
    Doubt {
        name: "ticket_or_data",
        touches: Facts::SERVER_DATA,
        meaning: "a record of the server could be a ticket or application data: the time of its first data \
                  may be too soon, or too late",
    },
    Doubt {
        name: "server_speaks_first",
        touches: Facts::SERVER_DATA,
        meaning: "the server seems to send application data before the client does",
    },
    Doubt {
        name: "server_alert",
        touches: Facts::CLASS,
        meaning: "the server's only record after the client's Finished has an alert's size: it may have \
                  refused the client, or closed",
    },
    Doubt {
        name: "unknown_suite",
        touches: Facts::ALL,
        meaning: "the suite is not known, so that the sizes of its records are not either",
    },
    Doubt {
        name: "quic_data",
        touches: Facts::SERVER_DATA,
        meaning: "QUIC's 1-RTT packets hide whether they hold application data; the first one was taken",
    },
    Doubt {
        name: "quic_early_data",
        touches: Facts::CLASS,
        meaning: "QUIC hides whether early data were accepted: the best answer is `likely`",
    },
];

fn find(name: &str) -> Option<&'static Doubt> {
    DOUBTS.iter().find(|doubt| doubt.name == name)
}

/// What a doubt touches; of one that is not known, all.
fn touched(name: &str) -> Facts {
    find(name).map_or(Facts::ALL, |doubt| doubt.touches)
}

/// What a reason means, by its name in the records.
pub(crate) fn meaning(name: &str) -> &'static str {
    find(name).map_or("see `proto/tracker`, where the reason is defined", |doubt| doubt.meaning)
}

/// The facts that a reason touches, by their names.
pub(crate) fn touched_names(name: &str) -> String {
    touched(name).names()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_touches_what_it_says_and_an_unknown_one_all() {
        let of = |names: &[&'static str]| Facts::touched_by(names.iter().copied());
        assert!(!of(&[]).touch_times() && !of(&["ticket_or_data"]).touch_times());
        assert!(of(&["ticket_or_data"]).touch(Facts::SERVER_DATA));
        let early = of(&["ticket_or_data", "end_of_early_data"]);
        assert!(early.touch(Facts::CLIENT_DATA) && !early.touch(Facts::FINISHED));
        assert!(of(&["of a later version"]).touch(Facts::FINISHED));
        assert_eq!(touched_names("server_alert"), "class");
        assert_eq!(touched_names("mid_stream"), "class, handshake, client's data, server's data");
    }

    #[test]
    fn every_reason_of_the_tracker_is_in_the_table_once() {
        for (at, doubt) in DOUBTS.iter().enumerate() {
            assert!(DOUBTS.iter().skip(at + 1).all(|other| other.name != doubt.name));
        }
        for reason in tracker::Uncertain::ALL {
            assert!(find(reason.name()).is_some(), "{}", reason.name());
        }
        assert_eq!(DOUBTS.len(), tracker::Uncertain::ALL.len());
    }

    /// The page for readers has the same table.
    #[test]
    fn the_readme_has_the_table() {
        let readme = include_str!("../README.md");
        for doubt in DOUBTS {
            let row = format!("| `{}` | {} |", doubt.name, doubt.touches.names());
            assert!(readme.contains(&row), "{row}");
        }
    }
}
