//! Where the records of `wiretax observe` go: the digest, JSON lines, Parquet, Prometheus, a table of
//! the first of them.

use std::io::Stdout;
use std::sync::Arc;

use anyhow::Context;
use export::{
    Addresses, Anonymiser, DataSet, Flattener, JsonLines, Key, Names, Prefixes, Reader, Row,
};
use observe::{Digest, Options};
use tracker::{Connection, Output};

use crate::exit::{Exit, Failed, OrExit};
use crate::files::read_text;
use crate::observe_args::ObserveArgs;
use crate::observe_live::Now;
use crate::observe_metrics::Gauges;

/// Connections that the table lists at most; of more only the digest is shown.
pub const LISTED: usize = 50;

/// All that takes records.
pub struct Sinks {
    anonymiser: Anonymiser,
    flattener: Flattener,
    pub digest: Digest,
    json: Option<JsonLines<Stdout>>,
    parquet: Option<DataSet>,
    pub gauges: Option<Arc<Gauges>>,
    pub now: Option<Now>,
    /// The first records with TLS, one more than are listed.
    pub listed: Vec<Row>,
    /// The reader of our standard output has gone away.
    pub unread: bool,
}

impl Sinks {
    /// As the command line asks for; `run` names this run in the rows.
    pub fn open(args: &ObserveArgs, run: &str) -> Result<Sinks, Failed> {
        let (prefix4, prefix6) = args.picture.prefix;
        let options = Options {
            bin: args.picture.bin.duration(),
            prefix4,
            prefix6,
            seed: args.picture.seed,
            ..Options::default()
        };
        let networks = Prefixes::new(prefix4, prefix6).or_exit(Exit::Usage)?;
        let parquet = match &args.results.parquet {
            Some(folder) => {
                Some(DataSet::open(folder, export::Options::default()).or_exit(Exit::Results)?)
            }
            None => None,
        };
        let json = args.json.json.then(|| JsonLines::new(std::io::stdout()));
        Ok(Sinks {
            anonymiser: anonymiser(args)?,
            flattener: Flattener::new(run, Anonymiser::none().with_networks(networks)),
            digest: Digest::new(options).or_exit(Exit::Usage)?,
            json,
            parquet,
            gauges: None,
            now: None,
            listed: Vec::new(),
            unread: false,
        })
    }

    /// Takes what a tracker gave out.
    pub fn take(&mut self, output: Output) -> Result<(), Failed> {
        match output {
            Output::Connection(mut connection) => {
                self.hide(&mut connection);
                self.connection(&connection)
            }
            Output::Ending(ending) => {
                if self.json.is_none() && self.parquet.is_none() {
                    return Ok(());
                }
                let row = self.flattener.ending(&ending);
                if let Some(parquet) = &mut self.parquet {
                    parquet.ending(&row).or_exit(Exit::Results)?;
                }
                let written = self.json.as_mut().map(|json| json.write(&row));
                self.written(written)
            }
        }
    }

    /// From here on nothing knows the addresses as they were.
    fn hide(&self, connection: &mut Connection) {
        connection.client.set_ip(self.anonymiser.address(connection.client.ip()));
        connection.server.set_ip(self.anonymiser.address(connection.server.ip()));
        if let Some(tls) = &mut connection.tls
            && let Some(name) = &mut tls.server_name
        {
            *name = self.anonymiser.name(name);
        }
    }

    fn connection(&mut self, connection: &Connection) -> Result<(), Failed> {
        self.digest.take(connection);
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
        if let Some(parquet) = &mut self.parquet {
            parquet.connection(&row).or_exit(Exit::Results)?;
        }
        let written = self.json.as_mut().map(|json| json.write(&row));
        if listed {
            self.listed.push(row);
        }
        self.written(written)
    }

    fn written(&mut self, written: Option<std::io::Result<Reader>>) -> Result<(), Failed> {
        match written {
            None | Some(Ok(Reader::There)) => Ok(()),
            Some(Ok(Reader::Gone)) => {
                self.unread = true;
                Ok(())
            }
            Some(Err(error)) => Err(error)
                .context("a record cannot be written to standard output; hint: send it elsewhere")
                .or_exit(Exit::Results),
        }
    }

    /// Lets those who wait for lines have them.
    pub fn flush(&mut self) -> Result<(), Failed> {
        let flushed = self.json.as_mut().map(JsonLines::flush);
        self.written(flushed)
    }

    /// Writes rows that are gathered for Parquet, so that a live capture that is killed loses few.
    pub fn save(&mut self) -> Result<(), Failed> {
        match &mut self.parquet {
            Some(parquet) => parquet.flush().or_exit(Exit::Results),
            None => Ok(()),
        }
    }

    /// Ends what is written a piece at a time.
    pub fn finish(&mut self) -> Result<(), Failed> {
        self.flush()?;
        if let Some(parquet) = self.parquet.take() {
            parquet.finish().or_exit(Exit::Results)?;
        }
        Ok(())
    }
}

fn anonymiser(args: &ObserveArgs) -> Result<Anonymiser, Failed> {
    if args.results.anonymise == Addresses::Keep && !args.results.anonymise_names {
        // To draw a key takes tens of milliseconds.
        return Ok(Anonymiser::none());
    }
    let key = match &args.results.anonymise_key {
        Some(file) => {
            let key = read_text(file, "key")?.parse::<Key>();
            key.with_context(|| file.display().to_string()).or_exit(Exit::Usage)?
        }
        None => Key::draw().or_exit(Exit::Machine)?,
    };
    let names = if args.results.anonymise_names { Names::Hash } else { Names::Keep };
    Anonymiser::new(args.results.anonymise, names, &key).or_exit(Exit::Machine)
}
