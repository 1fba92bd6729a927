//! Surveys of paths whose middleboxes are known.

use serde_json::Value;
use tls::KeyType;

use super::redirect::skips;
use super::world::{OWN, World, check};
use crate::support::{data, talk};
use lab_test::{Test, TestResult};
use linkmodel::{Middlebox, Path};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("a_survey_of_a_clean_path_finds_that_all_survives", clean),
        Test::new("a_survey_finds_what_drops_data_on_a_syn", dropping),
        Test::new("a_survey_finds_what_strips_data_from_a_syn", stripping),
        Test::new("a_survey_shares_the_machines_own_addresses", redirected),
        Test::new("a_survey_without_an_answer_says_so", nobody),
    ]
}

const HOST: &str = "10.77.1.102";

/// What a survey printed, group by group; and whether all survived.
struct Surveyed {
    groups: Vec<Value>,
    status: Option<i32>,
    said: String,
}

impl Surveyed {
    /// The groups of a way, one for each size.
    fn way(&self, way: &str) -> impl Iterator<Item = &Value> {
        self.groups.iter().filter(move |group| group["way"] == way)
    }

    /// Whether all data of a way had this fate.
    fn all(&self, way: &str, part: &str, fate: &str) -> bool {
        let mut groups = self.way(way);
        groups.all(|group| group[part][fate] == group["connections"])
    }
}

fn survey(world: &World, host: &str, options: &[&str]) -> TestResult<Surveyed> {
    let all = [&["gateway", "survey", host, "--size", "20,1400", "--json"], options].concat();
    let wiretax = env!("CARGO_BIN_EXE_wiretax");
    let output = world.command(&world.client, wiretax, &all)?;
    let groups = serde_json::from_str(&data(&output)).unwrap_or_default();
    Ok(Surveyed { groups, status: output.status.code(), said: data(&output) + &talk(&output) })
}

fn serve(world: &World, options: &[&str]) -> TestResult<super::world::Running> {
    let all = [&["gateway", "survey", "serve"], options].concat();
    let running = world.start(&world.server, "survey", env!("CARGO_BIN_EXE_wiretax"), &all)?;
    running.wait_for("answering")?;
    Ok(running)
}

const LISTEN: [&str; 4] = ["--listen", "10.77.1.102:443", "--listen", "10.77.1.102:8443"];

fn clean() -> TestResult {
    let world = World::new("20ms", KeyType::EcdsaP256)?;
    let serving = serve(&world, &LISTEN)?;
    let out = world.path("home.jsonl");
    let options = ["--address", OWN, "--port", "443,8443", "--repeat", "2"];
    let rest = ["--network", "home", "--out", &out];
    let found = survey(&world, HOST, &[&options[..], &rest].concat())?;
    let said = || format!("{}\n{}", found.said, serving.log());
    check(found.status == Some(0), said)?;
    // Three ways, two ports, two sizes.
    check(found.groups.len() == 12, said)?;
    for way in ["syn-data", "fast-open"] {
        check(found.all(way, "syn", "carried"), said)?;
    }
    // A SYN of 20 bytes of data allows an answer of a few more; one of 1400 all that is wanted.
    let large = found.way("syn-data").filter(|group| group["syn_bytes"] == 1400);
    for group in large {
        check(group["syn_ack"]["carried"] == group["connections"], said)?;
    }
    check(found.all("plain", "syn", "not-sent"), said)?;
    let records = std::fs::read_to_string(&out)?;
    check(records.lines().count() == 24, || records.clone())?;
    // The same by its file; another network beside.
    let wiretax = env!("CARGO_BIN_EXE_wiretax");
    let merged = world.command(&world.client, wiretax, &["gateway", "survey", "merge", &out])?;
    check(data(&merged).contains("1 of 1"), || data(&merged) + &talk(&merged))
}

/// With this middlebox on the path.
fn hindered(middlebox: Middlebox) -> TestResult<Surveyed> {
    let world = World::new("20ms", KeyType::EcdsaP256)?;
    let _serving = serve(&world, &LISTEN)?;
    let mut path = Path::symmetric("20ms".parse()?);
    path.forward.middlebox = middlebox;
    world.set_path(&path)?;
    survey(&world, HOST, &["--address", OWN, "--repeat", "1"])
}

fn dropping() -> TestResult {
    let found = hindered(Middlebox::DropSynData)?;
    let said = || found.said.clone();
    check(found.status == Some(1), said)?;
    check(found.all("plain", "syn", "not-sent"), said)?;
    check(found.all("syn-data", "syn", "dropped"), said)?;
    check(found.all("fast-open", "syn", "dropped"), said)
}

fn stripping() -> TestResult {
    let found = hindered(Middlebox::StripSynData)?;
    let said = || found.said.clone();
    check(found.status == Some(1), said)?;
    check(found.all("syn-data", "syn", "stripped"), said)?;
    check(found.all("fast-open", "syn", "stripped"), said)
}

fn redirected() -> TestResult {
    let world = skips(World::new("20ms", KeyType::EcdsaP256)?)?;
    let host = world.server.addr4()?.to_string();
    let listen = [443, 8443].map(|port| format!("{host}:{port}"));
    let serving = serve(&world, &["--redirect", "--listen", &listen[0], "--listen", &listen[1]])?;
    let options = ["--redirect", "--port", "443,8443", "--repeat", "1"];
    let found = survey(&world, &host, &options)?;
    let said = || format!("{}\n{}", found.said, serving.log());
    check(found.groups.len() == 12, said)?;
    check(found.all("syn-data", "syn", "carried"), said)
}

fn nobody() -> TestResult {
    let world = World::new("20ms", KeyType::EcdsaP256)?;
    let found = survey(&world, HOST, &["--address", OWN, "--repeat", "1", "--timeout", "1s"])?;
    let said = || found.said.clone();
    check(found.status == Some(1), said)?;
    check(found.all("plain", "syn", "failed") && !found.groups.is_empty(), said)
}
