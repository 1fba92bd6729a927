//! `wiretax stacks haproxy`: HAProxy itself on each TLS library.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{Args, ValueHint};
use haproxy::{Builder, Built, End, Library, Locks, Plan, Release, Scenario, Watcher};
use record::{Finished, Manifest, Recorder, Session, Warning};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tls::{Group, KeyType, Version};
use tls_drivers::{Catalog, Folders};
use units::Delay;

use crate::args::{JsonArg, OutArgs};
use crate::exit::{Exit, Failed, OrExit, Outcome, epilogue};
use crate::files::{new_results_folder, quoted};
use crate::interrupt::Interrupt;
use crate::output::say;
use crate::report::{Question, Results};
use crate::talk::{Progress, Talk};
use crate::value::value;

/// What the exit status means.
const MEANINGS: [(Exit, &str); 6] = [
    (Exit::Done, "done"),
    (Exit::Usage, "the command line is wrong"),
    (
        Exit::Machine,
        "this machine cannot do it: nothing could be built, or the lab cannot be entered",
    ),
    (Exit::Results, "the results could not be written or read"),
    (Exit::Measurement, "nothing could be measured"),
    (Exit::Interrupted, "interrupted: what was measured is kept"),
];

/// `wiretax stacks haproxy`.
#[derive(Debug, Args)]
#[command(after_help = epilogue("Examples:
  wiretax stacks haproxy                 every built library that HAProxy works with
  wiretax stacks haproxy --library openssl-1.1.1w,openssl-3.0.2 --locks pthread,light
  wiretax stacks haproxy --scenario chain --proxies 3 --tls tls1.2,tls1.3 --threads 1,2,4
  wiretax stacks haproxy --build-only    build, measure later
  wiretax stacks haproxy --library openssl-3.5.5 --sdk openssl-3.5.5=/opt/openssl

The first build on a library takes two or three minutes; it is kept, and an interrupted one is gone on
with. docs/haproxy.md says what is built and how it is run.", &MEANINGS))]
pub struct HaproxyArgs {
    /// Libraries by their drivers' names [default: all that are built and that HAProxy works with]
    #[arg(long, visible_alias = "libraries", value_delimiter = ',', value_name = "NAMES")]
    pub library: Vec<String>,
    /// Headers (DIR/include) and static archives (DIR/lib) of a library, in place of its driver's
    #[arg(long, value_name = "NAME=DIR", value_hint = ValueHint::DirPath)]
    pub sdk: Vec<String>,
    /// HAProxy's release: 3.0.11 or 2.6.12
    #[arg(long, value_name = "VERSION")]
    pub haproxy: Option<String>,
    /// Locks under the library: pthread (as built), light (HAProxy's own)
    #[arg(long, value_delimiter = ',', value_name = "KINDS")]
    pub locks: Vec<Locks>,
    /// Scenarios: full, chain
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub scenario: Vec<Scenario>,
    /// HAProxy's threads [default: 1, 2, 4 … to the processors, and twice as many]
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    pub threads: Vec<usize>,
    /// TLS versions: tls1.2, tls1.3
    #[arg(long, value_delimiter = ',', value_name = "VERSIONS")]
    pub tls: Vec<Version>,
    /// The certificates' key: rsa-2048, rsa-4096, ecdsa-p256
    #[arg(long, value_name = "KEY")]
    pub key: Option<KeyType>,
    /// The group of the key exchange: x25519, secp256r1, x25519mlkem768
    #[arg(long, value_name = "GROUP")]
    pub group: Option<Group>,
    /// Proxies in a row in the chain [default: 10]
    #[arg(long, value_name = "N")]
    pub proxies: Option<usize>,
    /// Runs of each cell [default: 3]
    #[arg(long, value_name = "N")]
    pub repeat: Option<u32>,
    /// How long each run is measured [default: 2s]
    #[arg(value_parser = value::<Delay>, long, value_name = "TIME")]
    pub duration: Option<Delay>,
    /// Connections of the load generator at once [default: 32]
    #[arg(long, value_name = "N")]
    pub connections: Option<usize>,
    /// Threads of the load generator [default: the processors]
    #[arg(long, value_name = "N")]
    pub load_threads: Option<usize>,
    /// Compilers at once [default: the processors]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Build again what failed before
    #[arg(long)]
    pub retry: bool,
    /// Build, and measure nothing
    #[arg(long)]
    pub build_only: bool,
    #[command(flatten)]
    pub out: OutArgs,
    #[command(flatten)]
    pub json: JsonArg,
}

/// Builds what is not built yet, measures, reports. Does not return in the outer process when it
/// measures.
pub fn haproxy(args: &HaproxyArgs, talk: &Talk) -> Outcome {
    let folders = Folders::find(None).or_exit(Exit::Usage)?;
    let catalog = Catalog::read(&folders).or_exit(Exit::Usage)?;
    let plan = plan(args, &catalog)?;
    if plan.libraries.is_empty() {
        let error = anyhow!(
            "no library that HAProxy works with is built; hint: `wiretax drivers build` builds some, \
             --sdk NAME=DIR takes yours"
        );
        return Err(Failed { exit: Exit::Machine, error }.into());
    }
    plan.check().or_exit(Exit::Usage)?;
    let release = Release::find(&plan.release).or_exit(Exit::Usage)?;
    let inside = lab::inside();
    let builder = Builder {
        cache: folders.cache.join("haproxy"),
        jobs: args.jobs.unwrap_or_else(processors),
        stop: Arc::new(AtomicBool::new(false)),
    };
    let mut builds = Builds::default();
    if !inside {
        builds = match build(&plan, args, &catalog, &builder, release, talk)? {
            Some(builds) => builds,
            None => return Ok(Exit::Interrupted),
        };
        if builds.built.is_empty() {
            let error = anyhow!("HAProxy could be built on none of the libraries");
            return Err(Failed { exit: Exit::Machine, error }.into());
        }
        if args.build_only {
            return say(&listing(&builds)).map(|()| Exit::Done);
        }
    }
    lab::enter(&lab::EnterOptions::new()).or_exit(Exit::Machine)?;
    for name in &plan.libraries {
        let found = library(name, args, &catalog).and_then(|one| builder.find(release, &one));
        builds.add(name, found.transpose());
    }
    measure(args, &plan, &builds, talk)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What could be built, and what could not.
#[derive(Debug, Default)]
struct Builds {
    built: Vec<Built>,
    failed: Vec<(String, String)>,
}

impl Builds {
    fn add(&mut self, name: &str, made: Option<Result<Built, haproxy::Error>>) {
        match made {
            Some(Ok(built)) => self.built.push(built),
            Some(Err(error)) => self.failed.push((name.to_owned(), error.to_string())),
            None => self.failed.push((name.to_owned(), "it was not built".to_owned())),
        }
    }
}

/// The plan by the options, or that of the folder to resume.
fn plan(args: &HaproxyArgs, catalog: &Catalog) -> Result<Plan, Failed> {
    if let Some(folder) = &args.out.resume {
        let (manifest, _) = record::Run::stream(folder).or_exit(Exit::Results)?;
        let plan = manifest.plan.get("haproxy").cloned().unwrap_or_default();
        let unreadable = || format!("the plan in {} cannot be read", folder.display());
        return serde_json::from_value(plan).with_context(unreadable).or_exit(Exit::Results);
    }
    let mut plan = Plan::new(libraries(args, catalog)?);
    plan.release = args.haproxy.clone().unwrap_or(plan.release);
    set(&mut plan.locks, &args.locks);
    set(&mut plan.scenarios, &args.scenario);
    set(&mut plan.threads, &args.threads);
    set(&mut plan.versions, &args.tls);
    plan.key = args.key.unwrap_or(plan.key);
    plan.group = args.group.unwrap_or(plan.group);
    plan.proxies = args.proxies.unwrap_or(plan.proxies);
    plan.repeat = args.repeat.unwrap_or(plan.repeat);
    plan.connections = args.connections.unwrap_or(plan.connections);
    plan.load_threads = args.load_threads.unwrap_or(plan.load_threads);
    if let Some(duration) = args.duration {
        let milliseconds = duration.duration().as_millis();
        plan.milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
    }
    Ok(plan)
}

fn set<T: Clone>(list: &mut Vec<T>, given: &[T]) {
    if !given.is_empty() {
        *list = given.to_vec();
    }
}

/// The libraries asked for; each name is one that there is.
fn libraries(args: &HaproxyArgs, catalog: &Catalog) -> Result<Vec<String>, Failed> {
    let own = args.sdk.iter().filter_map(|pair| pair.split_once('='));
    let mut own: Vec<String> = own.map(|(name, _)| name.to_owned()).collect();
    if own.len() < args.sdk.len() {
        let error = anyhow!("--sdk is NAME=DIR; hint: --sdk openssl-3.5.5=/opt/openssl");
        return Err(Failed { exit: Exit::Usage, error });
    }
    let drivers = catalog.drivers();
    if args.library.is_empty() {
        let built =
            drivers.iter().filter(|one| one.sdk().is_some() && Library::is_known(&one.name));
        own.extend(built.map(|driver| driver.name.clone()));
        own.dedup();
        return Ok(own);
    }
    for name in &args.library {
        if !own.contains(name) && !drivers.iter().any(|driver| driver.name == *name) {
            let known = drivers.iter().map(|driver| driver.name.as_str());
            let known: Vec<&str> = known.filter(|name| Library::is_known(name)).collect();
            let hint = match known.as_slice() {
                [] => "--sdk NAME=DIR gives one, since no drivers' sources are here".to_owned(),
                known => format!("choose from {}", known.join(", ")),
            };
            let error = anyhow!("there is no library `{name}`; hint: {hint}");
            return Err(Failed { exit: Exit::Usage, error });
        }
    }
    Ok(args.library.clone())
}

/// A library by its driver, or as given by --sdk.
fn library(name: &str, args: &HaproxyArgs, catalog: &Catalog) -> Result<Library, haproxy::Error> {
    let own = args.sdk.iter().filter_map(|pair| pair.split_once('='));
    if let Some((_, folder)) = own.clone().find(|(own, _)| *own == name) {
        return Library::at(name, Path::new(folder));
    }
    let driver = catalog.drivers().iter().find(|driver| driver.name == name);
    let sdk = driver.and_then(tls_drivers::Driver::sdk);
    Library::at(name, &sdk.unwrap_or_default())
}

/// Builds on each library; one that fails is told, and the others go on. None when the user stops it.
fn build(
    plan: &Plan,
    args: &HaproxyArgs,
    catalog: &Catalog,
    builder: &Builder,
    release: &Release,
    talk: &Talk,
) -> Result<Option<Builds>, Failed> {
    // No thread may listen to signals here: the lab is yet to be entered.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&builder.stop))
            .context("signals cannot be listened to")
            .or_exit(Exit::Machine)?;
    }
    let mut builds = Builds::default();
    let each = builder.expected();
    let total = each * u32::try_from(plan.libraries.len()).unwrap_or(u32::MAX);
    for (done, name) in (0u32..).zip(&plan.libraries) {
        let found = library(name, args, catalog).and_then(|library| {
            match builder.find(release, &library) {
                Ok(Some(built)) => return Ok(built),
                Err(error @ haproxy::Error::Build { .. }) if !args.retry => return Err(error),
                _ => {}
            }
            let mut progress = talk.progress();
            let built = builder.build(release, &library, &mut |step, share| {
                progress.show(step, each * done + each.mul_f64(share), total);
            });
            progress.finish();
            built
        });
        match found {
            Err(haproxy::Error::Interrupted) => {
                talk.note("interrupted; the same command goes on with what is built");
                return Ok(None);
            }
            Err(error) => {
                let again = match &error {
                    haproxy::Error::Build { .. } => "; hint: --retry builds again",
                    _ => "",
                };
                talk.warning_with_hint(&format!("{name}: {error}{again}"));
                builds.add(name, Some(Err(error)));
            }
            Ok(built) => builds.add(name, Some(Ok(built))),
        }
    }
    Ok(Some(builds))
}

fn listing(builds: &Builds) -> String {
    let line = |built: &Built| {
        let Built { library, haproxy, runs_on, folder, .. } = built;
        format!("{library}: HAProxy {haproxy} on {runs_on} in {}\n", folder.display())
    };
    builds.built.iter().map(line).collect()
}

fn measure(args: &HaproxyArgs, plan: &Plan, builds: &Builds, talk: &Talk) -> Outcome {
    let interrupt = Interrupt::listen()?;
    let (folder, finished, mut recorder) = open(args, plan, builds)?;
    let mut following = Following { talk, progress: talk.progress(), interrupt: &interrupt };
    let ended = haproxy::measure(plan, &builds.built, &finished, &mut recorder, &mut following);
    following.progress.finish();
    let ended = ended.map_err(|error| {
        let exit = match &error {
            haproxy::Error::Record(_) => Exit::Results,
            haproxy::Error::Plan(_) | haproxy::Error::Unknown { .. } => Exit::Usage,
            _ => Exit::Measurement,
        };
        Failed { exit, error: error.into() }
    })?;
    recorder.finish().or_exit(Exit::Results)?;
    if ended == End::Interrupted {
        let shown = quoted(&folder.display().to_string());
        let own = args.sdk.iter().map(|pair| format!(" --sdk {}", quoted(pair)));
        let again = format!("wiretax stacks haproxy --resume {shown}{}", own.collect::<String>());
        talk.note(format!("interrupted; what was measured is kept: go on with `{again}`"));
        return Ok(Exit::Interrupted);
    }
    let results = Results::read(&folder, 1, talk)?;
    let question = Question::read("tcp+tls12", None, 1)?;
    let html = results.publish(&folder, None, &question, args.json.json)?;
    talk.note(format!("report: {}", html.display()));
    match results.haproxy.rows.iter().any(|row| row.runs > 0) {
        true => Ok(Exit::Done),
        false => {
            let error = anyhow!("no run showed what it should; {} holds why", folder.display());
            Err(Failed { exit: Exit::Measurement, error }.into())
        }
    }
}

fn open(
    args: &HaproxyArgs,
    plan: &Plan,
    builds: &Builds,
) -> Result<(PathBuf, Finished, Recorder), Failed> {
    let session = Session::begin(false);
    let value = json!({ "haproxy": plan });
    if let Some(folder) = &args.out.resume {
        let resumed = Recorder::resume(folder, &value, session).or_exit(Exit::Results)?;
        return Ok((folder.clone(), resumed.finished, resumed.recorder));
    }
    let date = session.started.strftime("%Y-%m-%d").to_string();
    let folder = args.out.out.clone().unwrap_or_else(|| new_results_folder("haproxy", &date));
    let mut manifest = Manifest::new(value, session);
    for built in &builds.built {
        let what = format!("HAProxy {} on {}", built.haproxy, built.runs_on);
        manifest.libraries.insert(built.library.clone(), what);
    }
    for (name, reason) in &builds.failed {
        let remedy = "leave it out by --library, or make it build";
        manifest.warn(Warning::new(format!("{name} was not measured: {reason}"), remedy));
    }
    let recorder = Recorder::create(&folder, manifest).or_exit(Exit::Results)?;
    Ok((folder, Finished::default(), recorder))
}

struct Following<'a> {
    talk: &'a Talk,
    progress: Progress,
    interrupt: &'a Interrupt,
}

impl Watcher for Following<'_> {
    fn progress(&mut self, step: &str, done: Duration, total: Duration) {
        self.progress.show(step, done, total);
    }

    fn interrupted(&self) -> bool {
        self.interrupt.came()
    }

    fn warning(&mut self, text: &str) {
        self.talk.warning_with_hint(text);
    }
}
