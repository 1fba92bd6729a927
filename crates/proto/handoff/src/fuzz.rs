//! Entry points for fuzzing.

use crate::{Direction, Outage, Run, Scenario, Timeline};

/// Any text as a scenario: what reads can be, and is written and read back as it is.
///
/// # Panics
/// What was read cannot be, or reads differently once written.
pub fn scenario(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(scenario) = Scenario::parse(text) else { return };
    assert_eq!(scenario.check(), Ok(()));
    let written = toml::to_string(&scenario).map(|text| Scenario::parse(&text));
    assert_eq!(written.ok().and_then(Result::ok), Some(scenario));
}

/// Any JSON as a run: its phases fill the outage.
///
/// # Panics
/// They do not.
pub fn timeline(bytes: &[u8]) {
    let Ok(run) = serde_json::from_slice::<Run>(bytes) else { return };
    for direction in Direction::ALL {
        let outage = Outage::of(&run, *direction);
        assert!(outage.lost <= run.stream(*direction).sent);
        let Some(timeline) = Timeline::of(&run, *direction) else { continue };
        let mut now = timeline.from;
        for span in &timeline.spans {
            assert!(span.from == now && span.to > now);
            now = span.to;
        }
        assert_eq!(now, timeline.to);
        assert!(timeline.explained() <= timeline.duration());
    }
}
