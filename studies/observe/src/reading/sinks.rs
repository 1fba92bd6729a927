//! Where records go: the digest, JSON lines, Parquet, Prometheus, a table of the first of them.

use std::io::{self, Write};
use std::sync::Arc;

use export::{
    Addresses, Anonymiser, Beginning, DataSet, Flattener, JsonLines, Key, Names, Prefixes, Reader,
    Row,
};
use fault::{Fault, Problem};
use report::Table;
use tracker::{Connection, Output};

use super::gauges::Gauges;
use super::now::Now;
use super::translated::Translated;
use crate::digest::{Digest, Options};
use crate::present;
use crate::tickets::{self, Tickets, Visit};

/// Connections that the table lists at most; of more only the digest is shown.
pub const LISTED: usize = 50;

/// What is hidden of addresses and names, everywhere.
#[derive(Debug, Clone, Default)]
pub struct Hidden {
    /// What becomes of addresses.
    pub addresses: Addresses,
    /// What becomes of host names.
    pub names: Names,
    /// What they are hashed under; a new key, soon forgotten, where there is none.
    pub key: Option<Key>,
}

impl Hidden {
    fn anonymiser(&self) -> Result<Anonymiser, export::Error> {
        if self.addresses == Addresses::Keep && self.names == Names::Keep {
            // To draw a key takes tens of milliseconds.
            return Ok(Anonymiser::none());
        }
        let key = self.key.clone().map_or_else(Key::draw, Ok)?;
        Anonymiser::new(self.addresses, self.names, &key)
    }
}

/// Where records are to go.
#[derive(Default)]
pub struct SinkOptions {
    /// What bounds the digest.
    pub digest: Options,
    /// What is hidden.
    pub hidden: Hidden,
    /// Where JSON lines go.
    pub json: Option<Box<dyn Write>>,
    /// The data set for Parquet.
    pub parquet: Option<DataSet>,
    /// The captures that are read into it.
    pub captures: Vec<Beginning>,
    /// Whether captures are read that it has already.
    pub again: bool,
    /// Whether returning clients are looked at.
    pub tickets: bool,
}

/// All that takes records.
pub struct Sinks {
    anonymiser: Anonymiser,
    flattener: Flattener,
    /// What all of them say.
    pub digest: Digest,
    /// What clients that come back would find, if that was asked for.
    pub tickets: Option<Tickets>,
    json: Option<JsonLines<Box<dyn Write>>>,
    parquet: Option<DataSet>,
    pub(super) gauges: Option<Arc<Gauges>>,
    pub(super) now: Option<Now>,
    translated: Translated,
    /// The first records with TLS, one more than are listed.
    listed: Vec<Row>,
    /// The reader of the JSON lines has gone away.
    pub unread: bool,
    /// Why some records could not be written at the end.
    pub unsaved: Option<Problem>,
}

impl Sinks {
    /// `run` names this run in the rows.
    pub(super) fn open(options: SinkOptions, run: &str) -> Result<Sinks, Problem> {
        let networks = Prefixes::new(options.digest.prefix4, options.digest.prefix6)?;
        let anonymiser = options.hidden.anonymiser()?.with_networks(networks);
        let (captures, again) = (&options.captures, options.again);
        let mut parquet = options.parquet;
        let begun = parquet.as_mut().map_or(Ok(()), |parquet| parquet.begin(captures, again));
        let unsaved = match begun {
            // What the captures hold is still shown.
            Err(error) if error.is_lack_of_room() => {
                parquet = None;
                Some(Problem::from(error))
            }
            begun => begun.map(|()| None)?,
        };
        Ok(Sinks {
            flattener: Flattener::new(run, anonymiser.networks()),
            anonymiser,
            tickets: options.tickets.then(|| {
                let seed = options.digest.seed;
                Tickets::new(tickets::Bounds { seed, ..tickets::Bounds::default() })
            }),
            digest: Digest::new(options.digest)?,
            json: options.json.map(JsonLines::new),
            parquet,
            gauges: None,
            now: None,
            translated: Translated::default(),
            listed: Vec::new(),
            unread: false,
            unsaved,
        })
    }

    /// Takes what a tracker gave out.
    pub(super) fn take(&mut self, output: Output) -> Result<(), Problem> {
        match output {
            Output::Connection(connection) if self.translated.is_told(&connection) => {
                self.digest.count_translated();
                Ok(())
            }
            Output::Ending(ending) if self.translated.is_left_out(ending.number) => Ok(()),
            Output::Connection(mut connection) => {
                // From here on nothing knows the addresses as they were.
                self.anonymiser.hide(&mut connection);
                self.connection(&connection)
            }
            Output::Ending(ending) => {
                if self.json.is_none() && self.parquet.is_none() {
                    return Ok(());
                }
                let row = self.flattener.ending(&ending);
                let saved = self.parquet.as_mut().map(|parquet| parquet.ending(&row));
                self.saved(saved)?;
                let written = self.json.as_mut().map(|json| json.write(&row));
                self.written(written)
            }
        }
    }

    fn connection(&mut self, connection: &Connection) -> Result<(), Problem> {
        self.digest.take(connection);
        if let Some(tickets) = &mut self.tickets {
            let client = connection.client.ip().to_string();
            if let Some(visit) = Visit::of_connection(connection, &client) {
                tickets.take(&visit);
            }
        }
        if let Some(gauges) = &self.gauges {
            gauges.take(connection);
        }
        if let Some(now) = &mut self.now {
            now.take(connection);
        }
        let listed = connection.tls.is_some() && self.listed.len() <= LISTED;
        if !listed && self.json.is_none() && self.parquet.is_none() {
            return Ok(());
        }
        let row = self.flattener.connection(connection);
        let saved = self.parquet.as_mut().map(|parquet| parquet.connection(&row));
        self.saved(saved)?;
        let written = self.json.as_mut().map(|json| json.write(&row));
        if listed {
            self.listed.push(row);
        }
        self.written(written)
    }

    /// What cannot be saved is tried once: what was found until then is still shown.
    fn saved(&mut self, saved: Option<Result<(), export::Error>>) -> Result<(), Problem> {
        if let Some(Err(error)) = saved {
            self.parquet = None;
            return Err(error.into());
        }
        Ok(())
    }

    fn written(&mut self, written: Option<io::Result<Reader>>) -> Result<(), Problem> {
        match written {
            None | Some(Ok(Reader::There)) => Ok(()),
            Some(Ok(Reader::Gone)) => {
                self.unread = true;
                Ok(())
            }
            Some(Err(error)) => {
                self.json = None;
                Err(Problem::of(Fault::Results, error)
                    .while_doing("a record cannot be written to standard output")
                    .with_remedy("send it elsewhere"))
            }
        }
    }

    /// Lets those who wait for lines have them.
    pub(super) fn flush(&mut self) -> Result<(), Problem> {
        let flushed = self.json.as_mut().map(JsonLines::flush);
        self.written(flushed)
    }

    /// Writes rows that are gathered for Parquet, so that a live capture that is killed loses few.
    pub(super) fn save(&mut self) -> Result<(), Problem> {
        let saved = self.parquet.as_mut().map(DataSet::flush);
        self.saved(saved)
    }

    /// Ends what is written a piece at a time.
    pub(super) fn finish(&mut self) {
        let written = self.flush();
        if let Some(tickets) = &mut self.tickets {
            tickets.settle();
        }
        let saved = self.parquet.take().map_or(Ok(()), |parquet| parquet.finish().map(drop));
        let unsaved = self.unsaved.take().or(written.err());
        self.unsaved = unsaved.or(saved.err().map(Problem::from));
    }

    /// Each connection with TLS in a line; `None` if there is none, or more than [`LISTED`].
    #[must_use]
    pub fn table(&self) -> Option<Table> {
        let few = !self.listed.is_empty() && !self.has_more();
        few.then(|| present::connections(&self.listed))
    }

    /// Whether there are more connections with TLS than a table lists.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.listed.len() > LISTED
    }
}
