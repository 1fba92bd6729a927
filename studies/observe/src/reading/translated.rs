//! Handshakes that a capture has on both sides of an address translation, or of a relay that hands TLS on: the
//! second record is left out. Both sides have the same randoms, and one lies within the other: the side that is
//! nearer to the server sees the ClientHello later and the ServerHello earlier. A device that stamps copies as
//! it sees them may shift both alike, by little.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use tracker::Connection;
use units::Time;

/// Handshakes that are remembered: the last ones.
const REMEMBERED: usize = 65_536;
/// The longest time from one side to the other.
const APART: Duration = Duration::from_secs(1);

/// The longest time between copies where one does not lie within the other.
const NEAR: Duration = Duration::from_millis(2);

/// A handshake that was told.
#[derive(Debug, Clone, Copy)]
struct Told {
    hello: Time,
    answer: Time,
    /// The connection that carried it.
    number: u64,
}

impl Told {
    /// Whether both are one handshake, seen on two sides.
    fn is_one_with(&self, other: &Told) -> bool {
        let (outer, inner) = if self.hello <= other.hello { (self, other) } else { (other, self) };
        let apart = inner.hello.saturating_since(outer.hello);
        let later = inner.answer.saturating_since(outer.answer);
        let within = inner.answer <= outer.answer && apart <= APART;
        self.number != other.number && (within || apart.max(later) <= NEAR)
    }
}

/// The last handshakes by both sides' randoms, in bounded memory.
#[derive(Debug, Default)]
pub(super) struct Translated {
    told: HashMap<u64, Told>,
    order: VecDeque<u64>,
    /// Connections that were left out, whose ending is still to come.
    left_out: HashSet<u64>,
}

impl Translated {
    /// Whether another connection has carried this handshake before.
    pub(super) fn is_told(&mut self, connection: &Connection) -> bool {
        let tls = connection.tls.as_ref();
        let known = tls.and_then(|tls| Some((tls.identity?, tls.client_hello?, tls.server_hello?)));
        let Some((identity, hello, answer)) = known else { return false };
        let one = Told { hello, answer, number: connection.number };
        if self.told.get(&identity).is_some_and(|told| told.is_one_with(&one)) {
            if connection.goes_on {
                self.left_out.insert(one.number);
            }
            return true;
        }
        if self.told.insert(identity, one).is_none() {
            self.order.push_back(identity);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.told.remove(&oldest);
        }
        false
    }

    /// Whether an ending is of a connection that was left out.
    pub(super) fn is_left_out(&mut self, number: u64) -> bool {
        self.left_out.remove(&number)
    }
}

#[cfg(test)]
mod tests {
    use tls::Version;

    use super::*;
    use crate::replay::{Pair, Replay, Setting};

    /// Connections with the same handshake, at these milliseconds and round trips in microseconds.
    fn same(times: &[(u64, u64)]) -> Vec<Connection> {
        let flights = Pair::new(&Setting::of(Version::Tls13)).talk(None).0;
        let mut replay = Replay::new();
        for (at, round_trip) in times {
            replay.add(&flights, Time::from_millis(*at), *round_trip);
        }
        replay.finish()
    }

    #[test]
    fn the_second_side_of_a_translation_is_left_out_with_its_ending() {
        let mut translated = Translated::default();
        // 1 ms nearer to the server; replays of what was heard, at once and later.
        let mut all = same(&[(1000, 20_000), (1001, 18_000), (1002, 20_000), (1500, 20_000)]);
        all[1].goes_on = true;
        let shift = |one: &mut Connection, hello: u64, answer: u64| {
            let tls = one.tls.as_mut().unwrap();
            tls.client_hello = Some(Time::from_millis(hello));
            tls.server_hello = Some(Time::from_millis(answer));
        };
        for (one, (hello, answer)) in
            all.iter_mut().zip([(1010, 1020), (1011, 1019), (1015, 1025), (1510, 1520)])
        {
            shift(one, hello, answer);
        }
        let told: Vec<bool> = all.iter().map(|one| translated.is_told(one)).collect();
        assert_eq!(told, [false, true, false, false]);
        assert!(translated.is_left_out(all[1].number) && !translated.is_left_out(all[1].number));
        assert!(!translated.is_left_out(all[0].number));
        // Both alike, by little.
        let mut near = all.clone();
        shift(&mut near[3], 1011, 1021);
        let mut translated = Translated::default();
        let told: Vec<bool> = [0, 3].iter().map(|at| translated.is_told(&near[*at])).collect();
        assert_eq!(told, [false, true]);
        // The inner side may be told first.
        let mut translated = Translated::default();
        let told: Vec<bool> = [1, 0].iter().map(|at| translated.is_told(&all[*at])).collect();
        assert_eq!(told, [false, true]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut translated = Translated::default();
        let mut one = same(&[(1000, 20_000)]).remove(0);
        for number in 0..70_000_u64 {
            one.number = number;
            one.tls.as_mut().unwrap().identity = Some(number);
            assert!(!translated.is_told(&one));
        }
        assert_eq!((translated.told.len(), translated.order.len()), (REMEMBERED, REMEMBERED));
    }
}
