//! All connections' records in bounded memory.

mod cell;
mod client_rtts;
mod crossings;
mod fallbacks;
mod kept;
mod messages;
mod names;
mod options;
mod over_time;
mod spread;
mod tallies;
#[cfg(test)]
mod tests;
mod top;
mod twice;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tracker::{Class, Connection, EarlyData, Resumption, TlsFacts};
use units::Time;
use wire::tls::Version;

pub use crossings::CrossNames;
pub use fallbacks::{Fate, Less};
pub use names::Kind;
pub use options::{Options, OptionsError};
pub use tallies::{Frames, Offers};

pub(crate) use cell::{Cell, Measured};
pub(crate) use fallbacks::Fallback;
pub(crate) use messages::Messages;
pub(crate) use names::bounded;
pub(crate) use spread::Spread;
pub(crate) use tallies::{Saveable, Tally};
pub(crate) use top::{Add, Entry, Top};
pub use twice::Twice;

use crossings::Crossings;
use fallbacks::Fallbacks;
use names::{network, offers_tls13, resumption_in_vain, set};
use over_time::OverTime;
use spread::Mould;

use crate::reasons::Facts;

/// What is taken of a handshake whose class is known.
pub(crate) struct Taken<'a> {
    pub kind: Kind,
    pub class: Class,
    pub client: SocketAddr,
    /// The ClientHello's time, or about that.
    pub began: Time,
    pub server_name: &'a str,
    pub reasons: &'a [String],
    pub measured: Measured,
}

/// Transports and versions with curves of their own; what else a stranger makes up is one.
const KINDS: usize = 24;
/// Where these go.
const OTHER_VERSIONS: Kind = Kind { quic: false, version: Some(Version(0)) };

/// What all records say, in memory that does not grow with them. [`Digest::take`] each record once;
/// digests of several threads or files are put together by [`Digest::merge`]; [`crate::findings()`] says
/// what came out.
#[derive(Debug, Clone)]
pub struct Digest {
    options: Options,
    mould: Mould,
    pub(crate) frames: Frames,
    /// QUIC versions that were not read; the tracker bounds how many.
    pub(crate) unread_quic: BTreeMap<String, u64>,
    pub(crate) connections: u64,
    pub(crate) without_tls: u64,
    /// TLS of which too little was captured to tell how it went.
    pub(crate) untold: u64,
    pub(crate) cells: BTreeMap<(Kind, Class), Cell>,
    pub(crate) offers: Offers,
    pub(crate) uncertain: BTreeMap<String, u64>,
    /// Records with any reason, and those whose times are left out for it.
    pub(crate) uncertain_records: u64,
    pub(crate) doubtful_records: u64,
    pub(crate) offered_versions: Top<u16>,
    pub(crate) offered_sets: Top<String>,
    pub(crate) suites: Top<String>,
    pub(crate) groups: Top<String>,
    pub(crate) key_shares: Top<String>,
    pub(crate) alpn: Top<String>,
    pub(crate) alerts: Top<(bool, String)>,
    pub(crate) failures: Top<String>,
    pub(crate) server_names: Top<String, Tally>,
    pub(crate) networks: Top<String, Tally>,
    pub(crate) over_time: OverTime<Tally>,
    pub(crate) changes: Changes,
    pub(crate) fallbacks: Fallbacks,
    pub(crate) crossings: Crossings,
    pub(crate) twice: Twice,
}

/// What could be changed, and whom it would help.
#[derive(Debug, Clone)]
pub(crate) struct Changes {
    /// Full handshakes below TLS 1.3 of clients that offered TLS 1.3.
    pub tls13_offered: Saveable,
    /// The same of clients that did not.
    pub tls13_not_offered: Saveable,
    /// A TLS 1.2 ticket or session id that was not accepted.
    pub in_vain_tls12: Saveable,
    /// A pre-shared key that was not accepted.
    pub in_vain_tls13: Saveable,
    /// Full handshakes from a network seen before, without a ticket.
    pub came_back: Saveable,
    /// Early data refused.
    pub early_rejected: Saveable,
    /// Resumed in TLS 1.3 without early data.
    pub resumed_without_early: Saveable,
    /// Asked for another hello: the first key shares, and the group asked for.
    pub retries: BTreeMap<(String, String), Saveable>,
    /// Pairs of these that are not kept apart.
    pub other_retries: Saveable,
}

/// Pairs of shares and group that are kept apart.
const RETRIES: usize = 32;

impl Changes {
    fn new(mould: &Mould) -> Changes {
        let new = || Saveable::new(mould);
        Changes {
            tls13_offered: new(),
            tls13_not_offered: new(),
            in_vain_tls12: new(),
            in_vain_tls13: new(),
            came_back: new(),
            early_rejected: new(),
            resumed_without_early: new(),
            retries: BTreeMap::new(),
            other_retries: new(),
        }
    }

    fn retry(&mut self, pair: (String, String), mould: &Mould) -> &mut Saveable {
        if !self.retries.contains_key(&pair) && self.retries.len() >= RETRIES {
            return &mut self.other_retries;
        }
        self.retries.entry(pair).or_insert_with(|| Saveable::new(mould))
    }

    fn merge(&mut self, other: Changes, mould: &Mould) {
        self.tls13_offered.merge(&other.tls13_offered);
        self.tls13_not_offered.merge(&other.tls13_not_offered);
        self.in_vain_tls12.merge(&other.in_vain_tls12);
        self.in_vain_tls13.merge(&other.in_vain_tls13);
        self.came_back.merge(&other.came_back);
        self.early_rejected.merge(&other.early_rejected);
        self.resumed_without_early.merge(&other.resumed_without_early);
        self.other_retries.merge(&other.other_retries);
        for (pair, saveable) in other.retries {
            self.retry(pair, mould).merge(&saveable);
        }
    }
}

impl Digest {
    /// A digest of nothing.
    ///
    /// # Errors
    /// The options make no sense.
    pub fn new(options: Options) -> Result<Digest, OptionsError> {
        options.validate()?;
        let mould = Mould::new(&options).ok_or(OptionsError {
            field: "bins",
            value: options.bins.to_string(),
            works: "write 1 to 10000",
        })?;
        let names = options.names;
        Ok(Digest {
            frames: Frames::default(),
            unread_quic: BTreeMap::new(),
            connections: 0,
            without_tls: 0,
            untold: 0,
            cells: BTreeMap::new(),
            offers: Offers::default(),
            uncertain: BTreeMap::new(),
            uncertain_records: 0,
            doubtful_records: 0,
            offered_versions: Top::new(names),
            offered_sets: Top::new(names),
            suites: Top::new(names),
            groups: Top::new(names),
            key_shares: Top::new(names),
            alpn: Top::new(names),
            alerts: Top::new(names),
            failures: Top::new(names),
            server_names: Top::new(names),
            networks: Top::new(names),
            over_time: OverTime::new(options.bucket, options.buckets),
            changes: Changes::new(&mould),
            fallbacks: Fallbacks::new(options.seed),
            crossings: Crossings::new(options.seed),
            twice: Twice::default(),
            mould,
            options,
        })
    }

    /// What bounds it.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Copies in the capture, and differences of its clocks.
    #[must_use]
    pub fn twice(&self) -> Twice {
        self.twice
    }

    /// Connections taken so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Adds what a tracker counted: once, when it has seen all.
    pub fn count_frames(&mut self, counters: &tracker::Counters) {
        self.add_frames(&Frames::from(counters));
    }

    /// Adds frames that were counted before.
    pub(crate) fn add_frames(&mut self, frames: &Frames) {
        self.frames.add(frames);
    }

    /// Adds QUIC connections of versions that were not read, by the versions' names.
    pub fn name_unread_quic(&mut self, versions: &[(String, u64)]) {
        for (version, count) in versions {
            *self.unread_quic.entry(version.clone()).or_default() += count;
        }
    }

    /// Adds frames that the capture lost before anyone looked at them.
    pub fn count_lost(&mut self, frames: u64) {
        self.frames.lost += frames;
    }

    /// Counts a connection that carries the handshake of another, seen at other addresses.
    pub fn count_translated(&mut self) {
        self.twice.translated += 1;
    }

    /// Takes one connection's record.
    pub fn take(&mut self, connection: &Connection) {
        self.connections += 1;
        self.twice.take(connection);
        let Some(tls) = &connection.tls else {
            self.without_tls += 1;
            return;
        };
        let reasons: Vec<String> =
            connection.uncertain.iter().map(|reason| reason.name().to_owned()).collect();
        let (Some(class), Some(hello)) = (connection.class(), tls.client_hello) else {
            self.count_uncertain(&reasons);
            self.untold += 1;
            return;
        };
        let kind = Kind::of(connection, tls);
        self.count_messages(&Messages::of(connection, tls, class));
        self.fallbacks.take(connection, tls, &self.mould);
        self.crossings.take(connection, tls);
        let network = self.network(connection.client);
        let known = self.networks.seen(&network) > 0;
        self.count_change(connection, tls, kind, class, known);
        self.take_handshake(&Taken {
            kind,
            class,
            client: connection.client,
            began: hello,
            server_name: tls.server_name.as_deref().unwrap_or_default(),
            reasons: &reasons,
            measured: Measured::of(connection),
        });
    }

    /// Takes what a sample keeps of a record.
    pub(crate) fn take_parts(&mut self, taken: &Taken<'_>, messages: Option<&Messages>) {
        self.connections += 1;
        if let Some(messages) = messages {
            self.count_messages(messages);
        }
        self.take_handshake(taken);
    }

    fn take_handshake(&mut self, taken: &Taken<'_>) {
        let touched = self.count_uncertain(taken.reasons);
        let (kind, class) = (self.kind(taken.kind, taken.class), taken.class);
        let draw = kept::draw(self.options.seed, taken.began, taken.client);
        let (mould, kept, times) =
            (&self.mould, self.options.kept, taken.measured.without(touched));
        let cell = self.cells.entry((kind, class)).or_insert_with(|| Cell::new(mould, kept));
        cell.take(&times, touched.touch_times(), draw);
        let network = self.network(taken.client);
        let name = bounded(taken.server_name);
        self.server_names.count(name).value.take(&times, kind, class);
        self.networks.count(network).value.take(&times, kind, class);
        self.over_time.at(taken.began).take(&times, kind, class);
    }

    fn network(&self, client: SocketAddr) -> String {
        network(client.ip(), self.options.prefix4, self.options.prefix6)
    }

    /// Adds what another digest has taken.
    ///
    /// # Errors
    /// It was made by other options.
    pub fn merge(&mut self, other: Digest) -> Result<(), OptionsError> {
        if other.options != self.options {
            return Err(OptionsError {
                field: "options",
                value: "not the same".to_owned(),
                works: "make both digests by the same options",
            });
        }
        self.frames.add(&other.frames);
        for (version, count) in other.unread_quic {
            *self.unread_quic.entry(version).or_default() += count;
        }
        self.connections += other.connections;
        self.without_tls += other.without_tls;
        self.untold += other.untold;
        for ((kind, class), theirs) in other.cells {
            let kind = self.kind(kind, class);
            let (mould, kept) = (&self.mould, self.options.kept);
            self.cells.entry((kind, class)).or_insert_with(|| Cell::new(mould, kept)).merge(theirs);
        }
        self.offers.add(&other.offers);
        for (reason, count) in other.uncertain {
            *self.uncertain.entry(reason).or_default() += count;
        }
        self.uncertain_records += other.uncertain_records;
        self.doubtful_records += other.doubtful_records;
        self.offered_versions.merge(other.offered_versions);
        self.offered_sets.merge(other.offered_sets);
        self.suites.merge(other.suites);
        self.groups.merge(other.groups);
        self.key_shares.merge(other.key_shares);
        self.alpn.merge(other.alpn);
        self.alerts.merge(other.alerts);
        self.failures.merge(other.failures);
        self.server_names.merge(other.server_names);
        self.networks.merge(other.networks);
        self.over_time.merge(other.over_time);
        self.changes.merge(other.changes, &self.mould);
        self.fallbacks.merge(other.fallbacks);
        self.crossings.merge(&other.crossings);
        self.twice.merge(&other.twice);
        Ok(())
    }

    /// The kind, or, if there are too many already, the one for the others.
    fn kind(&self, kind: Kind, class: Class) -> Kind {
        let known = self.cells.contains_key(&(kind, class))
            || Class::ALL.iter().any(|class| self.cells.contains_key(&(kind, *class)));
        let room = self.cells.len() < KINDS * Class::ALL.len();
        if known || room { kind } else { OTHER_VERSIONS }
    }

    /// Counts the reasons for doubt. Gives the facts that they touch.
    fn count_uncertain(&mut self, reasons: &[String]) -> Facts {
        if reasons.is_empty() {
            return Facts::default();
        }
        self.uncertain_records += 1;
        for reason in reasons {
            *self.uncertain.entry(reason.clone()).or_default() += 1;
        }
        let touched = Facts::touched_by(reasons.iter().map(String::as_str));
        self.doubtful_records += u64::from(touched.touch_times());
        touched
    }

    fn count_change(
        &mut self,
        connection: &Connection,
        tls: &TlsFacts,
        kind: Kind,
        class: Class,
        known_network: bool,
    ) {
        let round_trip = connection.round_trip();
        let changes = &mut self.changes;
        let in_vain = resumption_in_vain(tls, class);
        if class == Class::Full && kind.is_before_tls13() {
            match offers_tls13(tls) {
                true => changes.tls13_offered.take(round_trip),
                false => changes.tls13_not_offered.take(round_trip),
            }
        }
        match (in_vain, kind.is_before_tls13()) {
            (true, true) => changes.in_vain_tls12.take(round_trip),
            (true, false) => changes.in_vain_tls13.take(round_trip),
            (false, _) if class == Class::Full && known_network => {
                changes.came_back.take(round_trip);
            }
            (false, _) => {}
        }
        // After a HelloRetryRequest early data are refused by rule (RFC 8446 §4.2.10).
        if tls.early_data == EarlyData::Rejected && class == Class::Resumed {
            changes.early_rejected.take(round_trip);
        }
        if class == Class::Resumed
            && tls.resumption == Resumption::Psk
            && tls.early_data == EarlyData::NotOffered
        {
            changes.resumed_without_early.take(round_trip);
        }
        if class == Class::HelloRetry {
            // The share that follows is of the group that was asked for (RFC 8446 §4.1.4).
            let asked = tls.retry_group.or(tls.group);
            let group = asked.map_or_else(|| "none".to_owned(), |g| g.to_string());
            let pair = (set(&tls.key_shares), group);
            changes.retry(pair, &self.mould).take(round_trip);
        }
    }
}
