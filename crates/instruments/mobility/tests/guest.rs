//! Handoffs in a guest: what happens, in which order, and the same again.

use std::process::ExitCode;
use std::time::Duration;

use fault::{Explain, Problem};
use handoff::{
    Attachment, Change, Direction, Domain, Measures, Outage, Phase, Run, Scenario, Source,
    Timeline, Trigger, Tunnel, What, WifiSecurity,
};
use host::{Host, Outlet, Place, Registry, Worker};
use lab::{Lab, LabOptions};
use lab_test::{Need, Test, TestResult, skip};
use mobility::Bed;
use serde::{Deserialize, Serialize};
use units::Delay;

/// Real time that a guest may take, on a busy machine too.
const LONG: Duration = Duration::from_secs(900);

fn main() -> ExitCode {
    guest::init_if_guest(|| Registry::new().with(Handoffs));
    lab_test::main(&[
        Test::new("the_papers_handoffs_are_seen_and_repeat_exactly", repeats).within(LONG),
        Test::new("a_key_in_time_spares_the_second_of_block_acknowledgements", in_time)
            .within(LONG),
        Test::new("the_second_of_block_acknowledgements_is_seen_and_named", named).within(LONG),
        Test::new("who_is_cut_off_from_one_network_comes_back_by_the_other", between).within(LONG),
        Test::new("with_proxy_arp_the_site_answers_for_the_peer", nearby).within(LONG),
        Test::helper("show", show),
    ])
}

/// Stands beds up and makes a run in each.
struct Handoffs;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Job {
    scenarios: Vec<Scenario>,
    frames_per_second: u32,
    trial: Delay,
    runs: u64,
}

impl Worker for Handoffs {
    const KIND: &'static str = "test-handoffs";
    type Job = Job;
    type Answer = Vec<Run>;

    fn work(&self, job: Job, outlet: &mut Outlet<'_>) -> Result<Vec<Run>, Problem> {
        let mut runs = Vec::new();
        for scenario in &job.scenarios {
            match of(scenario, &job, outlet) {
                Ok(made) => runs.extend(made),
                // Whoever looks at many wants to see the others.
                Err(problem) if job.scenarios.len() > 3 => {
                    outlet.event(format!("{}: {problem}", scenario.name))?;
                }
                Err(problem) => return Err(problem),
            }
        }
        Ok(runs)
    }
}

fn of(scenario: &Scenario, job: &Job, outlet: &mut Outlet<'_>) -> Result<Vec<Run>, Problem> {
    let mut lab = Lab::new(LabOptions::default())?;
    let mut bed = Bed::stand(&mut lab, scenario, 1)?;
    outlet.event(format!("{} stands", scenario.name))?;
    let mut runs = Vec::new();
    for seed in 0..job.runs {
        let run = bed.run(job.frames_per_second, job.trial, seed)?;
        outlet.sample(&run)?;
        runs.push(run);
    }
    Ok(runs)
}

fn place(ssid: &str, channel: u8) -> Attachment {
    Attachment { access: handoff::Access::Wifi, ssid: ssid.to_owned(), channel }
}

fn scenario(name: &str, ssids: [&str; 2]) -> Scenario {
    let [first, second] = ssids;
    Scenario {
        name: name.to_owned(),
        attachments: vec![place(first, 1), place(second, 11)],
        security: Default::default(),
        fast_transition: false,
        tunnel: Tunnel::MacSec,
        tunnel_end: Default::default(),
        keying: Default::default(),
        domain: Domain::One,
        trigger: Trigger::Reconnect,
        address: Default::default(),
        // Which takes 5 s.
        measures: Measures { no_duplicate_detection: true, ..Measures::default() },
        stations: 1,
        radio_loss: Default::default(),
        core_delay: Delay::ZERO,
    }
}

/// The paper's three.
fn papers() -> Vec<Scenario> {
    let ipsec = Scenario {
        tunnel: Tunnel::Ipsec,
        domain: Domain::Each,
        ..scenario("ipsec-different-ssid", ["labA", "labB"])
    };
    let different = scenario("macsec-different-ssid", ["labA", "labB"]);
    let same =
        Scenario { trigger: Trigger::CutDeauth, ..scenario("macsec-same-ssid", ["lab", "lab"]) };
    vec![ipsec, different, same]
}

fn in_a_guest(job: &Job) -> TestResult<Vec<Run>> {
    let guest = match mobility::guest() {
        Ok(guest) => guest,
        Err(error) => return skip(Need::Guest, error.in_one_text()),
    };
    let host = Host::new(Place::Process(guest.launch()?));
    Ok(host.run::<Handoffs>("handoffs in a guest", job, LONG, |_| {})?)
}

/// When a source first saw this, in nanoseconds since the run began.
fn first(run: &Run, source: Source, what: What) -> Option<u64> {
    let mut events = run.events.iter();
    let found = events.find(|event| event.source == source && event.what == what);
    found.map(|event| event.at.as_nanos())
}

fn repeats() -> TestResult {
    let job = Job { scenarios: papers(), frames_per_second: 1000, trial: "4s".parse()?, runs: 1 };
    let (once, again) = (in_a_guest(&job)?, in_a_guest(&job)?);
    for (run, scenario) in once.iter().zip(&job.scenarios) {
        let name = &scenario.name;
        let seen = |source, what| {
            first(run, source, what).ok_or_else(|| format!("{name}: no {what} by {source}"))
        };
        let order = [
            seen(Source::Control, What::Triggered)?,
            seen(Source::Supplicant, What::Associating)?,
            seen(Source::Supplicant, What::Authorized)?,
            seen(Source::Kernel, What::LinkUp)?,
            seen(Source::Control, What::Ended)?,
        ];
        assert!(order.is_sorted(), "{name}: {order:?}");
        assert!(run.up.received > 0 && !run.up.lost.is_empty(), "{name}");
        assert!(run.down.received > 0 && !run.down.lost.is_empty(), "{name}");
    }
    assert_eq!(once, again);
    Ok(())
}

/// Whoever is cut off, and knows another network, finds it by itself.
fn between() -> TestResult {
    let of = |trigger: Trigger| Scenario {
        trigger,
        measures: Measures { scan_list: true, no_duplicate_detection: true, ..Measures::default() },
        ..scenario(trigger.name(), ["labA", "labB"])
    };
    let scenarios = vec![of(Trigger::CutDeauth), of(Trigger::CutSilent)];
    let job = Job { scenarios, frames_per_second: 1000, trial: "5s".parse()?, runs: 2 };
    let runs = in_a_guest(&job)?;
    assert_eq!(runs.len(), 4);
    for run in runs {
        for direction in Direction::ALL {
            let outage = Outage::of(&run, *direction);
            assert!(outage.is_over && outage.lost > 0, "{direction}: {outage:?}");
        }
    }
    Ok(())
}

/// How long the host waited for its neighbour's hardware address after the move, in milliseconds.
fn asked_for(run: &Run) -> TestResult<u64> {
    let triggered = run.triggered().ok_or("no trigger")?;
    let mut after = run.events.iter().filter(|event| event.at > triggered);
    let asked = after.find(|event| event.what == What::GatewayAsked).ok_or("it does not ask")?;
    let known = after.find(|event| event.what == What::GatewayKnown).ok_or("no answer")?;
    Ok((known.at.as_nanos() - asked.at.as_nanos()) / 1_000_000)
}

/// Questions cross a core of 20 ms each way, unless the bridge of the site answers them.
fn nearby() -> TestResult {
    let far = Scenario {
        core_delay: "20ms".parse()?,
        measures: Measures { scan_list: true, no_duplicate_detection: true, ..Measures::default() },
        ..scenario("far", ["labA", "labB"])
    };
    let scenarios = vec![far.clone(), Change::ProxyArp.of(far)];
    let job = Job { scenarios, frames_per_second: 1000, trial: "4s".parse()?, runs: 1 };
    let runs = in_a_guest(&job)?;
    let waited: Vec<u64> = runs.iter().map(asked_for).collect::<TestResult<_>>()?;
    let [far, near] = waited.as_slice() else { return Err("two runs".into()) };
    assert!(*far >= 40 && *near < 10, "{far} ms without, {near} ms with");
    Ok(())
}

fn sae() -> Scenario {
    Scenario {
        security: WifiSecurity::Wpa3Sae,
        ..scenario("macsec-different-ssid", ["labA", "labB"])
    }
}

/// Where the access point holds frames back for a second, it is known for how long, and the outage is explained.
fn named() -> TestResult {
    let job =
        Job { scenarios: vec![sae()], frames_per_second: 1000, trial: "4s".parse()?, runs: 2 };
    for run in in_a_guest(&job)? {
        let started = first(&run, Source::AccessPoint, What::HoldStarted).ok_or("no hold")?;
        let ended = first(&run, Source::AccessPoint, What::HoldEnded).ok_or("no end of it")?;
        // Linux gives up after a second (net/mac80211/agg-tx.c), to its timers' 4 ms; then it waits for who reads.
        let held = (ended - started) / 1_000_000;
        assert!((996..1100).contains(&held), "{held} ms");
        for direction in Direction::ALL {
            let timeline = Timeline::of(&run, *direction).ok_or("no outage")?;
            assert!(timeline.of_phase(Phase::Held) > Duration::from_millis(900), "{timeline:?}");
            assert!(timeline.adds_up(), "{direction}: {timeline:?}");
        }
    }
    Ok(())
}

/// Under protected management frames a station that installs its key after its last message cannot read the access
/// point's request for block acknowledgements, and the kernel holds frames back for a second.
fn in_time() -> TestResult {
    let sae = sae();
    let scenarios: Vec<Scenario> = [Change::ExtendedKeyIds, Change::NoAggregation]
        .map(|change| Scenario { name: change.to_string(), ..change.of(sae.clone()) })
        .into();
    let job = Job { scenarios, frames_per_second: 1000, trial: "4s".parse()?, runs: 2 };
    for run in in_a_guest(&job)? {
        let triggered = first(&run, Source::Control, What::Triggered).ok_or("no trigger")?;
        let set = first(&run, Source::Kernel, What::AddressSet).ok_or("no address")?;
        for stream in [&run.up, &run.down] {
            let (_, to) = stream.gaps.first().ok_or("no gap")?;
            let back = to.at.as_nanos();
            assert!(triggered < set && set < back, "{triggered}, {set}, {back}");
            // The neighbours' first questions are answered.
            assert!(back - set < 100_000_000, "{} ms", (back - set) / 1_000_000);
        }
    }
    Ok(())
}

/// Prints what is seen of the scenarios in the file that the variable names, or of the paper's.
fn show() -> TestResult {
    let variable = |name: &str| std::env::var(name).ok();
    let scenarios = match variable("WIRETAX_SCENARIOS") {
        Some(file) => serde_json::from_str(&std::fs::read_to_string(file)?)?,
        None => papers(),
    };
    let rate = variable("WIRETAX_RATE").unwrap_or_else(|| "1000".to_owned());
    let job = Job {
        scenarios,
        frames_per_second: rate.parse()?,
        trial: variable("WIRETAX_TRIAL").unwrap_or_else(|| "4s".to_owned()).parse()?,
        runs: variable("WIRETAX_RUNS").unwrap_or_else(|| "1".to_owned()).parse()?,
    };
    let guest = mobility::guest()?;
    println!("lacks modules: {:?}", guest.absent_modules()?);
    let host = Host::new(Place::Process(guest.launch()?));
    let began = std::time::Instant::now();
    host.run::<Handoffs>("handoffs in a guest", &job, LONG, |message| {
        let at = began.elapsed().as_secs_f64();
        match message {
            host::Message::Sample(sample) => {
                let run: Run = serde_json::from_value(sample).expect("a run");
                println!("{at:.1} s: busy {}", run.busy);
                for event in &run.events {
                    let ms = event.at.as_nanos() as f64 / 1e6;
                    println!("  {ms:9.3} {} {}: {}", event.source, event.what, event.detail);
                }
                for (name, stream) in [("up", &run.up), ("down", &run.down)] {
                    let gap = stream.gaps.first().map(|(from, to)| {
                        let ms = |time: units::Time| time.as_nanos() as f64 / 1e6;
                        (ms(from.at), ms(to.at), from.number, to.number)
                    });
                    println!(
                        "  {name}: {} of {}, gap {gap:?}, lost {:?}, twice {}, late {}",
                        stream.received,
                        stream.sent,
                        stream.lost,
                        stream.duplicates,
                        stream.reordered
                    );
                }
            }
            host::Message::Event(text) => println!("{at:.1} s: {text}"),
            _ => {}
        }
    })?;
    Ok(())
}
