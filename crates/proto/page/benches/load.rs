//! What a load costs by itself: per object, with a network that answers at once.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use page::{
    Action, Carries, Certificate, Event, HostId, Kind, Load, Loaded, Memory, Object, ObjectId,
    Page, Policy, Ready, Share, paper,
};
use units::{Bytes, Delay, Time};

/// Events of body for each object: what a link of 1400 bytes a packet makes of 14 kB.
const BODIES: u64 = 10;

/// Loads a page; what is asked for is answered in the order of asking.
fn load(page: &Page, policy: &Policy, carries: Carries) -> Loaded {
    let mut now = 0;
    let mut load = Load::new(page, policy.clone(), Memory::new(policy), Time::ZERO);
    while !load.is_done() {
        now += 1;
        let at = Time::from_micros(now);
        match load.poll() {
            Some(Action::Resolve { host }) => {
                let addresses = vec![[10, 0, 0, 1].into()];
                load.handle(Event::Resolved { host, addresses, valid_for: None }, at);
            }
            Some(Action::Open { connection, .. }) => {
                let certificate = Certificate::default();
                let ready =
                    Ready { tcp: Some(at), carries, address: None, certificate, resumed: false };
                load.handle(Event::Ready { connection, ready }, at);
            }
            Some(Action::Send { object, .. }) => answer(&mut load, page, object, &mut now),
            Some(Action::Close { .. } | Action::Take { .. } | Action::Refuse { .. }) => {}
            None => {
                let wakeup = load.wakeup().expect("nothing is under way");
                now = now.max(wakeup.as_nanos() / 1000);
                load.handle(Event::Wake, wakeup);
            }
        }
    }
    load.finish(Time::from_micros(now)).0
}

fn answer(load: &mut Load, page: &Page, object: ObjectId, now: &mut u64) {
    let bytes = page.object(object).map_or(0, |object| object.body.count()) / BODIES;
    load.handle(Event::Sent { object }, Time::from_micros(*now));
    load.handle(Event::Head { object, status: 200, storage: None }, Time::from_micros(*now));
    for _ in 0..BODIES {
        *now += 1;
        load.handle(Event::Body { object, bytes }, Time::from_micros(*now));
    }
    load.handle(Event::Complete { object, reusable: true }, Time::from_micros(*now));
}

/// As many objects as a page may have, on 100 hosts, all found at once.
fn largest() -> Page {
    let hosts = (0..100).map(|number| format!("h{number}.example")).collect();
    let object = |at: u32| {
        let object = Object::new(HostId(at % 100), format!("/{at}"), Kind::Image, Bytes(14_000));
        if at == 0 { object } else { object.found_by(ObjectId(0), Share::ALL, Delay::ZERO) }
    };
    let objects = (0..Page::MAX_OBJECTS as u32).map(object).collect();
    Page::new("largest", hosts, objects).expect("a page")
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    group.sample_size(20);
    let named = |name| paper::page(name, 1).expect("a page of the paper");
    for page in [named("site-tech-crunch"), named("small-objects"), largest()] {
        group.throughput(Throughput::Elements(page.objects().len() as u64));
        for (protocol, carries) in [("one", Carries::One), ("many", Carries::Many { limit: 100 })] {
            let policy = Policy::chromium();
            assert!(load(&page, &policy, carries).is_complete());
            group.bench_function(format!("{}, {protocol}", page.name()), |bencher| {
                bencher.iter(|| black_box(load(&page, &policy, carries)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
