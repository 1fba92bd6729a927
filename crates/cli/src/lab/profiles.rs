//! The named links of `wiretax lab`, and the format of a profile file.

/// A profile with a comment on each field. A test reads it.
const EXAMPLE: &str = r#"name = "office"                     # texts are optional, as is everything else
description = "A DSL line with a short queue."

[forward]                           # from the client to the server: up
delay = "12ms"                      # one way
jitter = { uniform = "2ms" }        # or { normal = "2ms" }, { pareto = "2ms" },
                                    # { table = ["0", "0", "8ms"] }
rate = "5mbit/ip"                   # of IP packets; 5mbit: Ethernet frames;
                                    # 5mbit/wire: with preamble and gap;
                                    # { trace = [1, 5, 12] }: ms of 1504 bytes
queue = { packets = 100 }           # or { bytes = "64kB" }, { codel = {} },
                                    # "unlimited"
loss = "0.1%"                       # { burst = { loss = "1%", length = 4 } }
reorder = "0.5%"                    # or { probability = "1%", delay = "2ms" }
duplicate = "0.01%"
corrupt = "0.001%"

[backward]                          # from the server to the client: down
delay = "12ms"
rate = "20mbit/ip"
outages = [{ start = "5s", duration = "200ms", every = "30s", frames = "drop" }]
"#;

/// Returns the text of `--profiles`.
pub fn text() -> String {
    let mut text = "Named links (--link NAME):\n".to_owned();
    for profile in linkmodel::profiles() {
        let path = &profile.path;
        let rate = |link: &linkmodel::LinkConfig| match &link.rate {
            None => "no limit".to_owned(),
            Some(linkmodel::RateSource::Fixed(rate)) => rate.to_string(),
            Some(linkmodel::RateSource::Trace(_)) => "a trace".to_owned(),
        };
        text += &format!(
            "  {:<10} {:>6} RTT, {:>11} down, {:>11} up\n             {}\n",
            profile.name,
            path.round_trip().to_string(),
            rate(&path.backward),
            rate(&path.forward),
            profile.description,
        );
    }
    text += "Those of `wiretax page` are known too: 3g-0.9, bus and others.\n\n\
             A profile of your own is a TOML file (--link office.toml); options change it:\n\n";
    for line in EXAMPLE.lines() {
        text += &format!("{}\n", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_a_profile_and_all_fits_a_terminal() {
        let profile = linkmodel::Profile::parse(EXAMPLE).unwrap();
        assert_eq!(profile.path.round_trip().to_string(), "24ms");
        assert_eq!(profile.path.backward.outages.len(), 1);
        let text = text();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for known in linkmodel::profiles() {
            assert!(text.contains(&format!("  {} ", known.name)), "{text}");
        }
    }

    /// No field of a link is left out.
    #[test]
    fn the_example_has_every_field() {
        let whole = serde_json::to_value(linkmodel::LinkConfig::default()).unwrap();
        for field in whole.as_object().unwrap().keys().filter(|key| *key != "jitter_may_reorder") {
            assert!(EXAMPLE.contains(&format!("{field} = ")), "{field}");
        }
    }
}
