//! Functions and who calls whom: where a handshake's instructions go.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

/// A function, and what it executes itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// The object's file name.
    pub object: String,
    /// Its name, without the version of a symbol and the depth of a recursion.
    pub symbol: String,
    /// Instructions per handshake, without those of what it calls.
    pub instructions: f64,
}

/// What one function has another do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// An index into [`Graph::functions`].
    pub caller: usize,
    /// An index into [`Graph::functions`], another one than `caller`.
    pub callee: usize,
    /// Instructions per handshake, those of what is called in turn among them.
    pub instructions: f64,
}

/// All functions of a handshake and their calls; a function's calls of itself are in its own instructions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// By object and symbol.
    pub functions: Vec<Function>,
    /// By caller, then by callee.
    pub calls: Vec<Call>,
}

/// A frame of a flame graph.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// Callers above it; the root has none.
    pub depth: usize,
    /// An index into [`Graph::functions`].
    pub function: usize,
    /// Instructions per handshake below this frame, its own among them.
    pub instructions: f64,
}

/// Frames below the root at most: a recursion over several functions ends here at the latest.
const DEPTH_MAX: usize = 64;
/// Frames of a flame graph at most.
const FRAMES_MAX: usize = 1 << 12;
/// How often shares are handed on from callers to called: as deep as calls nest.
const ROUNDS: usize = DEPTH_MAX;

/// The name of a file without its folder.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A symbol without the version that the C library's have, and without callgrind's `'2` for the second
/// time in a recursion.
pub(crate) fn plain(symbol: &str) -> &str {
    let symbol = symbol.split('@').next().unwrap_or(symbol);
    match symbol.rsplit_once('\'') {
        Some((name, depth)) if !name.is_empty() && depth.bytes().all(|b| b.is_ascii_digit()) => {
            name
        }
        _ => symbol,
    }
}

/// Sums over several profiles, by name.
#[derive(Debug, Default)]
pub(crate) struct Sums<'a> {
    own: BTreeMap<(&'a str, &'a str), i128>,
    calls: BTreeMap<Pair<'a>, i128>,
}

/// Caller and called, an object's file and a symbol each.
type Pair<'a> = ((&'a str, &'a str), (&'a str, &'a str));

impl<'a> Sums<'a> {
    pub(crate) fn executed(&mut self, (path, symbol): (&'a str, &'a str), times: i128) {
        *self.own.entry((file_name(path), plain(symbol))).or_default() += times;
    }

    pub(crate) fn called(
        &mut self,
        caller: (&'a str, &'a str),
        callee: (&'a str, &'a str),
        cost: i128,
    ) {
        let name = |(path, symbol)| (file_name(path), plain(symbol));
        let (caller, callee) = (name(caller), name(callee));
        if caller != callee {
            *self.calls.entry((caller, callee)).or_default() += cost;
        }
    }

    /// The sums a handshake; what the runs do not differ in is left out.
    pub(crate) fn graph(&self, handshakes: u64) -> Graph {
        let each = |sum: i128| sum as f64 / handshakes as f64;
        let calls = || self.calls.iter().filter(|(_, cost)| **cost > 0);
        let mut names: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let executed = self.own.iter().filter(|(_, times)| **times > 0).map(|(name, _)| *name);
        let of_calls = calls().flat_map(|((caller, callee), _)| [*caller, *callee]);
        for name in executed.chain(of_calls) {
            names.insert(name, 0);
        }
        for (index, at) in names.values_mut().enumerate() {
            *at = index;
        }
        let function = |&(object, symbol): &(&str, &str)| Function {
            object: object.to_owned(),
            symbol: symbol.to_owned(),
            instructions: each(self.own.get(&(object, symbol)).copied().unwrap_or(0).max(0)),
        };
        let call = |((caller, callee), cost): (&Pair<'_>, &i128)| {
            let (caller, callee) = (*names.get(caller)?, *names.get(callee)?);
            Some(Call { caller, callee, instructions: each(*cost) })
        };
        Graph {
            functions: names.keys().map(function).collect(),
            calls: calls().filter_map(call).collect(),
        }
    }
}

impl Graph {
    /// Instructions of all functions.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.functions.iter().map(|function| function.instructions).sum()
    }

    /// The frames from `root` down, each followed by those that it calls, the largest first. Frames with
    /// less than the share `least` of the root's instructions are left out.
    ///
    /// Callgrind counts who called whom, not along which path: what a function with several callers executes
    /// is divided among them as its calls are. A function that is above itself is not entered again.
    #[must_use]
    pub fn flame(&self, root: &str, least: f64) -> Vec<Frame> {
        let Some(start) = self.functions.iter().position(|function| function.symbol == root) else {
            return Vec::new();
        };
        let out = self.calls_by(|call| call.caller);
        let below = |function: usize| -> f64 {
            let own = self.functions.get(function).map_or(0.0, |one| one.instructions);
            own + out
                .get(&function)
                .into_iter()
                .flatten()
                .map(|call| call.instructions)
                .sum::<f64>()
        };
        let floor = below(start) * least;
        let mut frames: Vec<Frame> = Vec::new();
        let mut above: Vec<usize> = Vec::new();
        let mut next = vec![Frame { depth: 0, function: start, instructions: below(start) }];
        while let Some(frame) = next.pop() {
            if frames.len() >= FRAMES_MAX {
                break;
            }
            frames.push(frame);
            above.truncate(frame.depth);
            above.push(frame.function);
            let all = below(frame.function);
            if all <= 0.0 || frame.depth >= DEPTH_MAX {
                continue;
            }
            let calls = out.get(&frame.function).into_iter().flatten();
            let mut children: Vec<Frame> = calls
                .filter(|call| !above.contains(&call.callee))
                .map(|call| Frame {
                    depth: frame.depth + 1,
                    function: call.callee,
                    instructions: frame.instructions * call.instructions / all,
                })
                .filter(|child| child.instructions > floor)
                .collect();
            // The last of `next` is taken first.
            children.sort_by(|a, b| {
                a.instructions.total_cmp(&b.instructions).then(b.function.cmp(&a.function))
            });
            next.extend(children);
        }
        frames
    }

    /// How each function's own instructions divide among `kinds` kinds and none (the last share).
    ///
    /// A function whose kind is known counts as that whole. Any other serves its callers: it takes their
    /// shares, by what its calls cost.
    #[must_use]
    pub fn shares(
        &self,
        kinds: usize,
        kind_of: impl Fn(&Function) -> Option<usize>,
    ) -> Vec<Vec<f64>> {
        let one = |kind: usize| -> Vec<f64> {
            (0..=kinds).map(|at| if at == kind { 1.0 } else { 0.0 }).collect()
        };
        let known: Vec<Option<usize>> = self
            .functions
            .iter()
            .map(|function| kind_of(function).filter(|kind| *kind < kinds))
            .collect();
        let mut shares: Vec<Vec<f64>> =
            known.iter().map(|kind| one(kind.unwrap_or(kinds))).collect();
        let callers = self.calls_by(|call| call.callee);
        for _ in 0..ROUNDS {
            let before = shares.clone();
            for (at, share) in shares.iter_mut().enumerate() {
                let calls = callers.get(&at).filter(|_| known.get(at) == Some(&None));
                let Some(mixed) = calls.and_then(|calls| mix(calls, &before, kinds)) else {
                    continue;
                };
                *share = mixed;
            }
            if shares == before {
                break;
            }
        }
        shares
    }

    fn calls_by(&self, end: impl Fn(&Call) -> usize) -> HashMap<usize, Vec<&Call>> {
        let mut found: HashMap<usize, Vec<&Call>> = HashMap::new();
        for call in &self.calls {
            found.entry(end(call)).or_default().push(call);
        }
        found
    }
}

/// The shares of callers, by what their calls cost.
fn mix(calls: &[&Call], shares: &[Vec<f64>], kinds: usize) -> Option<Vec<f64>> {
    let all: f64 = calls.iter().map(|call| call.instructions).sum();
    if all <= 0.0 {
        return None;
    }
    let mut mixed = vec![0.0; kinds + 1];
    for call in calls {
        let of_caller = shares.get(call.caller).into_iter().flatten();
        for (sum, share) in mixed.iter_mut().zip(of_caller) {
            *sum += share * call.instructions / all;
        }
    }
    Some(mixed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(functions: &[(&str, f64)], calls: &[(usize, usize, f64)]) -> Graph {
        let function = |&(symbol, instructions): &(&str, f64)| Function {
            object: "a.so".to_owned(),
            symbol: symbol.to_owned(),
            instructions,
        };
        let call = |&(caller, callee, instructions): &(usize, usize, f64)| Call {
            caller,
            callee,
            instructions,
        };
        Graph {
            functions: functions.iter().map(function).collect(),
            calls: calls.iter().map(call).collect(),
        }
    }

    /// `sign` and `parse` both copy, `sign` three times as much.
    fn two_callers() -> Graph {
        graph(
            &[("turns", 10.0), ("sign", 50.0), ("parse", 20.0), ("copy", 20.0)],
            &[(0, 1, 65.0), (0, 2, 25.0), (1, 3, 15.0), (2, 3, 5.0)],
        )
    }

    #[test]
    fn a_flame_graph_divides_a_function_among_its_callers() {
        let graph = two_callers();
        let frames = graph.flame("turns", 0.0);
        let named: Vec<_> = frames
            .iter()
            .map(|frame| {
                (frame.depth, graph.functions[frame.function].symbol.as_str(), frame.instructions)
            })
            .collect();
        assert_eq!(
            named,
            [
                (0, "turns", 100.0),
                (1, "sign", 65.0),
                (2, "copy", 15.0),
                (1, "parse", 25.0),
                (2, "copy", 5.0)
            ]
        );
        assert_eq!(graph.flame("turns", 0.1).len(), 4, "5 of 100 are less than a tenth");
        assert!(graph.flame("nowhere", 0.0).is_empty());
        assert_eq!(graph.total(), 100.0);
    }

    #[test]
    fn a_function_of_no_kind_serves_its_callers() {
        let kind = |function: &Function| match function.symbol.as_str() {
            "sign" => Some(0),
            "parse" => Some(1),
            _ => None,
        };
        let shares = two_callers().shares(2, kind);
        assert_eq!(shares[0], [0.0, 0.0, 1.0], "nobody calls the root");
        assert_eq!(shares[1], [1.0, 0.0, 0.0]);
        assert_eq!(shares[3], [0.75, 0.25, 0.0]);
    }

    #[test]
    fn recursion_ends() {
        let graph = graph(
            &[("turns", 1.0), ("a", 4.0), ("b", 5.0)],
            &[(0, 1, 9.0), (1, 2, 5.0), (2, 1, 3.0)],
        );
        let frames = graph.flame("turns", 0.0);
        assert_eq!(frames.iter().map(|frame| frame.function).collect::<Vec<_>>(), [0, 1, 2]);
        let shares = graph.shares(1, |function| (function.symbol == "turns").then_some(0));
        assert!(shares.iter().all(|share| (share.iter().sum::<f64>() - 1.0).abs() < 1e-9));
        assert!(shares[2][0] > 0.99, "{shares:?}");
    }

    #[test]
    fn names_are_plain() {
        for (symbol, expected) in [
            ("malloc@@GLIBC_2.2.5", "malloc"),
            ("walk'2", "walk"),
            ("core::fmt::write'10", "core::fmt::write"),
            ("'2", "'2"),
            ("Foo<'a>", "Foo<'a>"),
            ("", ""),
        ] {
            assert_eq!(plain(symbol), expected);
        }
        assert_eq!(file_name("/opt/lib/a.so"), "a.so");
    }

    #[test]
    fn sums_of_a_recursion_are_its_own() {
        let mut sums = Sums::default();
        sums.executed(("/x/a.so", "walk"), 30);
        sums.executed(("/x/a.so", "walk'2"), 10);
        sums.called(("/x/a.so", "walk"), ("/x/a.so", "walk'2"), 10);
        sums.called(("/x/a.so", "main"), ("/x/a.so", "walk"), 40);
        sums.called(("/x/a.so", "start"), ("/x/a.so", "main"), -5);
        let graph = sums.graph(10);
        let own: Vec<_> =
            graph.functions.iter().map(|f| (f.symbol.as_str(), f.instructions)).collect();
        assert_eq!(own, [("main", 0.0), ("walk", 4.0)]);
        assert_eq!(graph.calls, [Call { caller: 0, callee: 1, instructions: 4.0 }]);
    }

    proptest! {
        /// Whatever is called by whom: it ends, and nothing is larger than the root.
        #[test]
        fn any_graph_has_a_flame_and_shares(
            own in prop::collection::vec(0u32..100, 1..12),
            calls in prop::collection::vec((0usize..12, 0usize..14, 0u32..100), 0..40),
        ) {
            let functions: Vec<(String, f64)> =
                own.iter().enumerate().map(|(at, own)| (at.to_string(), f64::from(*own))).collect();
            let functions: Vec<(&str, f64)> = functions.iter().map(|(name, own)| (name.as_str(), *own)).collect();
            let all = functions.len();
            let calls: Vec<_> =
                calls.into_iter().map(|(a, b, cost)| (a % all, b % all, f64::from(cost))).collect();
            let graph = graph(&functions, &calls);
            let frames = graph.flame("0", 0.001);
            prop_assert!(!frames.is_empty() && frames.len() <= FRAMES_MAX);
            let root = frames[0].instructions;
            prop_assert!(frames.iter().all(|frame| frame.instructions <= root + 1e-9));
            for share in graph.shares(3, |function| function.symbol.parse::<usize>().ok().filter(|at| *at < 2)) {
                prop_assert!((share.iter().sum::<f64>() - 1.0).abs() < 1e-6);
            }
        }
    }
}
