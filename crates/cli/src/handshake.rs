//! `wiretax handshake`.

use std::path::PathBuf;

use anyhow::Context;
use fault::WhileDoing;
use handshake::Plan;
use linkmodel::{Path, Profile, RateSource, Trace};
use study::{PlanError, Sweep};

use crate::args::{AxisArgs, HandshakeArgs};
use crate::exit::{Exit, Failed, OrExit, Outcome};
use crate::files::{quoted, read_text};
use crate::lab_run::{LabRun, measure, plan_of};
use crate::observe_lab::failed;
use crate::report::Question;
use crate::talk::Talk;

/// Everything that can be wrong with the request is found before the lab is entered.
pub fn handshake(args: &HandshakeArgs, talk: &Talk) -> Outcome {
    // The options of the first session may be given again; the recorder holds them against its plan.
    let plan = match (&args.out.resume, args.shape_plan()) {
        (Some(folder), false) => plan_of(folder)?,
        _ => plan(args)?,
    };
    let question = Question::read(&args.from, args.clients.as_deref(), plan.seed)?;
    let run = LabRun {
        name: "handshake",
        plan: &plan,
        observe: None,
        stacks: None,
        out: &args.out,
        lab: &args.lab,
        json: &args.json,
        question: &question,
        keep_captures: args.keep_captures,
    };
    measure(&run, talk)
}

fn plan(args: &HandshakeArgs) -> Result<Plan, Failed> {
    let text = args.plan.as_deref().map(|path| read_text(path, "plan")).transpose()?;
    if text.is_some() && args.axes.any() {
        let error = anyhow::anyhow!(
            "a plan file and axes (--mode, --rtt, …) exclude each other; hint: put the axes into the plan"
        );
        return Err(Failed { exit: Exit::Usage, error });
    }
    let base = base(args)?;
    let mut plan = match (&args.plan, text) {
        (Some(file), Some(text)) => {
            let made = Plan::parse(&text, args.scale());
            made.while_doing(|| file.display()).map_err(failed)?
        }
        _ if args.axes.any() || args.profile.is_some() => {
            single(args, base.as_ref()).or_exit(Exit::Usage)?
        }
        _ => Plan::built_in(args.scale()).or_exit(Exit::Usage)?,
    };
    plan.seed = args.seed.unwrap_or(plan.seed);
    plan.timeout = args.timeout.unwrap_or(plan.timeout);
    if plan.timeout.duration().is_zero() {
        let error = anyhow::anyhow!("a timeout of 0 leaves no time to connect; leave it out");
        return Err(Failed { exit: Exit::Usage, error });
    }
    plan.rate = args.rate;
    plan.base_options = base_options(args);
    plan.base = base;
    Ok(plan)
}

/// One sweep over the axes given.
fn single(args: &HandshakeArgs, base: Option<&Path>) -> Result<Plan, PlanError> {
    // An unknown scale is wrong even where it is not used.
    Plan::built_in(args.scale())?;
    let mut sweep = Plan::single_sweep("cli");
    if let (Some(base), Some(_)) = (base, &args.profile) {
        sweep.lists.insert("rtt".to_owned(), vec![base.round_trip().to_string()]);
    }
    args.axes.overwrite(&mut sweep);
    Plan::new(vec![sweep])
}

/// What the path does besides RTT, loss and rate.
fn base(args: &HandshakeArgs) -> Result<Option<Path>, Failed> {
    let mut base = args.profile.as_deref().map(profile).transpose()?;
    for (file, up) in [(&args.trace_up, true), (&args.trace_down, false)] {
        let Some(file) = file else { continue };
        let text = read_text(file, "trace")?;
        let trace = Trace::parse(&text);
        let trace = trace.with_context(|| file.display().to_string()).or_exit(Exit::Usage)?;
        let path = base.get_or_insert_default();
        let direction = if up { &mut path.forward } else { &mut path.backward };
        direction.rate = Some(RateSource::Trace(trace));
    }
    Ok(base)
}

/// A profile by name, or from a file.
fn profile(name: &str) -> Result<Path, Failed> {
    if !(name.ends_with(".toml") || name.contains('/')) {
        return linkmodel::profile(name).or_exit(Exit::Usage);
    }
    let text = read_text(name.as_ref(), "profile")?;
    let profile = Profile::parse(&text).with_context(|| name.to_owned()).or_exit(Exit::Usage)?;
    Ok(profile.path)
}

/// The options that give the base, for the command of a point.
fn base_options(args: &HandshakeArgs) -> String {
    let profile = args.profile.as_ref().map(|profile| ("--profile", profile.clone()));
    let trace = |file: &PathBuf| file.display().to_string();
    let up = args.trace_up.as_ref().map(|file| ("--trace-up", trace(file)));
    let down = args.trace_down.as_ref().map(|file| ("--trace-down", trace(file)));
    let options = [profile, up, down].into_iter().flatten();
    let options = options.map(|(option, value)| format!("{option} {}", quoted(&value)));
    options.collect::<Vec<_>>().join(" ")
}

impl HandshakeArgs {
    fn scale(&self) -> &str {
        self.scale.as_deref().unwrap_or("quick")
    }

    /// Whether any option says what to measure.
    fn shape_plan(&self) -> bool {
        let files = [&self.plan, &self.trace_up, &self.trace_down];
        self.axes.any()
            || files.iter().any(|file| file.is_some())
            || self.scale.is_some()
            || self.profile.is_some()
            || self.rate.is_some()
            || self.timeout.is_some()
            || self.seed.is_some()
    }
}

impl AxisArgs {
    fn any(&self) -> bool {
        let AxisArgs { mode, rtt, loss, key, group, library, chain, .. } = self;
        let AxisArgs { middlebox, peer, visit, repeat, concurrent, .. } = self;
        let lists = [mode.len(), rtt.len(), loss.len(), key.len(), group.len(), library.len()];
        let more = [chain.len(), middlebox.len(), peer.len(), visit.len()];
        lists.iter().chain(&more).any(|len| *len > 0) || repeat.is_some() || concurrent.is_some()
    }

    fn overwrite(&self, sweep: &mut Sweep) {
        fn set<T: ToString>(sweep: &mut Sweep, axis: &str, given: &[T]) {
            if !given.is_empty() {
                let words = given.iter().map(T::to_string).collect();
                sweep.lists.insert(axis.to_owned(), words);
            }
        }
        set(sweep, "mode", &self.mode);
        set(sweep, "rtt", &self.rtt);
        set(sweep, "loss", &self.loss);
        set(sweep, "key", &self.key);
        set(sweep, "group", &self.group);
        set(sweep, "library", &self.library);
        set(sweep, "chain", &self.chain);
        set(sweep, "middlebox", &self.middlebox);
        set(sweep, "peer", &self.peer);
        set(sweep, "visit", &self.visit);
        for (name, given) in [("repeat", self.repeat), ("concurrent", self.concurrent)] {
            sweep.numbers.extend(given.map(|n| (name.to_owned(), n.into())));
        }
    }
}
