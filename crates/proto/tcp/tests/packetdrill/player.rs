//! Plays a script's events one after another.

use std::time::Duration;

use units::Time;

use super::packet::{Line, Protocol};
use super::script::{Call, Event, Point, Script, What, When};
use super::settings::Settings;
use super::verdict::{Failure, Verdict};
use super::world::{Socket, World};

/// Plays a script in virtual time.
pub fn play(text: &str) -> Verdict {
    let script = match Script::parse(text) {
        Ok(script) => script,
        Err(unreadable) => {
            return Verdict::NotApplicable { line: unreadable.line, reason: unreadable.reason };
        }
    };
    let settings = match Settings::of(&script) {
        Ok(settings) => settings,
        Err(verdict) => return verdict,
    };
    let mut player = Player { world: World::new(settings), before: Duration::ZERO, waiting: None };
    for (at, event) in script.events.iter().enumerate() {
        player.world.next_syn = next_syn(script.events.get(at..).unwrap_or(&[]));
        if let Err(failure) = player.play(event) {
            return Verdict::of(event.line, failure);
        }
    }
    match player.finish_waiting() {
        Ok(()) => Verdict::Pass(player.world.but),
        Err((line, failure)) => Verdict::of(line, failure),
    }
}

/// Payload of the next packet that is sent, if that is a SYN.
fn next_syn(events: &[Event]) -> Option<usize> {
    let segment = events.iter().find_map(|event| match &event.what {
        What::Packet { inbound: false, line: Line { protocol: Protocol::Tcp(segment), .. } } => {
            Some(segment)
        }
        _ => None,
    })?;
    segment.is_syn().then_some(segment.len)
}

struct Player {
    world: World,
    /// The time of the event before, from the script's beginning.
    before: Duration,
    /// A call that waits, and until when it may.
    waiting: Option<(usize, Call, Duration)>,
}

impl Player {
    fn time(&self, point: Point) -> Duration {
        match point {
            Point::Absolute(at) => at,
            Point::After(after) => self.before + after,
        }
    }

    fn play(&mut self, event: &Event) -> Result<(), Failure> {
        let (low, high) = match event.at {
            When::At(point) => (Some(self.time(point)), Some(self.time(point))),
            When::Between(low, high) => (Some(self.time(low)), Some(self.time(high))),
            When::Any => (None, None),
        };
        if let What::Packet { inbound: false, line } = &event.what {
            return self.expect(line, low, high, event.at);
        }
        if let Some(low) = low {
            self.pass_to(low);
            self.before = low;
        }
        match &event.what {
            What::Packet { line, .. } => self.give(line)?,
            What::Call(call) => {
                self.finish_waiting().map_err(|(_, failure)| failure)?;
                self.call(call, event)?;
            }
            What::Python(code) => self.assert(code)?,
            // Settings are taken before the first event.
            What::Shell(_) => {}
        }
        self.retry()
    }

    fn pass_to(&mut self, script: Duration) {
        let to = self.world.at(script);
        self.world.advance(to);
    }

    fn give(&mut self, line: &Line) -> Result<(), Failure> {
        refuse_line(line)?;
        match &line.protocol {
            Protocol::Tcp(segment) => {
                if segment.flags.contains('U') || segment.urgent.is_some() {
                    return Err(Failure::Unread("urgent data".into()));
                }
                self.world.give(segment)
            }
            Protocol::Icmp(icmp) => self.world.report(icmp),
        }
    }

    /// A packet that the endpoint is to send between two times.
    fn expect(
        &mut self,
        line: &Line,
        low: Option<Duration>,
        high: Option<Duration>,
        at: When,
    ) -> Result<(), Failure> {
        refuse_line(line)?;
        let Protocol::Tcp(segment) = &line.protocol else {
            return Err(Failure::Unread("ICMP messages that go out".into()));
        };
        self.retry()?;
        let tolerance = self.world.settings.tolerance;
        let last: Option<Time> = high.map(|high| self.world.at(high + tolerance));
        let Some(sent) = self.world.next_sent(last, segment.len) else {
            return Err(Failure::Wrong(format!("nothing is sent, {segment} is expected")));
        };
        let when = self.world.script_time(sent.at);
        let Some(flow) = &mut self.world.flow else { return Ok(()) };
        let notes = flow.compare(segment, &sent)?;
        self.world.but.extend(notes);
        let early = low.is_some_and(|low| when + tolerance < low);
        if early || high.is_some_and(|high| when > high + tolerance) {
            let low = low.unwrap_or_default().as_secs_f64();
            let when = when.as_secs_f64();
            return Err(Failure::Wrong(format!(
                "{segment} is sent at {when:.6} s, {low:.6} s is expected"
            )));
        }
        self.before = match (at, low) {
            (When::At(_), Some(low)) => low,
            _ => when,
        };
        self.pass_to(self.before);
        self.retry()
    }

    fn call(&mut self, call: &Call, event: &Event) -> Result<(), Failure> {
        if self.world.call(call)? {
            return Ok(());
        }
        match event.until {
            Some(until) => {
                self.waiting = Some((event.line, call.clone(), self.time(until)));
                Ok(())
            }
            None => Err(Failure::Wrong(format!("{}() would block", call.name))),
        }
    }

    /// Tries a call that waits once more.
    fn retry(&mut self) -> Result<(), Failure> {
        if let Some((_, call, _)) = &self.waiting
            && self.world.call(&call.clone())?
        {
            self.waiting = None;
        }
        Ok(())
    }

    /// A script makes one call at a time: the one before has its whole time.
    fn finish_waiting(&mut self) -> Result<(), (usize, Failure)> {
        let Some((line, call, until)) = self.waiting.clone() else { return Ok(()) };
        self.pass_to(until);
        self.retry().map_err(|failure| (line, failure))?;
        match self.waiting.take() {
            Some(_) => Err((line, Failure::Wrong(format!("{}() blocks for longer", call.name)))),
            None => Ok(()),
        }
    }

    /// Looks at `assert NAME == NUMBER` of fields of tcp_info that the endpoint has; passes over the rest.
    fn assert(&mut self, code: &str) -> Result<(), Failure> {
        for line in code.lines().flat_map(|line| line.split(';')) {
            let Some(rest) = line.trim().strip_prefix("assert ") else { continue };
            let condition = rest.split(',').next().unwrap_or(rest).trim_matches(['(', ')', ' ']);
            let words: Vec<_> = condition.split_whitespace().collect();
            let [name, operator, number] = words[..] else {
                self.world.but.insert("asserts");
                continue;
            };
            let (Some(is), Ok(number)) = (self.field(name), number.parse::<u64>()) else {
                self.world.but.insert("asserts");
                continue;
            };
            let holds = match operator {
                "==" => is == number,
                "!=" => is != number,
                ">=" => is >= number,
                "<=" => is <= number,
                ">" => is > number,
                "<" => is < number,
                _ => true,
            };
            if !holds {
                return Err(Failure::Wrong(format!(
                    "{name} is {is}, {operator} {number} is expected"
                )));
            }
        }
        Ok(())
    }

    /// A field of the last connection's tcp_info.
    fn field(&self, name: &str) -> Option<u64> {
        let is_connection =
            |it: &super::world::Descriptor| matches!(it.socket, Socket::Connection(_));
        let (fd, _) = self.world.descriptors.iter().rev().find(|(_, it)| is_connection(it))?;
        let info = self.world.info(*fd)?;
        let segment = info.segment_size as u64;
        Some(match name {
            "tcpi_snd_cwnd" => info.congestion_window / segment.max(1),
            "tcpi_snd_mss" => segment,
            "tcpi_unacked" => info.in_flight.div_ceil(segment.max(1)),
            "tcpi_total_retrans" => info.retransmissions,
            "tcpi_bytes_acked" => info.bytes_acked,
            "tcpi_bytes_received" => info.bytes_received,
            "tcpi_notsent_bytes" => info.unsent,
            _ => return None,
        })
    }
}

/// Parts of the IP header that the endpoint does not set.
fn refuse_line(line: &Line) -> Result<(), Failure> {
    match (&line.ecn, line.unread.first()) {
        (Some(ecn), _) if ecn != "noecn" => Err(Failure::Unread(format!("ECN ({ecn})"))),
        (_, Some(words)) => Err(Failure::Unread(format!("the IP header's {words}"))),
        _ => Ok(()),
    }
}
