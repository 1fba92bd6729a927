//! The kernel's own emulator, sch_netem, as a second carrier of links.
//!
//! It is set by netlink in the layout of linux/pkt_sched.h: a `tc_netem_qopt` of six u32, then
//! attributes.

use linkmodel::{Jitter, LinkConfig, Loss, Middlebox, Path, Queue, RateSource};
use units::{CountedBytes, Probability};

use crate::link::End;
use crate::node::Node;
use crate::{Error, netlink};

/// Attribute numbers of linux/pkt_sched.h.
const TCA_NETEM_REORDER: u16 = 3;
const TCA_NETEM_CORRUPT: u16 = 4;
const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;
const TCA_NETEM_PRNG_SEED: u16 = 14;
const NETEM_LOSS_GE: u16 = 2;

/// Frames that a queue without a limit of its own may hold, delayed ones included.
const NO_LIMIT: u32 = 1 << 20;

/// Bytes of an Ethernet header, which netem counts and a rate of IP bytes does not.
const ETHERNET_HEADER: i32 = 14;

/// Sets both ends of a link: each shapes what its node sends.
pub(crate) fn apply(
    nodes: &[Node; 2],
    ends: &[End; 2],
    path: &Path,
    seed: u64,
) -> Result<(), Error> {
    let forward = options(&path.forward, linkmodel::mix(seed, 1))?;
    let backward = options(&path.backward, linkmodel::mix(seed, 2))?;
    for ((node, end), options) in nodes.iter().zip(ends).zip([forward, backward]) {
        let index = end.index;
        node.netlink(move |handle| netlink::set_root_qdisc(handle, index, "netem", options))
            .map_err(|error| match error {
                // ENOENT: the kernel knows no discipline of this name.
                Error::Netlink { source, .. } if source.raw_os_error() == Some(libc::ENOENT) => {
                    Error::NoNetem
                }
                other => other,
            })?;
    }
    Ok(())
}

/// The options of a netem discipline that does nothing: for asking whether there is one.
pub(crate) fn neutral_options() -> Vec<u8> {
    qopt(NO_LIMIT, Probability::ZERO, 0, Probability::ZERO).to_vec()
}

/// What to send the kernel for one direction of a link.
fn options(config: &LinkConfig, seed: u64) -> Result<Vec<u8>, Error> {
    let cannot = |what| Err(Error::NotNetem { what });
    let delay = nanos(config.delay);
    let (latency, jitter) = match &config.jitter {
        Jitter::None => (delay, 0),
        // netem sorts its queue by due time: a later frame may always overtake.
        _ if !config.jitter_may_reorder => return cannot("jitter that keeps the order of frames"),
        // netem draws from latency - jitter to latency + jitter.
        Jitter::Uniform(max) => (delay + nanos(*max) / 2, nanos(*max) / 2),
        _ => return cannot("jitter other than uniform"),
    };
    if jitter > i64::from(i32::MAX) {
        return cannot("jitter of more than 4 seconds");
    }
    if !config.outages.is_empty() {
        return cannot("outages");
    }
    if config.middlebox != Middlebox::None {
        return cannot("a middlebox");
    }
    let limit = match (config.queue, &config.rate) {
        (Queue::Unlimited, _) | (_, None) => NO_LIMIT,
        // netem's limit counts delayed frames too.
        (Queue::Packets(frames), Some(_)) if latency == 0 => frames,
        (Queue::Packets(_), Some(_)) => {
            return cannot(
                "a queue limit that does not count delayed frames (use an unlimited queue)",
            );
        }
        (Queue::Bytes(_), Some(_)) => return cannot("a queue limited in bytes"),
        (Queue::Codel(_), Some(_)) => return cannot("CoDel"),
    };
    let (loss, chain) = match config.loss {
        Loss::Bernoulli(loss) => (loss, None),
        Loss::GilbertElliott(chain) => (Probability::ZERO, Some(chain)),
    };
    // A gap of 1 lets every frame be drawn for reordering.
    let gap = u32::from(!config.reorder.probability.is_zero());
    let mut out = qopt(limit, loss, gap, config.duplicate).to_vec();
    attribute(&mut out, TCA_NETEM_LATENCY64, &latency.to_ne_bytes());
    attribute(&mut out, TCA_NETEM_JITTER64, &jitter.to_ne_bytes());
    if gap == 1 {
        if nanos(config.reorder.delay) != 0 {
            return cannot("a reordered frame's own delay");
        }
        attribute(&mut out, TCA_NETEM_REORDER, &correlated(config.reorder.probability));
    }
    if !config.corrupt.is_zero() {
        attribute(&mut out, TCA_NETEM_CORRUPT, &correlated(config.corrupt));
    }
    if let Some(chain) = chain {
        // p, r, h, 1-k: good to bad, bad to good, kept in the bad state, lost in the good.
        let kept_bad = Probability::new(1.0 - chain.loss_bad.value()).unwrap_or_default();
        let model = [chain.to_bad, chain.to_good, kept_bad, chain.loss_good]
            .map(scaled)
            .map(u32::to_ne_bytes)
            .concat();
        let mut nested = Vec::new();
        attribute(&mut nested, NETEM_LOSS_GE, &model);
        attribute(&mut out, TCA_NETEM_LOSS, &nested);
    }
    match &config.rate {
        None => {}
        Some(RateSource::Trace(_)) => return cannot("a capacity trace"),
        Some(RateSource::Fixed(rate)) => {
            let overhead = match rate.counted() {
                CountedBytes::Ethernet => 0,
                CountedBytes::Ip => -ETHERNET_HEADER,
                CountedBytes::Wire => return cannot("a rate that counts padding (`/wire`)"),
            };
            rate_attributes(&mut out, rate.bits_per_second().div_ceil(8), overhead);
        }
    }
    attribute(&mut out, TCA_NETEM_PRNG_SEED, &seed.to_ne_bytes());
    Ok(out)
}

/// `struct tc_netem_qopt`: latency and jitter in ticks stay zero, the 64-bit attributes replace
/// them.
fn qopt(limit: u32, loss: Probability, gap: u32, duplicate: Probability) -> [u8; 24] {
    let mut out = [0; 24];
    let fields = [0, limit, scaled(loss), gap, scaled(duplicate), 0];
    for (place, field) in out.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_ne_bytes());
    }
    out
}

/// `struct tc_netem_rate`, and the rate in 64 bits where 32 do not hold it. Bytes per second.
fn rate_attributes(out: &mut Vec<u8>, rate: u64, overhead: i32) {
    let low = u32::try_from(rate).unwrap_or(u32::MAX);
    let fields = [low, overhead.cast_unsigned(), 0, 0];
    attribute(out, TCA_NETEM_RATE, &fields.map(u32::to_ne_bytes).concat());
    if rate > u64::from(u32::MAX) {
        attribute(out, TCA_NETEM_RATE64, &rate.to_ne_bytes());
    }
}

/// A probability and a correlation of zero.
fn correlated(probability: Probability) -> [u8; 8] {
    let mut out = [0; 8];
    out[..4].copy_from_slice(&scaled(probability).to_ne_bytes());
    out
}

/// A probability as netem has it: a share of 2^32 - 1.
fn scaled(probability: Probability) -> u32 {
    (probability.value() * f64::from(u32::MAX)).round() as u32
}

fn nanos(delay: units::Delay) -> i64 {
    i64::try_from(delay.duration().as_nanos()).unwrap_or(i64::MAX / 2)
}

/// A netlink attribute: length, type, payload, padding to four bytes.
fn attribute(out: &mut Vec<u8>, kind: u16, payload: &[u8]) {
    out.extend_from_slice(&(4 + payload.len() as u16).to_ne_bytes());
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(payload);
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkmodel::{GilbertElliott, Outage};

    fn config(change: impl FnOnce(&mut LinkConfig)) -> LinkConfig {
        let mut config = LinkConfig::default();
        change(&mut config);
        config
    }

    fn hex(bytes: &[u8]) -> String {
        bytes
            .chunks(4)
            .map(|word| format!("{:08x} ", u32::from_ne_bytes(word.try_into().unwrap())))
            .collect()
    }

    // The layout of linux/pkt_sched.h, word by word.
    #[test]
    fn delay_loss_and_rate_in_the_kernels_layout() {
        let config = config(|c| {
            c.delay = "10ms".parse().unwrap();
            c.loss = "50%".parse::<Probability>().unwrap().into();
            c.rate = Some("8mbit/ip".parse::<units::Rate>().unwrap().into());
            c.queue = Queue::Unlimited;
        });
        let bytes = options(&config, 0x1122_3344_5566_7788).unwrap();
        let attribute = |kind: u32, length: u32| format!("{:08x} ", kind << 16 | length);
        let expected = [
            "00000000 00100000 80000000 00000000 00000000 00000000 ".to_owned(),
            attribute(10, 12) + "00989680 00000000 ",
            attribute(11, 12) + "00000000 00000000 ",
            attribute(6, 20) + "000f4240 fffffff2 00000000 00000000 ",
            attribute(14, 12) + "55667788 11223344 ",
        ];
        assert_eq!(hex(&bytes), expected.concat());
    }

    #[test]
    fn a_gilbert_elliott_chain_is_nested() {
        let chain = GilbertElliott {
            to_bad: Probability::ZERO,
            to_good: Probability::ONE,
            loss_good: Probability::ZERO,
            loss_bad: Probability::ONE,
        };
        let bytes = options(&config(|c| c.loss = Loss::GilbertElliott(chain)), 0).unwrap();
        let nested = hex(&bytes);
        assert!(
            nested.contains("00050018 00020014 00000000 ffffffff 00000000 00000000 "),
            "{nested}"
        );
    }

    #[test]
    fn what_netem_cannot_do_is_refused_by_name() {
        let rate = || Some("1mbit".parse::<units::Rate>().unwrap().into());
        let outage = Outage {
            start: units::Delay::ZERO,
            duration: "1s".parse().unwrap(),
            every: None,
            frames: linkmodel::OutageFrames::Wait,
        };
        let cases = [
            (config(|c| c.outages = vec![outage]), "outages"),
            (config(|c| c.middlebox = Middlebox::DropSynData), "a middlebox"),
            (config(|c| c.jitter = Jitter::Uniform("1ms".parse().unwrap())), "order"),
            (
                config(|c| {
                    c.rate = rate();
                    c.delay = "1ms".parse().unwrap();
                }),
                "delayed frames",
            ),
            (
                config(|c| {
                    c.rate = rate();
                    c.queue = Queue::Codel(linkmodel::Codel::default());
                }),
                "CoDel",
            ),
        ];
        for (config, named) in cases {
            let error = fault::Explain::in_one_text(&options(&config, 0).unwrap_err());
            assert!(error.contains(named) && error.contains("veth"), "{error}");
        }
    }
}
