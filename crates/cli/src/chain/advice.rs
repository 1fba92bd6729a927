//! What to change, so that a chain costs fewer round trips.

use units::Delay;

use super::ChainArgs;
use super::cost::Way;
use super::source::Source;

/// Round trips of a flight that fits: TCP's own and the flight's, or QUIC's one.
const LEAST_TCP: usize = 2;
const LEAST_QUIC: usize = 1;

/// What the chain's owner may do, the cheapest first; nothing if every flight comes in one round trip.
pub fn advice(source: &Source, ways: &[Way], args: &ChainArgs) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(over_tcp(ways, args));
    lines.extend(over_quic(ways, args));
    lines.extend(shorter(source));
    lines
}

fn of<'a>(ways: &'a [Way], carrier: &'a str) -> impl Iterator<Item = &'a Way> {
    ways.iter().filter(move |way| way.carrier == carrier)
}

fn over_tcp(ways: &[Way], args: &ChainArgs) -> Option<String> {
    let plain = of(ways, "tls1.3").find(|way| way.compression.is_none())?;
    let more = plain.round_trips.checked_sub(LEAST_TCP).filter(|more| *more > 0)?;
    let window = args.window();
    let need = window.window_for(plain.flight_bytes);
    let mut line = format!(
        "TLS 1.3 over TCP takes {} more, {}, since {} bytes are more than {} segments hold: an \
         initial window of {need} segments takes none (`ip route change … initcwnd {need}`)",
        round_trips(more),
        each(more, &args.rtt),
        plain.flight_bytes,
        args.initial_window,
    );
    if let Some(packed) = best(ways, "tls1.3", plain.round_trips) {
        line += &format!("; {packed} takes {} more", round_trips_short(packed, ways, LEAST_TCP));
    }
    Some(line)
}

fn over_quic(ways: &[Way], args: &ChainArgs) -> Option<String> {
    let plain = of(ways, "quic").find(|way| way.compression.is_none())?;
    let more = plain.round_trips.checked_sub(LEAST_QUIC).filter(|more| *more > 0)?;
    let mut line = format!(
        "QUIC takes {} more, {}, since {} bytes are more than three times what came from the client \
         ({} bytes, RFC 9000 §8.1)",
        round_trips(more),
        each(more, &args.rtt),
        plain.flight_bytes,
        plain.limit_bytes
    );
    line += &match best(ways, "quic", plain.round_trips) {
        Some(packed) => {
            format!(": {packed} takes {} more", round_trips_short(packed, ways, LEAST_QUIC))
        }
        None => ": only a shorter chain or smaller keys help".to_owned(),
    };
    Some(line)
}

/// The compression by which the fewest round trips are left, if it takes fewer.
fn best(ways: &[Way], carrier: &str, plain: usize) -> Option<tls::Compression> {
    let packed = of(ways, carrier).filter(|way| way.compression.is_some());
    let least = packed.min_by_key(|way| (way.round_trips, way.flight_bytes))?;
    least.compression.filter(|_| least.round_trips < plain)
}

fn round_trips_short(by: tls::Compression, ways: &[Way], least: usize) -> String {
    let carrier = if least == LEAST_QUIC { "quic" } else { "tls1.3" };
    let way = of(ways, carrier).find(|way| way.compression == Some(by));
    match way.map_or(0, |way| way.round_trips.saturating_sub(least)) {
        0 => "none".to_owned(),
        more => round_trips(more),
    }
}

fn round_trips(count: usize) -> String {
    if count == 1 { "1 round trip".to_owned() } else { format!("{count} round trips") }
}

/// What so many round trips come to at each round-trip time.
fn each(more: usize, rtts: &[Delay]) -> String {
    let cost = |rtt: &Delay| {
        let ms = rtt.duration().as_secs_f64() * 1e3;
        #[allow(clippy::cast_precision_loss)]
        let cost = ms * more as f64;
        format!("{cost:.0} ms at {rtt}")
    };
    rtts.iter().map(cost).collect::<Vec<_>>().join(", ")
}

fn shorter(source: &Source) -> Option<String> {
    let shorter = source.chain.without_roots()?;
    let bytes = source.chain.lengths().bytes() - shorter.lengths().bytes();
    Some(format!("without its root it is {bytes} bytes shorter, and verifies as before"))
}
