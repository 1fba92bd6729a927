//! Entry points for fuzzing: no input may panic, none may need more memory than the bounds say.

use std::time::Duration;

use units::{Bytes, Delay, Time};

use crate::cache::{Storage, Validator};
use crate::load::{Action, Event, Load, Outcome, PushId, Ready};
use crate::memory::{Carries, Certificate, ConnectionId, Memory};
use crate::page::{HostId, Kind, Object, ObjectId, Page};
use crate::policy::Policy;
use crate::share::Share;

/// Any bytes as a HAR file: what is read is a page that is written and read back as it is.
pub fn har(bytes: &[u8]) {
    let Ok(text) = crate::har::text(bytes) else { return };
    if let Ok(read) = crate::har::read("fuzz", &text) {
        let again = Page::from_toml(&read.page.to_toml());
        assert!(again.is_ok_and(|again| again.objects().len() == read.page.objects().len()));
    }
}

/// Any text as a `Link` field: its targets are parts of it, and lead to an object of the page or to none.
pub fn link(bytes: &[u8]) {
    let (Ok(field), Some(page)) = (std::str::from_utf8(bytes), page()) else { return };
    let targets = crate::preloads(field);
    assert!(targets.len() <= 100);
    for target in targets {
        assert!(field.contains(target));
        let object = page.resolve(page.root(), target);
        assert!(object.is_none_or(|object| page.object(object).is_some()));
    }
}

/// Any events in any order: nothing is asked for twice without a reason, no limit is broken, and the
/// load can be ended at any time.
pub fn load(bytes: &[u8]) {
    let Some((flags, mut rest)) = bytes.split_first() else { return };
    let Some(page) = page() else { return };
    let policy = Policy {
        connections: 1 + usize::from(flags >> 4),
        connections_per_host: 1 + usize::from(flags & 3),
        ..if flags & 4 == 0 { Policy::chromium() } else { Policy::firefox() }
    };
    let mut memory = Memory::new(&policy);
    // Two loads, so that what is kept is used.
    for number in 0..2 {
        let begin = Time::from_millis(1000 * number);
        let mut load = Load::new(&page, policy.clone(), memory, begin);
        let mut watch = Watch { policy: &policy, sent: vec![0; page.objects().len()] };
        let half = if number == 0 { rest.len() / 2 } else { rest.len() };
        let (now, later) = rest.split_at(half);
        rest = later;
        for (at, word) in now.chunks_exact(4).enumerate() {
            watch.actions(&mut load);
            load.handle(event(word), begin + Duration::from_micros(100 * at as u64));
        }
        watch.actions(&mut load);
        let done = load.is_done();
        let (loaded, kept) = load.finish(Time::from_millis(1000 * number + 999));
        let ended = loaded.objects.iter().all(|object| {
            object.end.is_some() == (object.outcome != Outcome::Unreached)
                && object.phases().is_none_or(|phases| {
                    let sum = [
                        phases.blocked,
                        phases.dns,
                        phases.connect,
                        phases.send,
                        phases.wait,
                        phases.receive,
                    ];
                    let sum: Duration = sum.iter().map(|phase| phase.duration()).sum();
                    let of = |point: Option<Delay>| point.unwrap_or_default().duration();
                    sum == of(object.end).saturating_sub(of(object.queued))
                })
        });
        assert!(ended, "an object has no end, or its phases do not add up to it");
        assert!(!done || loaded.objects.iter().all(|object| object.outcome != unfinished()));
        memory = kept;
    }
}

fn unfinished() -> Outcome {
    Outcome::Failed(crate::load::Failure::Unfinished)
}

/// What a load asked for until now.
struct Watch<'p> {
    policy: &'p Policy,
    sent: Vec<u32>,
}

impl Watch<'_> {
    fn actions(&mut self, load: &mut Load) {
        while let Some(action) = load.poll() {
            if let Action::Send { object, .. } = action {
                let sent = self.sent.get_mut(object.index()).expect("an object of the page");
                *sent += 1;
                assert!(*sent <= 2, "{object:?} is asked for a third time");
            }
        }
        assert!(load.open_connections() <= self.policy.connections);
    }
}

/// An event of four bytes: what, of whom, and two of size.
fn event(word: &[u8]) -> Event {
    let at = |at: usize| word.get(at).copied().unwrap_or(0);
    let (object, host) = (ObjectId(u32::from(at(1)) % 20), HostId(u32::from(at(1)) % 5));
    let connection = ConnectionId(u64::from(at(1)) % 32);
    let bytes = u64::from(at(2)) << (at(3) % 32);
    let address = [10, 0, 0, at(2) % 2].into();
    match at(0) % 16 {
        0 | 1 => Event::Resolved { host, addresses: vec![address], valid_for: None },
        2 => Event::NotResolved { host },
        3..=5 => {
            let limit = usize::from(at(3) % 8);
            let carries = if at(3) & 8 == 0 { Carries::One } else { Carries::Many { limit } };
            let names = ["*.example".to_owned()];
            let certificate = Certificate::new(names);
            let address = Some(address);
            let ready = Ready { tcp: None, carries, address, certificate, resumed: false };
            Event::Ready { connection, ready }
        }
        6 => Event::Limit { connection, limit: usize::from(at(2) % 8) },
        7 => Event::GoAway { connection },
        8 => Event::Closed { connection },
        9 => Event::Sent { object },
        10 => Event::Head {
            object,
            status: if at(2) & 1 == 0 { 200 } else { 304 },
            storage: Some(Storage {
                fresh_for: Duration::from_micros(bytes),
                validator: (at(2) & 2 == 0).then(|| Validator::Etag("a".into())),
            }),
        },
        11 => Event::Body { object, bytes },
        12 | 13 => Event::Complete { object, reusable: at(2) & 1 == 0 },
        14 => Event::Failed { object, refused: at(2) & 1 == 0 },
        _ if at(2) & 1 == 0 => Event::Uploaded { object, bytes },
        _ if at(2) & 2 == 0 => Event::Ticket { host },
        _ if at(2) & 4 == 0 => Event::Pushed {
            connection,
            push: PushId(u64::from(at(3))),
            host: format!("h{}.example", object.0 % 5).into(),
            path: format!("/{}", object.0).into(),
        },
        _ if at(2) & 8 == 0 => {
            Event::Hinted { by: object, target: format!("/{}", at(3) % 20).into() }
        }
        _ => Event::Wake,
    }
}

/// A page of twenty objects on five hosts, of which every kind holds some back.
fn page() -> Option<Page> {
    let hosts = (0..5).map(|number| format!("h{number}.example")).collect();
    let object = |at: u32| {
        let kind = *Kind::ALL.get(at as usize % Kind::ALL.len()).unwrap_or(&Kind::Image);
        let bytes = Bytes(u64::from(at) * 1000);
        let mut object = Object::new(HostId(at % 5), format!("/{at}"), kind, bytes);
        object.blocking = at % 3 == 1;
        object.upload = (at == 7).then_some(Bytes(5000));
        let delay = Delay::from(Duration::from_micros(u64::from(at % 4) * 300));
        let share = Share::new(f64::from(at % 4) / 3.0).unwrap_or(Share::ALL);
        if at == 0 { object } else { object.found_by(ObjectId((at - 1) / 4), share, delay) }
    };
    Page::new("fuzz", hosts, (0..20).map(object).collect()).ok()
}
