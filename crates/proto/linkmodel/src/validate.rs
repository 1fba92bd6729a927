//! Whether a configuration makes sense.

use units::Delay;

use crate::config::{Codel, DELAY_LINE_FRAMES, LinkConfig, MAX_DELAY, Outage, Queue};
use crate::error::ConfigError;
use crate::jitter::Jitter;

/// No more outages than this.
const MAX_OUTAGES: usize = 256;
/// A queue in bytes must hold one full-sized frame.
const MIN_QUEUE_BYTES: u64 = 1514;

pub(crate) fn link(config: &LinkConfig) -> Result<(), ConfigError> {
    at_most_an_hour("delay", config.delay)?;
    at_most_an_hour("reorder.delay", config.reorder.delay)?;
    jitter(&config.jitter).map_err(|error| error.inside("jitter"))?;
    queue(&config.queue).map_err(|error| error.inside("queue"))?;
    if config.outages.len() > MAX_OUTAGES {
        let problem = format!("has {} entries", config.outages.len());
        return Err(ConfigError::new(
            "outages",
            problem,
            "give at most 256, some of them repeating",
        ));
    }
    if config.outages.iter().filter(|outage| outage.every.is_some()).count() > 1 {
        let works = "let one outage repeat and give the others singly";
        return Err(ConfigError::new("outages", "has several that repeat", works));
    }
    for (at, one) in config.outages.iter().enumerate() {
        outage(one).map_err(|error| error.inside(&format!("outages[{at}]")))?;
    }
    Ok(())
}

fn at_most_an_hour(field: &str, delay: Delay) -> Result<(), ConfigError> {
    if delay.duration() <= MAX_DELAY {
        return Ok(());
    }
    Err(ConfigError::new(field, format!("is {delay}"), "give at most 60min"))
}

fn jitter(jitter: &Jitter) -> Result<(), ConfigError> {
    match jitter {
        Jitter::None | Jitter::Table(_) => Ok(()),
        Jitter::Uniform(max) => at_most_an_hour("uniform", *max),
        Jitter::Normal(normal) => {
            at_most_an_hour("normal.mean", normal.mean)?;
            at_most_an_hour("normal.deviation", normal.deviation)
        }
        Jitter::Pareto(pareto) => {
            at_most_an_hour("pareto.mean", pareto.mean)?;
            if pareto.shape > 1.0 && pareto.shape <= 1000.0 {
                return Ok(());
            }
            let problem = format!("is {}", pareto.shape);
            let works = "give more than 1 (or there is no mean) and at most 1000";
            Err(ConfigError::new("pareto.shape", problem, works))
        }
    }
}

fn queue(queue: &Queue) -> Result<(), ConfigError> {
    match queue {
        Queue::Unlimited => Ok(()),
        Queue::Packets(packets) => limit_in_packets("packets", *packets),
        Queue::Bytes(bytes) if bytes.count() < MIN_QUEUE_BYTES => {
            let works = "give 1514B or more, so that a full-sized frame fits";
            Err(ConfigError::new("bytes", format!("is {bytes}"), works))
        }
        Queue::Bytes(_) => Ok(()),
        Queue::Codel(codel) => codel_times(codel),
    }
}

fn limit_in_packets(field: &str, packets: u32) -> Result<(), ConfigError> {
    if (1..=DELAY_LINE_FRAMES).contains(&(packets as usize)) {
        return Ok(());
    }
    Err(ConfigError::new(field, format!("is {packets}"), "give 1 to 262144"))
}

fn codel_times(codel: &Codel) -> Result<(), ConfigError> {
    limit_in_packets("codel.packets", codel.packets)?;
    at_most_an_hour("codel.interval", codel.interval)?;
    if codel.target == Delay::ZERO || codel.target > codel.interval {
        let problem = format!("is {} with an interval of {}", codel.target, codel.interval);
        let works = "give more than zero and at most the interval; 5% to 10% of it is usual";
        return Err(ConfigError::new("codel.target", problem, works));
    }
    Ok(())
}

fn outage(outage: &Outage) -> Result<(), ConfigError> {
    at_most_an_hour("start", outage.start)?;
    at_most_an_hour("duration", outage.duration)?;
    if outage.duration == Delay::ZERO {
        return Err(ConfigError::new("duration", "is zero", "give how long the link is down"));
    }
    let Some(every) = outage.every else { return Ok(()) };
    at_most_an_hour("every", every)?;
    if every <= outage.duration {
        let problem = format!("is {every} with a duration of {}", outage.duration);
        return Err(ConfigError::new("every", problem, "give more than the duration"));
    }
    Ok(())
}
