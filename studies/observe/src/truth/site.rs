//! The testbed of this study: clients of each population behind a link of their own, a server for each
//! scenario, captures at the server's end of each link.

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use conn::{ClientPlan, ClientTransport, ServerTransport};
use futures_util::future::join_all;
use lab::LabOptions;
use linkmodel::{Jitter, LinkConfig, Path};
use testbed::{Capture, Error, SERVER_NAME, Testbed};
use tls::{Identity, KeyType};
use tracker::Connection;

use super::batch::{Ends, Logged};
use super::dial::{Dial, Dialled};
use super::population::Population;
use super::scenario::Scenario;
use crate::digest::Frames;

/// How long any attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client over TCP waits for the server's end at most.
const LINGER: Duration = Duration::from_secs(1);

pub(super) struct Site {
    // First, so that they end before the lab does.
    captures: Vec<Capture>,
    bed: Testbed<Scenario>,
    populations: Vec<Population>,
}

impl Site {
    /// A server for each scenario, and the clients of each population behind a link of their own.
    pub(super) fn new(
        options: LabOptions,
        populations: &[Population],
        scenarios: &[Scenario],
    ) -> Result<Site, Error> {
        let links = populations.iter().map(|population| (population.name(), path(*population)));
        let mut bed = Testbed::new(options, &links.collect::<Vec<_>>())?;
        let identity = bed.identity(KeyType::EcdsaP256, 1)?;
        let stranger = Identity::generate(KeyType::EcdsaP256, 1, &[SERVER_NAME])?;
        for scenario in scenarios.iter().copied() {
            bed.serve(scenario, server_transport(scenario, &identity)?)?;
            for (client, population) in populations.iter().enumerate() {
                let transport = client_transport(scenario, *population, &identity, &stranger)?;
                bed.reach(client, scenario, transport, scenario.early_data());
            }
        }
        Ok(Site { captures: Vec::new(), bed, populations: populations.to_vec() })
    }

    /// As many connections of each scenario that resumes, for their tickets, by each population. The
    /// ends of these connections, which are none that count.
    pub(super) fn fetch_tickets(
        &mut self,
        counts: &BTreeMap<Scenario, u32>,
    ) -> Result<Vec<Ends>, Error> {
        let mut ends = Vec::new();
        for (scenario, count) in counts.iter().filter(|(scenario, _)| scenario.resumes()) {
            let count = *count as usize;
            let made = self.bed.prime(scenario, count, count)?;
            ends.extend(made.into_iter().map(|(client, server)| (client, server.port())));
        }
        self.bed.settle()?;
        Ok(ends)
    }

    /// Makes a batch of connections for each population, all together.
    pub(super) fn dial(
        &mut self,
        batches: Vec<Vec<(Scenario, Duration)>>,
    ) -> Result<Vec<Vec<Dialled>>, Error> {
        let mut waves = Vec::new();
        for (client, batch) in batches.into_iter().enumerate() {
            let dials = batch.into_iter().filter_map(|(scenario, after)| {
                Some(Dial { scenario, plan: self.plan(client, scenario)?, after })
            });
            let dials: Vec<Dial> = dials.collect();
            let together = move || join_all(dials.into_iter().map(Dial::run));
            waves.push(self.bed.client(client)?.spawn(together));
        }
        waves.into_iter().map(|wave| Ok(wave.join()?)).collect()
    }

    /// A connection of a population's client; `None` of a scenario that was not set up.
    fn plan(&mut self, client: usize, scenario: Scenario) -> Option<ClientPlan> {
        let plan = self.bed.plan(client, &scenario)?;
        let linger = if scenario.is_quic() { plan.linger } else { LINGER };
        Some(ClientPlan { think: scenario.think(), timeout: PATIENCE, linger, ..plan })
    }

    /// Captures at the server's end of each link. What an earlier session kept in the folder stays.
    pub(super) fn start_captures(&mut self, folder: Option<&FilePath>) -> Result<(), Error> {
        for (client, population) in self.populations.iter().enumerate() {
            let file = folder.map(|folder| new_file(folder, population.name()));
            self.captures.push(self.bed.capture_at_server(client, file)?);
        }
        Ok(())
    }

    /// What the servers have logged since they were last asked.
    pub(super) fn logs(&self) -> Vec<Logged> {
        let logged = self.bed.logged().into_iter();
        logged.map(|(scenario, port, record)| Logged { scenario, port, record }).collect()
    }

    /// Frames of connections that were captured until now.
    pub(super) fn frames(&self) -> u64 {
        self.captures.iter().map(Capture::followed).sum()
    }

    /// What each population's capture has counted until now, in the order of the populations.
    pub(super) fn counted(&self) -> Vec<Frames> {
        self.captures.iter().map(|capture| Frames::from(&capture.counters())).collect()
    }

    /// Each population's records since they were last asked for, of connections that go on too.
    pub(super) fn records(&self) -> Vec<Vec<Connection>> {
        self.captures.iter().map(Capture::connections).collect()
    }

    /// Ends the captures. Frames that they lost.
    pub(super) fn finish(mut self) -> Result<u64, Error> {
        let stopped = std::mem::take(&mut self.captures).into_iter().map(Capture::stop);
        stopped.map(|stopped| Ok(stopped?.1)).sum()
    }
}

/// A capture file that is not there yet: `wifi.pcapng`, or with a number behind the name.
fn new_file(folder: &FilePath, name: &str) -> PathBuf {
    let numbered = (2u32..1000).map(|number| format!("{name}-{number}.pcapng"));
    let files = std::iter::once(format!("{name}.pcapng")).chain(numbered);
    let mut paths = files.map(|file| folder.join(file));
    paths.find(|path| !path.exists()).unwrap_or_else(|| folder.join(name))
}

fn path(population: Population) -> Path {
    let mut path = Path::symmetric(population.round_trip().into());
    let with_jitter =
        |link: &mut LinkConfig| link.jitter = Jitter::Normal(population.jitter().into());
    with_jitter(&mut path.forward);
    with_jitter(&mut path.backward);
    path
}

fn client_transport(
    scenario: Scenario,
    population: Population,
    identity: &Identity,
    stranger: &Identity,
) -> Result<ClientTransport, Error> {
    if scenario.is_quic() {
        let config = scenario.client_config(tls::Library::Rustls, identity, stranger);
        return Ok(ClientTransport::Quic { tls: tls::quic::client_config(&config)? });
    }
    let config = scenario.client_config(population.library(), identity, stranger);
    Ok(ClientTransport::tls(&tls::Client::new(&config)?))
}

fn server_transport(
    scenario: Scenario,
    identity: &Arc<Identity>,
) -> Result<ServerTransport, Error> {
    let config = scenario.server_config(identity);
    Ok(match scenario.is_quic() {
        true => ServerTransport::quic(config),
        false => ServerTransport::tls(tls::Server::new(&config)?),
    })
}
