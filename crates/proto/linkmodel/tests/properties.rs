//! What holds for every configuration and every input.

use std::time::Duration;

use linkmodel::{
    Codel, GilbertElliott, Jitter, LinkConfig, Loss, Middlebox, Normal, Outage, OutageFrames,
    Pareto, Queue, RateSource, Reorder, Trace, script,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use units::{Bytes, CountedBytes, Delay, Probability, Rate};

fn delay(max_micros: u64) -> impl Strategy<Value = Delay> {
    (0..=max_micros).prop_map(|micros| Duration::from_micros(micros).into())
}

fn probability() -> impl Strategy<Value = Probability> {
    prop_oneof![
        2 => Just(Probability::ZERO),
        1 => Just(Probability::ONE),
        3 => (0..=64u32).prop_map(|n| f64::from(n) / 64.0).prop_map(|p| Probability::new(p).unwrap()),
    ]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        delay(5_000).prop_map(Jitter::Uniform),
        (delay(5_000), delay(5_000))
            .prop_map(|(mean, deviation)| Jitter::Normal(Normal { mean, deviation })),
        (delay(5_000), 65..640u32).prop_map(|(mean, shape)| {
            Jitter::Pareto(Pareto { mean, shape: f64::from(shape) / 64.0 })
        }),
        vec(delay(9_000), 1..9)
            .prop_map(|values| Jitter::Table(linkmodel::DelayTable::new(values).unwrap())),
    ]
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        probability().prop_map(Loss::Bernoulli),
        (probability(), probability(), probability(), probability()).prop_map(
            |(to_bad, to_good, loss_good, loss_bad)| {
                Loss::GilbertElliott(GilbertElliott { to_bad, to_good, loss_good, loss_bad })
            }
        ),
    ]
}

fn rate() -> impl Strategy<Value = RateSource> {
    prop_oneof![
        (1u64..10_000_000_000).prop_map(|bits| Rate::new(bits, CountedBytes::Wire).unwrap().into()),
        (vec(0u64..60, 1..20), 0u64..60).prop_map(|(mut millis, phase)| {
            millis.sort_unstable();
            millis.push(60);
            let trace = Trace::from_millis(millis).unwrap();
            trace.begun_at(Duration::from_millis(phase)).into()
        }),
    ]
}

fn queue() -> impl Strategy<Value = Queue> {
    prop_oneof![
        (1u32..20).prop_map(Queue::Packets),
        (1514u64..9000).prop_map(|bytes| Queue::Bytes(Bytes(bytes))),
        Just(Queue::Unlimited),
        (1u64..20_000, 0u64..100_000, 1u32..50).prop_map(|(target, more, packets)| {
            let interval = Duration::from_micros(target + more).into();
            let target = Duration::from_micros(target).into();
            Queue::Codel(Codel { target, interval, packets })
        }),
    ]
}

fn outages() -> impl Strategy<Value = Vec<Outage>> {
    let frames = || prop_oneof![Just(OutageFrames::Wait), Just(OutageFrames::Drop)];
    let single = (delay(200_000), 1u64..50_000, frames()).prop_map(|(start, micros, frames)| {
        Outage { start, duration: Duration::from_micros(micros).into(), every: None, frames }
    });
    let repeating = (delay(50_000), 1u64..20_000, 1u64..20_000, frames()).prop_map(
        |(start, micros, more, frames)| Outage {
            start,
            duration: Duration::from_micros(micros).into(),
            every: Some(Duration::from_micros(micros + more).into()),
            frames,
        },
    );
    (vec(single, 0..3), option::of(repeating)).prop_map(|(mut outages, repeating)| {
        outages.extend(repeating);
        outages
    })
}

/// Any valid configuration; with `ordered`, one that lets no frame overtake another.
fn config(ordered: bool) -> impl Strategy<Value = LinkConfig> {
    let reorder = (probability(), delay(20_000))
        .prop_map(|(probability, delay)| Reorder { probability, delay });
    let middlebox = proptest::sample::select(Middlebox::ALL);
    let fates = (loss(), probability(), probability(), reorder, any::<bool>(), middlebox);
    let times = (delay(20_000), jitter(), option::of(rate()), queue(), outages());
    (fates, times).prop_map(move |(fates, (delay, jitter, rate, queue, outages))| {
        let (loss, duplicate, corrupt, reorder, may, middlebox) = fates;
        let reorder = if ordered { Reorder::default() } else { reorder };
        let jitter_may_reorder = may && !ordered;
        LinkConfig {
            delay,
            jitter,
            jitter_may_reorder,
            middlebox,
            loss,
            reorder,
            duplicate,
            corrupt,
            rate,
            queue,
            outages,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn frames_are_conserved_and_late_enough(
        configs in vec(config(false), 1..4), seed: u64, script in vec(any::<u8>(), 0..400),
    ) {
        let result = script::run(&configs, seed, &script);
        prop_assert!(result.is_ok(), "seed {seed}: {}", result.unwrap_err());
    }

    #[test]
    fn order_is_kept_unless_told_otherwise(
        configs in vec(config(true), 1..4), seed: u64, script in vec(any::<u8>(), 0..400),
    ) {
        let result = script::run(&configs, seed, &script);
        prop_assert!(result.is_ok(), "seed {seed}: {}", result.unwrap_err());
    }

    #[test]
    fn a_configuration_reads_back_from_toml_and_json(config in config(false)) {
        let text = toml::to_string(&config).unwrap();
        prop_assert_eq!(&toml::from_str::<LinkConfig>(&text).unwrap(), &config, "{}", text);
        let text = serde_json::to_string(&config).unwrap();
        prop_assert_eq!(&serde_json::from_str::<LinkConfig>(&text).unwrap(), &config, "{}", text);
    }

    #[test]
    fn no_trace_text_panics(text in "[0-9 \n\r\tx-]{0,60}") {
        if let Ok(trace) = Trace::parse(&text) {
            let lines: String = trace.millis().iter().map(|millis| format!("{millis}\n")).collect();
            prop_assert_eq!(Trace::parse(&lines), Ok(trace));
        }
    }
}
