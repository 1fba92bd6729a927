//! Whatever happens in whatever order, a load ends, and keeps to its limits.

use page::{
    Action, Carries, Certificate, Event, HostId, Kind, Load, Memory, Object, ObjectId, Outcome,
    Page, Policy, PushId, Ready, Share,
};
use proptest::prelude::*;
use units::{Bytes, Delay, Time};

use crate::net::Net;

/// A page of up to 40 objects on up to 5 hosts.
pub(crate) fn pages() -> impl Strategy<Value = Page> {
    let object =
        (0u32..5, 0usize..7, 0u64..5_000, any::<u32>(), 0u64..=100, 0u64..20, any::<bool>());
    proptest::collection::vec(object, 1..40).prop_map(|drawn| {
        let mut hosts: Vec<u32> = Vec::new();
        let mut objects: Vec<Object> = Vec::new();
        for (at, (host, kind, bytes, by, share, delay, blocking)) in drawn.into_iter().enumerate() {
            let number = hosts.iter().position(|other| *other == host).unwrap_or_else(|| {
                hosts.push(host);
                hosts.len() - 1
            });
            let (host, kind) = (HostId(number as u32), Kind::ALL[kind]);
            let mut object = Object::new(host, format!("/{at}"), kind, Bytes(bytes));
            object.blocking = blocking;
            if at > 0 {
                let after = Share::new(share as f64 / 100.0).unwrap();
                let delay = Delay::from(std::time::Duration::from_millis(delay));
                object = object.found_by(ObjectId(by % at as u32), after, delay);
            }
            objects.push(object);
        }
        let names = hosts.iter().map(|host| format!("h{host}.example")).collect();
        Page::new("drawn", names, objects).unwrap()
    })
}

fn policies() -> impl Strategy<Value = Policy> {
    (any::<bool>(), 1usize..7, 1usize..12, any::<bool>(), 0usize..3).prop_map(
        |(chromium, connections_per_host, connections, coalesce, speculative)| Policy {
            connections_per_host,
            connections,
            coalesce,
            speculative,
            ..if chromium { Policy::chromium() } else { Policy::firefox() }
        },
    )
}

/// What an action is answered by, with what is drawn: everything may fail.
fn answer(page: &Page, action: &Action, draw: u8) -> Vec<Event> {
    match *action {
        Action::Resolve { host } if draw < 8 => vec![Event::NotResolved { host }],
        Action::Resolve { host } => {
            let addresses = vec![[10, 0, 0, draw % 2].into()];
            vec![Event::Resolved { host, addresses, valid_for: None }]
        }
        Action::Open { connection, .. } if draw < 30 => vec![Event::Closed { connection }],
        Action::Open { connection, .. } => {
            let carries = match draw % 3 {
                0 => Carries::One,
                _ => Carries::Many { limit: 1 + usize::from(draw % 5) },
            };
            let certificate = Certificate::new(["*.example".to_owned()]);
            let address = Some([10, 0, 0, draw % 2].into());
            let ready = Ready { tcp: None, carries, address, certificate, resumed: false };
            vec![Event::Ready { connection, ready }]
        }
        Action::Send { connection, .. } if draw < 16 => vec![Event::Closed { connection }],
        Action::Send { object, .. } if draw < 32 => {
            vec![Event::Failed { object, refused: draw.is_multiple_of(2) }]
        }
        Action::Send { object, connection, .. } => {
            let mut events = vec![
                Event::Head { object, status: 200, storage: None },
                Event::Body { object, bytes: u64::from(draw) * 10 },
                Event::Complete { object, reusable: !draw.is_multiple_of(4) },
            ];
            if draw.is_multiple_of(8) {
                events.push(Event::GoAway { connection });
            }
            let other = ObjectId(u32::from(draw) % page.objects().len() as u32);
            let named = page.object(other).unwrap();
            if draw.is_multiple_of(3) {
                let host = page.host(named.host).unwrap().into();
                let (push, path) = (PushId(draw.into()), named.path.as_str().into());
                events.push(Event::Pushed { connection, push, host, path });
            } else if draw.is_multiple_of(5) {
                let host = page.host(named.host).unwrap();
                let target = format!("https://{host}{}", named.path).into();
                events.push(Event::Hinted { by: object, target });
            }
            events
        }
        Action::Take { object, .. } if draw < 64 => {
            vec![Event::Body { object, bytes: 7 }, Event::Failed { object, refused: false }]
        }
        Action::Take { object, .. } => vec![
            Event::Head { object, status: 200, storage: None },
            Event::Complete { object, reusable: true },
        ],
        Action::Close { .. } | Action::Refuse { .. } => Vec::new(),
    }
}

proptest! {
    #[test]
    fn a_load_ends_whatever_fails(
        page in pages(),
        policy in policies(),
        draws in proptest::collection::vec(any::<(u8, u16)>(), 1..200),
    ) {
        let mut load = Load::new(&page, policy.clone(), Memory::new(&policy), Time::ZERO);
        let mut waiting: Vec<Event> = Vec::new();
        let mut open: std::collections::BTreeMap<_, (HostId, bool)> = Default::default();
        let mut sent = vec![0; page.objects().len()];
        let mut draws = draws.into_iter().cycle();
        let mut now = Time::ZERO;
        let mut steps = 0;
        while !load.is_done() {
            steps += 1;
            prop_assert!(steps < 20_000, "the load does not end");
            while let Some(action) = load.poll() {
                let (draw, _) = draws.next().unwrap();
                match action {
                    Action::Send { object, connection, .. } => {
                        sent[object.index()] += 1;
                        prop_assert!(open.contains_key(&connection), "sent on one not open");
                    }
                    Action::Open { connection, host, .. } => {
                        open.insert(connection, (host, false));
                        let of_host = open.values().filter(|(of, _)| *of == host).count();
                        prop_assert!(of_host <= policy.connections_per_host);
                        prop_assert!(open.len() <= policy.connections);
                    }
                    Action::Close { connection } => drop(open.remove(&connection)),
                    Action::Resolve { .. } | Action::Take { .. } | Action::Refuse { .. } => {}
                }
                waiting.extend(answer(&page, &action, draw));
            }
            if load.is_done() {
                break;
            }
            if waiting.is_empty() {
                now = load.wakeup().expect("a load that is not done waits for something");
                load.handle(Event::Wake, now);
                continue;
            }
            // One of those that wait, whatever came before it.
            let (_, place) = draws.next().unwrap();
            let event = waiting.remove(usize::from(place) % waiting.len());
            if let Event::Closed { connection } = event {
                open.remove(&connection);
            }
            now += std::time::Duration::from_micros(10);
            load.handle(event, now);
        }
        let (loaded, _) = load.finish(now);
        for (timeline, sent) in loaded.objects.iter().zip(sent) {
            prop_assert_eq!(timeline.requests, sent);
            prop_assert!(sent <= 2);
            let expected = match timeline.outcome {
                Outcome::Unreached => timeline.found.is_none(),
                Outcome::Fetched => {
                    (sent >= 1 || timeline.pushed.is_some()) && timeline.end.is_some()
                }
                Outcome::Failed(_) => timeline.end.is_some(),
                Outcome::Fresh | Outcome::Validated => false,
            };
            prop_assert!(expected, "{:?}", timeline);
        }
    }

    /// On a network without failures everything is fetched exactly once, and the phases of each object
    /// add up to its time.
    #[test]
    fn everything_is_fetched_once(page in pages(), policy in policies(), many in any::<bool>()) {
        let net = Net { certificate: vec!["*.example".to_owned()], ..Net::default() };
        let net = if many { net.multiplexed() } else { net };
        let seen = net.first_visit(&page, &policy);
        prop_assert!(seen.loaded.is_complete());
        prop_assert_eq!(seen.loaded.bytes(), page.bytes());
        for timeline in &seen.loaded.objects {
            prop_assert_eq!(timeline.requests, 1);
            let phases = timeline.phases().unwrap();
            let sum = [phases.blocked, phases.dns, phases.connect, phases.send, phases.wait,
                phases.receive].iter().map(|phase| phase.duration()).sum::<std::time::Duration>();
            let (queued, end) = (timeline.queued.unwrap(), timeline.end.unwrap());
            prop_assert_eq!(sum, end.duration() - queued.duration());
            prop_assert!(phases.ssl <= phases.connect);
        }
        let again = net.first_visit(&page, &policy);
        prop_assert_eq!(again.loaded, seen.loaded, "the same twice");
    }
}
