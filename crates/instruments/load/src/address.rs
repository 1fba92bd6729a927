//! The address of a server that has several: the first that answers (RFC 8305).

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{Control, socket};

/// The head start of an address before the next (RFC 8305 §5).
const HEAD_START: Duration = Duration::from_millis(250);
/// How often it is looked whether the run is stopped.
const LOOK: Duration = Duration::from_millis(100);

/// An address of the server that did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// The address and its port.
    pub address: String,
    /// Why it is not loaded.
    pub problem: String,
}

/// The address to load, and those that did not answer before it.
pub(crate) struct Chosen {
    pub(crate) address: SocketAddr,
    pub(crate) tried: Vec<Tried>,
}

/// Finds the address to load. Where there is one only, or none answers, it is the first.
pub(crate) fn choose(
    addresses: &[SocketAddr],
    source: Option<IpAddr>,
    limit: Duration,
    control: &Control,
) -> Option<Chosen> {
    let first = *addresses.first()?;
    if addresses.len() == 1 {
        return Some(Chosen { address: first, tried: Vec::new() });
    }
    let mut race = Race { open: Vec::new(), tried: Vec::new() };
    match race.run(&in_turns(addresses), source, limit, control) {
        Some(address) => Some(Chosen { address, tried: race.tried }),
        None => {
            race.tried.retain(|tried| tried.address != first.to_string());
            Some(Chosen { address: first, tried: race.tried })
        }
    }
}

/// The addresses by family in turns, beginning with the first's (RFC 8305 §4).
fn in_turns(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let of_first = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let (ours, others): (Vec<_>, Vec<_>) =
        addresses.iter().copied().partition(|address| address.is_ipv4() == of_first);
    let (mut ours, mut others) = (ours.into_iter(), others.into_iter());
    let mut turns = Vec::new();
    loop {
        let pair = [ours.next(), others.next()];
        if pair == [None, None] {
            return turns;
        }
        turns.extend(pair.into_iter().flatten());
    }
}

struct Race {
    open: Vec<(SocketAddr, OwnedFd)>,
    tried: Vec<Tried>,
}

impl Race {
    fn run(
        &mut self,
        addresses: &[SocketAddr],
        source: Option<IpAddr>,
        limit: Duration,
        control: &Control,
    ) -> Option<SocketAddr> {
        let began = Instant::now();
        let mut waiting = addresses.iter();
        let mut next = began;
        loop {
            let now = Instant::now();
            if now.duration_since(began) >= limit || control.is_stopped() {
                return None;
            }
            if (now >= next || self.open.is_empty())
                && let Some(address) = waiting.next()
            {
                next = now + HEAD_START;
                match socket::begin(*address, source, true) {
                    Ok(socket) => self.open.push((*address, socket)),
                    Err(errno) => self.tried.push(tried(*address, errno)),
                }
                continue;
            }
            if self.open.is_empty() {
                return None;
            }
            let left = limit.saturating_sub(now.duration_since(began));
            let mut wait = LOOK.min(left);
            if waiting.len() > 0 {
                wait = wait.min(next.saturating_duration_since(now));
            }
            if let Some(address) = self.poll(wait) {
                return Some(address);
            }
        }
    }

    /// Waits for an address that answers.
    fn poll(&mut self, wait: Duration) -> Option<SocketAddr> {
        let mut set: Vec<PollFd<'_>> =
            self.open.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::OUT)).collect();
        let wait = Timespec::try_from(wait).ok()?;
        poll(&mut set, Some(&wait)).ok().filter(|ready| *ready > 0)?;
        let ready: Vec<bool> = set.iter().map(|one| !one.revents().is_empty()).collect();
        drop(set);
        let mut still = Vec::new();
        let mut winner = None;
        for ((address, socket), ready) in self.open.drain(..).zip(ready) {
            if !ready {
                still.push((address, socket));
                continue;
            }
            match socket::pending_error(&socket) {
                None => winner = winner.or(Some(address)),
                Some(errno) => self.tried.push(tried(address, errno)),
            }
        }
        self.open = still;
        if winner.is_some() {
            // What lost the race by its head start is named, too.
            for (address, _) in self.open.drain(..) {
                let problem = "it did not answer in time".to_owned();
                self.tried.push(Tried { address: address.to_string(), problem });
            }
        }
        winner
    }
}

fn tried(address: SocketAddr, errno: Errno) -> Tried {
    let problem = Failure::of_errno(errno).kind.title().to_owned();
    Tried { address: address.to_string(), problem }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    fn localhost() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn the_first_that_answers_is_loaded() {
        let (listener, works) = localhost();
        let dead = SocketAddr::from(([127, 0, 0, 77], works.port()));
        let minute = Duration::from_secs(60);
        let choose = |all: &[SocketAddr]| choose(all, None, minute, &Control::default()).unwrap();
        let chosen = choose(&[dead, works]);
        assert_eq!(chosen.address, works);
        assert_eq!(chosen.tried.len(), 1);
        assert_eq!(chosen.tried[0].address, dead.to_string());
        assert_eq!(chosen.tried[0].problem, "connection refused");
        let chosen = choose(&[works, dead]);
        assert_eq!((chosen.address, chosen.tried.len()), (works, 0));
        // Where none answers, connections to the first say why.
        drop(listener);
        let chosen = choose(&[dead, works]);
        assert_eq!((chosen.address, chosen.tried.len()), (dead, 1));
    }

    #[test]
    fn families_take_turns() {
        let all =
            ["[::1]:1", "[::2]:1", "[::3]:1", "127.0.0.1:1"].map(|text| text.parse().unwrap());
        let turns = in_turns(&all).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(turns, ["[::1]:1", "127.0.0.1:1", "[::2]:1", "[::3]:1"]);
    }
}
