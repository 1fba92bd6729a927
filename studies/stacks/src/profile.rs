//! What is kept of where a handshake's instructions went: the largest functions, and a flame graph.

use serde::{Deserialize, Serialize};
use tls_drivers::hosts::{Counted, Graph, SERVER_TURNS};

use record::Sample;

use crate::purpose::{OTHER, Purpose, VALUES, by_purpose, shares};
use crate::sample::{label, printable, put};

/// Functions that are kept of a measurement; what the others execute is a sum.
const TOP: usize = 20;
/// A frame below this share of all instructions is not kept.
const LEAST: f64 = 0.01;
/// Frames that are kept at most.
const FRAMES: usize = 200;
/// Characters of a function's name that are kept: those of C++ and Rust can be as long as a page.
const NAME: usize = 80;

/// Where the server's instructions went, a handshake.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The functions that execute most themselves, the most first.
    pub top: Vec<Share>,
    /// What all others execute, and how many they are.
    pub rest: (f64, usize),
    /// The frames of a flame graph: each followed by those that it calls.
    pub flame: Vec<FrameOf>,
}

/// A function and what it executes itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Share(
    /// The function's name.
    pub String,
    /// What it is for, mostly: a [`Purpose`], or `other`.
    pub String,
    /// Instructions per handshake.
    pub f64,
);

/// A frame of a flame graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameOf(
    /// Callers above it.
    pub usize,
    /// The function's name.
    pub String,
    /// What it is for, mostly.
    pub String,
    /// Instructions per handshake, with those of what it calls.
    pub f64,
);

impl Profile {
    /// Of a side's graph, from the function `root` down.
    #[must_use]
    pub fn of(graph: &Graph, root: &str) -> Profile {
        let shares = shares(graph);
        let purpose = |function: usize| {
            let own = shares.get(function).into_iter().flatten().enumerate();
            let most = own.max_by(|a, b| a.1.total_cmp(b.1)).map_or(usize::MAX, |(at, _)| at);
            Purpose::ALL.get(most).map_or(OTHER, |purpose| purpose.name()).to_owned()
        };
        let name = |function: usize| {
            let symbol = graph.functions.get(function).map_or("", |one| one.symbol.as_str());
            shortened(&printable(symbol))
        };
        let mut order: Vec<usize> = (0..graph.functions.len()).collect();
        let own = |at: usize| graph.functions.get(at).map_or(0.0, |one| one.instructions);
        order.sort_by(|a, b| own(*b).total_cmp(&own(*a)));
        let (top, others) = order.split_at(order.len().min(TOP));
        let frames = graph.flame(root, LEAST).into_iter().take(FRAMES);
        Profile {
            top: top.iter().map(|&at| Share(name(at), purpose(at), own(at).round())).collect(),
            rest: (others.iter().map(|&at| own(at)).sum::<f64>().round(), others.len()),
            flame: frames
                .map(|frame| {
                    let at = frame.function;
                    FrameOf(frame.depth, name(at), purpose(at), frame.instructions.round())
                })
                .collect(),
        }
    }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME {
        return name.to_owned();
    }
    name.chars().take(NAME).chain(['…']).collect()
}

/// Puts what graphs say into a sample; a host without graphs says nothing.
pub(crate) fn profiles(sample: &mut Sample, counted: &Counted) {
    if counted.server_graph.functions.is_empty() {
        return;
    }
    let (server, client) = (by_purpose(&counted.server_graph), by_purpose(&counted.client_graph));
    for (at, (of_server, of_client)) in VALUES.into_iter().enumerate() {
        put(sample, [(of_server, server.get(at).copied()), (of_client, client.get(at).copied())]);
    }
    let profile = Profile::of(&counted.server_graph, SERVER_TURNS);
    if let Ok(text) = serde_json::to_string(&profile) {
        sample.labels.insert(label::PROFILE.to_owned(), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tls_drivers::hosts::{Call, Function};

    fn graph(functions: usize) -> Graph {
        let function = |at: usize| Function {
            object: "a.so".to_owned(),
            symbol: if at == 0 { SERVER_TURNS.to_owned() } else { format!("bn_{at}") },
            instructions: 10.0 * at as f64,
        };
        let call = |at: usize| Call { caller: 0, callee: at, instructions: 10.0 * at as f64 };
        Graph {
            functions: (0..functions).map(function).collect(),
            calls: (1..functions).map(call).collect(),
        }
    }

    #[test]
    fn the_largest_are_kept_and_the_rest_is_a_sum() {
        let profile = Profile::of(&graph(31), SERVER_TURNS);
        assert_eq!(profile.top.len(), TOP);
        assert_eq!(profile.top[0], Share("bn_30".to_owned(), "public key".to_owned(), 300.0));
        let rest: f64 = (0..=10).map(|at| 10.0 * f64::from(at)).sum();
        assert_eq!(profile.rest, (rest, 11));
        let all: f64 = profile.top.iter().map(|one| one.2).sum::<f64>() + profile.rest.0;
        assert_eq!(all, graph(31).total());
        assert_eq!(profile.flame[0], FrameOf(0, SERVER_TURNS.to_owned(), OTHER.to_owned(), 4650.0));
        assert!(profile.flame[1..].iter().all(|frame| frame.0 == 1 && frame.3 > 46.5));
    }

    #[test]
    fn a_profile_reads_back_and_is_bounded() {
        let profile = Profile::of(&graph(2000), SERVER_TURNS);
        let text = serde_json::to_string(&profile).unwrap();
        assert!(text.len() < 20_000, "{}", text.len());
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
        assert_eq!(Profile::of(&Graph::default(), SERVER_TURNS), Profile::default());
        assert_eq!(shortened(&"x".repeat(200)).chars().count(), NAME + 1);
    }
}
