//! Pages made with given counts, by the rule that [`super::paper`] states.

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, LogNormal};
use rand_pcg::Pcg64Mcg;
use units::{Bytes, Delay};

use crate::error::PageError;
use crate::page::{Caching, HostId, Kind, Object, ObjectId, Page};
use crate::share::Share;

/// A kind of object in the average page: requests and kilobytes in all (rule 1).
const KINDS: [(Kind, u32, u32); 5] = [
    (Kind::Image, 55, 812),
    (Kind::Script, 15, 216),
    (Kind::Document, 10, 52),
    (Kind::Style, 5, 36),
    (Kind::Other, 5, 195),
];

/// The smallest body, in bytes: a transparent GIF's.
const SMALLEST: u64 = 43;

/// What a page is to have.
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    pub(super) objects: usize,
    pub(super) hosts: usize,
    pub(super) bytes: u64,
}

/// A page by the rule. The same seed makes the same page.
pub(super) fn page(wanted: &Wanted<'_>, seed: u64) -> Result<Page, PageError> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let kinds = kinds(wanted.objects, &mut random);
    let sizes = sizes(&kinds, wanted.bytes, &mut random);
    let hosts = hosts(kinds.len(), wanted.hosts, &mut random);
    let mut objects: Vec<Object> = Vec::new();
    for (at, ((kind, size), host)) in kinds.iter().zip(&sizes).zip(&hosts).enumerate() {
        let mut object = Object::new(*host, path(at, *kind), *kind, Bytes(*size));
        object.caching = caching(*kind, &mut random);
        object.request_extra = Bytes(if host.0 == 0 { 400 } else { 100 });
        if at > 0 {
            discover(at, &kinds, &mut object, &mut random);
        }
        objects.push(object);
    }
    let domain = wanted.name;
    let name = |number: usize| match number {
        0 => format!("www.{domain}.example"),
        _ => format!("h{number}.{domain}.example"),
    };
    Page::new(wanted.name, (0..wanted.hosts).map(name).collect(), objects)
}

/// Rule 1. The document first, then a style, an image, a script; the rest in a drawn order.
fn kinds(count: usize, random: &mut Pcg64Mcg) -> Vec<Kind> {
    let others = count.saturating_sub(1);
    let requests: u32 = KINDS.iter().map(|(_, requests, _)| requests).sum();
    let shares = KINDS.map(|(_, of_kind, _)| f64::from(of_kind) / f64::from(requests));
    let counts = apportion(others as u64, &shares);
    let mut rest: Vec<Kind> = Vec::new();
    for ((kind, _, _), count) in KINDS.iter().zip(&counts) {
        for number in 0..*count {
            // Every second of the others is a font: our choice.
            let font = *kind == Kind::Other && number % 2 == 0;
            rest.push(if font { Kind::Font } else { *kind });
        }
    }
    let mut kinds = vec![Kind::Document];
    for first in [Kind::Style, Kind::Image, Kind::Script] {
        // What rounding left out takes an image's place. An image takes any: a style sheet tells of no script.
        let at = rest.iter().position(|kind| *kind == first);
        let at = at.or_else(|| rest.iter().position(|kind| *kind == Kind::Image));
        let any = (first == Kind::Image && !rest.is_empty()).then_some(0);
        let at = at.or(any);
        if let Some(at) = at {
            rest.swap_remove(at);
            kinds.push(first);
        }
    }
    while !rest.is_empty() {
        let at = random.random_range(0..rest.len());
        kinds.push(rest.swap_remove(at));
    }
    kinds.truncate(count);
    kinds
}

/// Rule 2: bytes of each body, which add up to `bytes`.
fn sizes(kinds: &[Kind], bytes: u64, random: &mut Pcg64Mcg) -> Vec<u64> {
    let floor = SMALLEST.min(bytes / kinds.len().max(1) as u64);
    let mut weight = |kind: &Kind| {
        let listed = if *kind == Kind::Font { Kind::Other } else { *kind };
        let of_kind = KINDS.iter().find(|(kind, _, _)| *kind == listed);
        let mean = of_kind.map_or(10.0, |(_, requests, kb)| f64::from(*kb) / f64::from(*requests));
        // Mean 1: the logarithm's mean is less than 0 by half its variance.
        let shape = LogNormal::new(-0.5, 1.0).map_or(1.0, |shape| shape.sample(random));
        mean * shape
    };
    let weights: Vec<f64> = kinds.iter().map(&mut weight).collect();
    let sum: f64 = weights.iter().sum();
    let shares: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
    let left = bytes - floor * kinds.len() as u64;
    apportion(left, &shares).into_iter().map(|size| size + floor).collect()
}

/// `total` divided by these shares, which add up to 1, into whole numbers: the largest remainders are
/// rounded up, so that nothing is lost.
fn apportion(total: u64, shares: &[f64]) -> Vec<u64> {
    let exact: Vec<f64> = shares.iter().map(|share| share * total as f64).collect();
    let mut parts: Vec<u64> = exact.iter().map(|exact| exact.floor() as u64).collect();
    let mut by_rest: Vec<usize> = (0..parts.len()).collect();
    let rest = |at: &usize| exact.get(*at).map_or(0.0, |exact| exact.fract());
    by_rest.sort_by(|a, b| rest(b).total_cmp(&rest(a)).then(a.cmp(b)));
    let mut missing = total.saturating_sub(parts.iter().sum());
    for at in by_rest.into_iter().cycle() {
        if missing == 0 {
            break;
        }
        if let Some(part) = parts.get_mut(at) {
            *part += 1;
            missing -= 1;
        }
    }
    parts
}

/// Rule 3: the host of each object.
fn hosts(objects: usize, hosts: usize, random: &mut Pcg64Mcg) -> Vec<HostId> {
    let mut given: Vec<HostId> = (1..hosts as u32).map(HostId).collect();
    let ranks: f64 = (1..=hosts).map(|rank| 1.0 / rank as f64).sum();
    while given.len() + 1 < objects {
        let mut point = random.random::<f64>() * ranks;
        let host = (0..hosts).find(|host| {
            point -= 1.0 / (host + 1) as f64;
            point < 0.0
        });
        given.push(HostId(host.unwrap_or(0) as u32));
    }
    for at in (1..given.len()).rev() {
        given.swap(at, random.random_range(0..=at));
    }
    given.insert(0, HostId(0));
    given
}

/// Rule 4, for an object other than the document. What tells of it stands before it.
fn discover(at: usize, kinds: &[Kind], object: &mut Object, random: &mut Pcg64Mcg) {
    let before = kinds.get(..at).unwrap_or_default();
    let one_of = |kind: Kind, random: &mut Pcg64Mcg| {
        let there: Vec<usize> =
            (1..before.len()).filter(|at| before.get(*at) == Some(&kind)).collect();
        (!there.is_empty())
            .then(|| there.get(random.random_range(0..there.len())).copied())
            .flatten()
    };
    let draw: f64 = random.random();
    let by = match object.kind {
        _ if at == 1 => None,
        // The third object is found by the second.
        _ if at == 2 => Some(1),
        Kind::Document | Kind::Style => None,
        Kind::Script if draw < 0.5 => None,
        Kind::Image if draw < 0.56 => None,
        Kind::Image if draw < 0.7 => one_of(Kind::Document, random),
        Kind::Image if draw < 0.85 => one_of(Kind::Style, random),
        Kind::Font => one_of(Kind::Style, random),
        _ => one_of(Kind::Script, random),
    };
    let (after, delay) = match by.and_then(|by| before.get(by)) {
        Some(Kind::Style) => (Share::ALL, Delay::ZERO),
        Some(Kind::Script) => {
            let micros = random.random_range(5_000..25_000);
            (Share::ALL, Duration::from_micros(micros).into())
        }
        _ => {
            // Nearer to the document's begin what blocks rendering.
            let most = if matches!(object.kind, Kind::Style | Kind::Script) { 0.2 } else { 1.0 };
            (Share::new(random.random::<f64>() * most).unwrap_or_default(), Delay::ZERO)
        }
    };
    let early = by.is_none() && after <= Share::new(0.1).unwrap_or_default();
    object.blocking = early && matches!(object.kind, Kind::Style | Kind::Script);
    let by = ObjectId(by.unwrap_or(0) as u32);
    *object = object.clone().found_by(by, after, delay);
}

/// Rule 5: whether and for how long an object may be stored.
fn caching(kind: Kind, random: &mut Pcg64Mcg) -> Caching {
    let day = Delay::from(Duration::from_secs(24 * 3600));
    let draw: f64 = random.random();
    match kind {
        Kind::Document => Caching::Never,
        _ if draw < 0.75 => Caching::Stored { fresh_for: day, validator: true },
        _ if draw < 0.875 => Caching::Stored { fresh_for: Delay::ZERO, validator: true },
        _ => Caching::Never,
    }
}

fn path(at: usize, kind: Kind) -> String {
    let ending = match kind {
        Kind::Document => "html",
        Kind::Style => "css",
        Kind::Script => "js",
        Kind::Image => "png",
        Kind::Font => "woff",
        Kind::Fetch => "json",
        Kind::Other => "bin",
    };
    if at == 0 { "/".to_owned() } else { format!("/{at}.{ending}") }
}
