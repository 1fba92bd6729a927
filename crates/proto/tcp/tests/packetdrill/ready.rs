//! poll() and epoll of scripts.

use tcp::State;

use super::calls::Outcome;
use super::script::{Call, parse_number};
use super::verdict::Failure;
use super::world::{Descriptor, Socket, World};

impl World {
    /// `[{fd=3, events=POLLIN, revents=POLLIN}, ...]`
    pub fn poll(&mut self, list: &str, call: &Call) -> Result<Outcome, Failure> {
        let mut ready = 0;
        for item in list.trim_matches(['[', ']']).split('}') {
            let field = |name: &str| {
                let (_, rest) = item.split_once(name)?;
                Some(rest.split([',', '}']).next().unwrap_or(rest).trim().to_owned())
            };
            let (Some(fd), Some(wanted), Some(expected)) =
                (field("fd="), field(" events="), field("revents="))
            else {
                continue;
            };
            let is = self.readiness(parse_number(&fd).unwrap_or(-1), &wanted);
            if is.is_empty() && call.result.is_some_and(|result| result > 0) {
                return Ok(Err("EAGAIN"));
            }
            let set = |text: &str| {
                let mut names: Vec<_> = text.split('|').map(|it| it.trim().to_owned()).collect();
                names.retain(|name| !name.is_empty() && name != "0");
                names.sort();
                names
            };
            if set(&is) != set(&expected) {
                return Err(Failure::Wrong(format!("poll() finds {is}, {expected} is expected")));
            }
            ready += i64::from(!is.is_empty());
        }
        Ok(Ok(ready))
    }

    pub fn watch(&mut self, fd: i64, command: &str, watched: i64, event: &str) -> Outcome {
        let Some(Descriptor { socket: Socket::Poll(list), .. }) = self.descriptors.get_mut(&fd)
        else {
            return Err("EBADF");
        };
        let events = event.split_once("events=").map_or("", |(_, rest)| rest);
        let events = events.split([',', '}']).next().unwrap_or("").replace("EPOLL", "POLL");
        match command {
            "EPOLL_CTL_DEL" => drop(list.remove(&watched)),
            _ => drop(list.insert(watched, events)),
        }
        Ok(0)
    }

    /// `{events=EPOLLOUT, fd=4}`
    pub fn wait(&mut self, fd: i64, expected: &str, call: &Call) -> Result<Outcome, Failure> {
        let Some(Descriptor { socket: Socket::Poll(list), .. }) = self.descriptors.get(&fd) else {
            return Ok(Err("EBADF"));
        };
        if list.values().any(|events| events.contains("POLLET") || events.contains("ONESHOT")) {
            return Err(Failure::Unread("edge-triggered epoll".into()));
        }
        let list = list.clone();
        let mut ready = Vec::new();
        for (watched, events) in &list {
            let is = self.readiness(*watched, events);
            if !is.is_empty() {
                ready.push(is.replace("POLL", "EPOLL"));
            }
        }
        if ready.is_empty() && call.result.is_some_and(|result| result > 0) {
            return Ok(Err("EAGAIN"));
        }
        let missing = |is: &String| is.split('|').any(|name| !expected.contains(name));
        if let Some(is) = ready.iter().find(|is| missing(is)) {
            return Err(Failure::Wrong(format!("epoll_wait() finds {is}, {expected} is expected")));
        }
        Ok(Ok(ready.len() as i64))
    }

    /// The events of `wanted`, and errors, that a descriptor has.
    fn readiness(&self, fd: i64, wanted: &str) -> String {
        let Some(descriptor) = self.descriptors.get(&fd) else { return "POLLNVAL".into() };
        let mut events = Vec::new();
        let wants = |name: &str| wanted.split('|').any(|it| it.trim() == name);
        let Some(info) = self.info(fd) else {
            return if matches!(descriptor.socket, Socket::Fresh) {
                "POLLHUP|POLLOUT".into()
            } else {
                String::new()
            };
        };
        let over = matches!(info.state, State::Closed | State::TimeWait);
        let peer_is_done =
            over || matches!(info.state, State::CloseWait | State::LastAck | State::Closing);
        if wants("POLLIN") && (peer_is_done || self.readable(fd) > 0) {
            events.push("POLLIN");
        }
        let opening = matches!(info.state, State::SynSent | State::SynReceived);
        if wants("POLLOUT") && (over || !opening && self.room(fd)) {
            events.push("POLLOUT");
        }
        if over && self.error(fd).is_some() && !descriptor.told {
            events.push("POLLERR");
        }
        if over {
            events.push("POLLHUP");
        }
        if wants("POLLRDHUP") && peer_is_done {
            events.push("POLLRDHUP");
        }
        events.join("|")
    }
}
