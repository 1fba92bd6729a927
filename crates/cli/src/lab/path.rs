//! The path of `wiretax lab`, from its options.

use std::borrow::Cow;
use std::path::Path as FilePath;
use std::str::FromStr;

use fault::{Explain, Fault, Problem, WhileDoing};
use linkmodel::{Codel, Path, Profile, Queue, RateSource, Trace};
use page_study::LinkName;
use units::Bytes;

use super::args::PathArgs;

/// A queue as the command line has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueArg(Queue);

/// A text that is not a queue.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a queue")]
pub struct NotQueue(String);

impl Explain for NotQueue {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("write packets as 1000, bytes as 64kB, codel or unlimited".into())
    }
}

impl FromStr for QueueArg {
    type Err = NotQueue;

    fn from_str(text: &str) -> Result<QueueArg, NotQueue> {
        let sized = || match text.parse::<u32>() {
            Ok(packets) => Some(Queue::Packets(packets)),
            Err(_) => text.parse::<Bytes>().ok().map(Queue::Bytes),
        };
        let queue = match text {
            "codel" => Some(Queue::Codel(Codel::default())),
            "unlimited" => Some(Queue::Unlimited),
            _ => sized(),
        };
        queue.map(QueueArg).ok_or_else(|| NotQueue(text.to_owned()))
    }
}

/// A value for each way: one for both, or two with a slash between, the way down first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerWay<T> {
    /// From the server to the client.
    pub down: T,
    /// From the client to the server.
    pub up: T,
}

impl<T: FromStr + Clone> FromStr for PerWay<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        let both = match text.parse::<T>() {
            Ok(both) => return Ok(PerWay { down: both.clone(), up: both }),
            Err(error) => error,
        };
        // A value may have a slash of its own, as 20mbit/ip.
        let halves = text.match_indices('/').find_map(|(at, slash)| {
            let (down, up) = (text.get(..at)?, text.get(at + slash.len()..)?);
            Some(PerWay { down: down.parse().ok()?, up: up.parse().ok()? })
        });
        halves.ok_or_else(|| {
            // The wrong half of two says why. The part behind a slash may be no value, as in 20mbit/tcp.
            let halves = text.split_once('/').map(|(down, up)| [down, up]);
            let are_values =
                |halves: &[&str; 2]| halves.iter().all(|half| half.starts_with(is_digit));
            let halves = halves.filter(are_values).into_iter().flatten();
            halves.map(str::parse::<T>).find_map(Result::err).unwrap_or(both)
        })
    }
}

const fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

/// The path that the options ask for.
///
/// # Errors
/// A name that no link has, a file that cannot be read, a value that makes no sense.
pub fn path(args: &PathArgs) -> Result<Path, Problem> {
    let mut path = args.link.as_deref().map_or_else(|| Ok(Path::default()), named)?;
    if let Some(rtt) = args.rtt {
        (path.forward.delay, path.backward.delay) = rtt.split_round_trip();
    }
    if let Some(loss) = args.loss {
        (path.forward.loss, path.backward.loss) = (loss.up.into(), loss.down.into());
    }
    if let Some(PerWay { down: QueueArg(down), up: QueueArg(up) }) = args.queue {
        (path.forward.queue, path.backward.queue) = (up, down);
    }
    let up = args.up.or(args.rate.map(|rate| rate.up));
    let down = args.down.or(args.rate.map(|rate| rate.down));
    for (rate, way) in [(up, &mut path.forward), (down, &mut path.backward)] {
        if let Some(rate) = rate {
            way.rate = Some(rate.into());
        }
    }
    for (file, way) in [(&args.trace_up, &mut path.forward), (&args.trace_down, &mut path.backward)]
    {
        if let Some(file) = file {
            way.rate = Some(RateSource::Trace(trace(file)?));
        }
    }
    path.validate()?;
    Ok(path)
}

fn trace(file: &FilePath) -> Result<Trace, Problem> {
    let text = study::Options::none().text_of(file, "trace")?;
    Trace::parse(&text).while_doing(|| file.display())
}

/// A link by the names that `wiretax handshake` and `wiretax page` have for them, or of a file.
fn named(name: &str) -> Result<Path, Problem> {
    if let Ok(path) = linkmodel::profile(name) {
        return Ok(path);
    }
    if FilePath::new(name).extension().is_some_and(|ending| ending == "toml") {
        let text = study::Options::none().text_of(FilePath::new(name), "profile")?;
        return Ok(Profile::parse(&text).while_doing(|| name)?.path);
    }
    let link = name.parse::<LinkName>().map_err(|unknown| {
        let profiles: Vec<&str> =
            linkmodel::profiles().iter().map(|profile| profile.name.as_str()).collect();
        let others = unknown.remedy().unwrap_or_default();
        let others = others.strip_prefix("write ").unwrap_or(&others).to_owned();
        let all = format!("write {}, a profile file (*.toml), {others}", profiles.join(", "));
        Problem::from(unknown).with_remedy(all)
    })?;
    link.open()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        path: PathArgs,
    }

    fn of(options: &[&str]) -> Result<Path, Problem> {
        let line = Line::try_parse_from([&["path"], options].concat()).unwrap();
        path(&line.path)
    }

    #[test]
    fn a_path_is_made_of_its_options() {
        assert_eq!(of(&[]).unwrap(), Path::default());
        let path = of(&["--rtt", "50ms", "--loss", "1%", "--rate", "20mbit"]).unwrap();
        assert_eq!(path.round_trip(), "50ms".parse().unwrap());
        assert_eq!(path.forward, path.backward);
        assert_eq!(path.forward.loss.mean(), 0.01);
        let rate: units::Rate = "20mbit".parse().unwrap();
        assert_eq!(path.forward.rate, Some(rate.into()));
        for (text, queue) in [
            ("10", Queue::Packets(10)),
            ("64kB", Queue::Bytes(Bytes(64_000))),
            ("codel", Queue::Codel(Codel::default())),
            ("unlimited", Queue::Unlimited),
        ] {
            assert_eq!(of(&["--queue", text]).unwrap().backward.queue, queue, "{text}");
        }
        assert!("much".parse::<QueueArg>().is_err());
    }

    #[test]
    fn the_way_down_comes_first() {
        let rate = |text: &str| Some(text.parse::<units::Rate>().unwrap().into());
        for (options, down, up) in [
            (&["--rate", "20mbit/5mbit"][..], "20mbit", "5mbit"),
            (&["--rate", "20mbit/ip/5mbit/ip"], "20mbit/ip", "5mbit/ip"),
            (&["--rate", "20mbit/5mbit/wire"], "20mbit", "5mbit/wire"),
            (&["--rate", "20mbit/ip"], "20mbit/ip", "20mbit/ip"),
            (&["--down", "20mbit", "--up", "5mbit"], "20mbit", "5mbit"),
            (&["--rate", "20mbit", "--up", "1mbit/ip"], "20mbit", "1mbit/ip"),
            (&["--rate", "20mbit/5mbit", "--down", "9mbit"], "9mbit", "5mbit"),
        ] {
            let path = of(options).unwrap();
            assert_eq!(
                (path.backward.rate, path.forward.rate),
                (rate(down), rate(up)),
                "{options:?}"
            );
        }
        let lte = of(&["--link", "lte", "--up", "1mbit"]).unwrap();
        assert_eq!(lte.forward.rate, rate("1mbit"));
        assert_eq!(lte.backward.rate, linkmodel::profile("lte").unwrap().backward.rate);
        let path = of(&["--loss", "2%/0.5%", "--queue", "64kB/10"]).unwrap();
        assert_eq!((path.backward.loss.mean(), path.forward.loss.mean()), (0.02, 0.005));
        assert_eq!(path.backward.queue, Queue::Bytes(Bytes(64_000)));
        assert_eq!(path.forward.queue, Queue::Packets(10));
    }

    #[test]
    fn the_half_that_is_wrong_says_why() {
        for (text, why) in [
            ("20mbit/5", "no unit"),
            ("20/5mbit", "no unit"),
            ("20mbit/tcp", "/eth, /ip or /wire"),
            ("20mbit/5mbit/1mbit", "20mbit/5mbit/1mbit"),
            ("/", "/eth, /ip or /wire"),
        ] {
            let error = text.parse::<PerWay<units::Rate>>().unwrap_err().to_string();
            assert!(error.contains(why) || text.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_named_link_is_changed_by_the_other_options() {
        let lte = linkmodel::profile("lte").unwrap();
        assert_eq!(of(&["--link", "lte"]).unwrap(), lte);
        let near = of(&["--link", "lte", "--rtt", "10ms"]).unwrap();
        assert_eq!(near.round_trip(), "10ms".parse().unwrap());
        assert_eq!(near.forward.rate, lte.forward.rate);
        assert_eq!(of(&["--link", "3g-0.9"]).unwrap().round_trip(), "300ms".parse().unwrap());
        let problem = of(&["--link", "5g"]).unwrap_err();
        let remedy = problem.remedy().unwrap();
        assert!(remedy.contains("lte") && remedy.contains("3g-0.9"), "{remedy}");
        assert_eq!(problem.fault(), Fault::Caller);
    }
}
