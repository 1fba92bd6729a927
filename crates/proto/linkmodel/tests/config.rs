//! What configuration files may say, and what they are told when they say something else.

use linkmodel::{LinkConfig, Loss, Path, Queue, RateSource};

fn link(toml: &str) -> LinkConfig {
    toml::from_str(toml).unwrap_or_else(|error| panic!("{toml}: {error}"))
}

#[test]
fn every_form_is_understood() {
    for form in [
        "",
        "delay = \"20ms\"",
        "jitter = \"none\"",
        "jitter = { uniform = \"2ms\" }",
        "jitter = { normal = \"2ms\" }",
        "jitter = { normal = { mean = \"6ms\", deviation = \"2ms\" } }",
        "jitter = { pareto = \"2ms\" }",
        "jitter = { pareto = { mean = \"2ms\", shape = 2.5 } }",
        "jitter = { table = [\"0.1ms\", \"3ms\"] }",
        "jitter_may_reorder = true",
        "loss = \"1%\"",
        "loss = { gilbert_elliott = { to_bad = \"1%\", to_good = \"30%\" } }",
        "loss = { gilbert_elliott = { to_bad = \"1%\", to_good = \"30%\", loss_good = \"0.1%\", loss_bad = \"70%\" } }",
        "loss = { burst = { loss = \"1%\", length = 4 } }",
        "reorder = \"1%\"",
        "reorder = { probability = \"1%\", delay = \"2ms\" }",
        "duplicate = \"0.1%\"\ncorrupt = \"0.01%\"",
        "rate = \"10mbit/ip\"",
        "rate = { trace = [1, 5, 5, 12] }",
        "queue = { packets = 1000 }",
        "queue = { bytes = \"64kB\" }",
        "queue = \"unlimited\"",
        "queue = { codel = {} }",
        "queue = { codel = { target = \"5ms\", interval = \"100ms\", packets = 1000 } }",
        "outages = [{ start = \"1s\", duration = \"100ms\" }]",
        "outages = [{ start = \"1s\", duration = \"100ms\", every = \"10s\", frames = \"drop\" }]",
    ] {
        let read = link(form);
        assert_eq!(read.validate(), Ok(()), "{form}");
        assert_eq!(link(&toml::to_string(&read).unwrap()), read, "{form}");
    }
}

#[test]
fn forms_mean_what_they_say() {
    assert_eq!(link("loss = \"1%\"").loss.mean(), 0.01);
    let burst = link("loss = { burst = { loss = \"1%\", length = 4 } }").loss;
    assert!(matches!(burst, Loss::GilbertElliott(chain) if chain.to_good.value() == 0.25));
    assert!(matches!(link("rate = { trace = [3] }").rate, Some(RateSource::Trace(_))));
    assert_eq!(link("").queue, Queue::Packets(1000));
    let path: Path =
        toml::from_str("[forward]\ndelay = \"1ms\"\n[backward]\ndelay = \"2ms\"").unwrap();
    assert_eq!(path.round_trip().to_string(), "3ms");
}

#[test]
fn wrong_forms_are_told_what_works() {
    for (form, part) in [
        ("dealy = \"20ms\"", "unknown field `dealy`"),
        ("delay = \"20\"", "0.4ms"),
        ("loss = \"fast\"", "1%"),
        ("loss = 0.01", "a probability such as"),
        ("loss = { burst = { loss = \"90%\", length = 2 } }", "longer bursts"),
        ("loss = { markov = {} }", "gilbert_elliott"),
        ("jitter = { normal = 2 }", "a deviation such as"),
        ("jitter = { table = [] }", "1 to 1048576"),
        ("rate = \"10mbps\"", "kbit, mbit"),
        ("rate = { trace = [] }", "empty"),
        ("rate = { trace = [5, 3] }", "sort the trace"),
        ("rate = { trace = [0, 0] }", "no period"),
        ("queue = { codel = { targets = \"5ms\" } }", "unknown field `targets`"),
        ("reorder = { probability = \"1%\", by = \"2ms\" }", "unknown field `by`"),
    ] {
        let message = toml::from_str::<LinkConfig>(form).unwrap_err().to_string();
        assert!(message.contains(part), "{form}: {message}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    for (form, field) in [
        ("delay = \"61min\"", "delay"),
        ("reorder = { probability = \"1%\", delay = \"2000min\" }", "reorder.delay"),
        ("jitter = { uniform = \"3601s\" }", "jitter.uniform"),
        ("jitter = { normal = { mean = \"61min\", deviation = \"0\" } }", "jitter.normal.mean"),
        ("jitter = { pareto = { mean = \"1ms\", shape = 1.0 } }", "jitter.pareto.shape"),
        ("jitter = { pareto = { mean = \"1ms\", shape = nan } }", "jitter.pareto.shape"),
        ("queue = { packets = 0 }", "queue.packets"),
        ("queue = { packets = 262145 }", "queue.packets"),
        ("queue = { bytes = \"1513B\" }", "queue.bytes"),
        ("queue = { codel = { target = \"0\" } }", "queue.codel.target"),
        ("queue = { codel = { target = \"101ms\" } }", "queue.codel.target"),
        ("outages = [{ start = \"0\", duration = \"0\" }]", "outages[0].duration"),
        (
            "outages = [{ start = \"0\", duration = \"2s\" }, { start = \"0\", duration = \"2s\", every = \"2s\" }]",
            "outages[1].every",
        ),
        (
            "outages = [{ start = \"0\", duration = \"1s\", every = \"2s\" }, { start = \"0\", duration = \"1s\", every = \"3s\" }]",
            "outages",
        ),
    ] {
        let path = Path { forward: LinkConfig::default(), backward: link(form) };
        let error = path.validate().unwrap_err();
        assert_eq!(error.field, format!("backward.{field}"), "{error}");
        assert!(path.open::<Vec<u8>>(units::Time::ZERO, 1).is_err());
    }
}
