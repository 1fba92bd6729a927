//! An application with a script: what it sends after what it has received.

use std::time::Duration;

use tcp::{CloseReason, ConnectionId, Endpoint, StreamError};
use units::Time;

/// One flight of the application's data, and what comes before it.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Bytes of the peer that must have come before.
    pub after: usize,
    /// Bytes to send.
    pub send: usize,
    /// How long the application thinks first.
    pub think: Duration,
}

/// What one side of a connection does.
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub steps: Vec<Step>,
    /// Close when the steps are done and the peer has sent this much; never if not given.
    pub close_after: Option<usize>,
    /// The application takes at most this much at a time, and then rests.
    pub slow: Option<(usize, Duration)>,
}

impl Script {
    /// Steps of (bytes of the peer before, bytes to send), without thinking; closes after them.
    pub fn new(steps: &[(usize, usize)]) -> Self {
        let steps: Vec<Step> = steps
            .iter()
            .map(|(after, send)| Step { after: *after, send: *send, think: Duration::ZERO })
            .collect();
        let close_after = steps.iter().map(|step| step.after).max();
        Script { steps, close_after, slow: None }
    }

    pub fn thinking(mut self, step: usize, think: Duration) -> Self {
        self.steps[step].think = think;
        self
    }

    pub fn closing_after(mut self, bytes: usize) -> Self {
        self.close_after = Some(bytes);
        self
    }

    pub fn open_ended(mut self) -> Self {
        self.close_after = None;
        self
    }

    pub fn slow(mut self, at_once: usize, rest: Duration) -> Self {
        self.slow = Some((at_once, rest));
        self
    }

    pub fn total(&self) -> usize {
        self.steps.iter().map(|step| step.send).sum()
    }
}

/// The byte at an offset of the stream with this salt: the first byte is the salt.
pub fn pattern(salt: u8, at: usize) -> u8 {
    let mixed = at.wrapping_mul(167).wrapping_add(at >> 7).wrapping_add(at >> 15);
    salt.wrapping_add(mixed as u8)
}

/// The bytes `from..to` of the stream with this salt.
pub fn bytes(salt: u8, from: usize, to: usize) -> Vec<u8> {
    (from..to).map(|at| pattern(salt, at)).collect()
}

/// One connection's application.
#[derive(Debug)]
pub struct Player {
    pub id: ConnectionId,
    pub salt: u8,
    /// Not known at a server until the client's first byte has said which.
    pub script: Option<Script>,
    /// Whether writing is allowed: a client waits for the SYN+ACK.
    pub open: bool,
    pub written: usize,
    target: usize,
    next_step: usize,
    due: Option<Time>,
    rest_until: Option<Time>,
    pub received: usize,
    pub peer_salt: Option<u8>,
    /// The offset of the first byte that was not the peer's.
    pub wrong: Option<usize>,
    pub shut: bool,
    /// End of the peer's stream.
    pub end: Option<Time>,
    pub closed: Option<(Time, CloseReason)>,
    pub failed: Option<StreamError>,
    pub events: Vec<(Time, &'static str)>,
    /// Bytes received by each time.
    pub arrivals: Vec<(Time, usize)>,
    /// When each step's bytes were handed to TCP.
    pub sent: Vec<Time>,
}

impl Player {
    pub fn new(id: ConnectionId, salt: u8, script: Option<Script>, open: bool) -> Self {
        Player {
            id,
            salt,
            script,
            open,
            written: 0,
            target: 0,
            next_step: 0,
            due: None,
            rest_until: None,
            received: 0,
            peer_salt: None,
            wrong: None,
            shut: false,
            end: None,
            closed: None,
            failed: None,
            events: Vec::new(),
            arrivals: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// The first `written` bytes of the first step went with the SYN.
    pub fn first_step_is_sent(&mut self, now: Time, written: usize, target: usize) {
        (self.written, self.target, self.next_step) = (written, target, 1);
        self.sent.push(now);
    }

    /// The SYN's data were withdrawn: from the start, by another script.
    pub fn start_afresh(&mut self, salt: u8, script: Script) {
        (self.written, self.target, self.next_step) = (0, 0, 0);
        self.sent.clear();
        self.salt = salt;
        self.script = Some(script);
    }

    /// When `bytes` of the peer had come.
    pub fn got(&self, bytes: usize) -> Option<Time> {
        self.arrivals.iter().find(|(_, have)| *have >= bytes).map(|(at, _)| *at)
    }

    /// When an event of this name first came.
    pub fn event(&self, name: &str) -> Option<Time> {
        self.events.iter().find(|(_, one)| *one == name).map(|(at, _)| *at)
    }

    /// Everything was sent, and acknowledged with the FIN; everything was received.
    pub fn is_complete(&self) -> bool {
        self.shut
            && self.end.is_some()
            && self.wrong.is_none()
            && matches!(self.closed, Some((_, CloseReason::Finished)))
    }

    pub fn next_timeout(&self) -> Option<Time> {
        [self.due, self.rest_until].into_iter().flatten().min()
    }

    /// Reads, then does the steps that may be done.
    pub fn drive(&mut self, now: Time, endpoint: &mut Endpoint, scripts: fn(u8) -> Script) {
        if self.closed.is_some() || self.failed.is_some() {
            (self.due, self.rest_until) = (None, None);
            return;
        }
        self.read(now, endpoint);
        if self.script.is_none() {
            self.script = self.peer_salt.map(scripts);
        }
        if !self.open {
            return;
        }
        let answered = self.take_steps(now);
        self.write(now, endpoint);
        if answered {
            endpoint.answer(now, self.id);
        }
        self.close(now, endpoint);
    }

    /// The connection is over: what is left of the peer's stream, however slow the reader.
    pub fn read_to_the_end(&mut self, now: Time, endpoint: &mut Endpoint) {
        self.rest_until = None;
        let slow = self.script.as_mut().and_then(|script| script.slow.take());
        self.read(now, endpoint);
        if let Some(script) = &mut self.script {
            script.slow = slow;
        }
    }

    fn read(&mut self, now: Time, endpoint: &mut Endpoint) {
        if self.rest_until.is_some_and(|until| until > now) || self.end.is_some() {
            return;
        }
        self.rest_until = None;
        let mut buffer = [0; 4096];
        let slow = self.script.as_ref().and_then(|script| script.slow);
        loop {
            let room = slow.map_or(buffer.len(), |(at_once, _)| at_once.min(buffer.len()));
            match endpoint.read(now, self.id, &mut buffer[..room]) {
                Ok(0) => {
                    self.end = Some(now);
                    return;
                }
                Ok(count) => {
                    self.check(&buffer[..count]);
                    self.arrivals.push((now, self.received));
                    if let Some((_, rest)) = slow {
                        self.rest_until = Some(now + rest);
                        return;
                    }
                }
                Err(StreamError::WouldBlock) => return,
                Err(error) => {
                    self.failed = Some(error);
                    return;
                }
            }
        }
    }

    fn check(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let salt = *self.peer_salt.get_or_insert(*byte);
            if *byte != pattern(salt, self.received) && self.wrong.is_none() {
                self.wrong = Some(self.received);
            }
            self.received += 1;
        }
    }

    /// Whether the application has said all that it can say now.
    fn take_steps(&mut self, now: Time) -> bool {
        let Some(script) = &self.script else { return false };
        while let Some(step) = script.steps.get(self.next_step) {
            if self.received < step.after {
                return true;
            }
            if !step.think.is_zero() {
                let due = *self.due.get_or_insert(now + step.think);
                if due > now {
                    return false;
                }
            }
            self.due = None;
            self.target += step.send;
            self.next_step += 1;
            self.sent.push(now);
        }
        true
    }

    fn write(&mut self, now: Time, endpoint: &mut Endpoint) {
        while self.written < self.target {
            let to = self.target.min(self.written + 16_384);
            let data = bytes(self.salt, self.written, to);
            match endpoint.write(now, self.id, &data) {
                Ok(0) | Err(StreamError::WouldBlock) => return,
                Ok(count) => self.written += count,
                Err(error) => {
                    self.failed = Some(error);
                    return;
                }
            }
        }
    }

    fn close(&mut self, now: Time, endpoint: &mut Endpoint) {
        let Some(script) = &self.script else {
            // A peer that closes without a word is answered likewise.
            if self.end.is_some() && !self.shut {
                self.shut = true;
                endpoint.shutdown(now, self.id);
            }
            return;
        };
        let done = self.next_step == script.steps.len() && self.written == self.target;
        let may = script.close_after.is_some_and(|bytes| self.received >= bytes);
        if done && (may || self.end.is_some()) && !self.shut {
            self.shut = true;
            endpoint.shutdown(now, self.id);
        }
    }
}
