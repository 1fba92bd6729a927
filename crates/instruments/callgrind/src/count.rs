//! From two profiles to counts a handshake.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::atomics::{Class, Code};
use crate::graph::{Graph, Sums, file_name, plain};
use crate::output::{Place, Profile};
use crate::run::{Error, Invocation, Options, profile};

/// What part of a handshake an object or a function is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The object's file name.
    pub object: String,
    /// The function, or nothing for a whole object.
    pub symbol: String,
    /// Instructions per handshake.
    pub instructions: f64,
    /// Atomic read-modify-writes per handshake; none where they cannot be recognised.
    pub atomic_rmw: Option<f64>,
}

/// Counts a handshake.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PerHandshake {
    /// Handshakes that the counts are averages over.
    pub handshakes: u64,
    /// How many instructions were executed.
    pub instructions: f64,
    /// Atomic read-modify-writes. `None` where an object with code in the handshake is not for
    /// x86-64: on other processors they cannot be counted by their instructions.
    pub atomic_rmw: Option<f64>,
    /// Locked instructions that are memory barriers on the thread's own stack; not among the former.
    pub fences: Option<f64>,
    /// Instructions (of the first count) whose code could not be read, and which may be anything.
    pub unread: f64,
    /// By object, the most atomic first, then by instructions.
    pub by_object: Vec<Part>,
    /// By function in the same order: all with atomic instructions, and the largest others.
    pub by_symbol: Vec<Part>,
    /// All functions, and who called whom.
    #[serde(default)]
    pub graph: Graph,
}

/// Runs both and counts what a handshake takes inside the function `symbol`, as [`profile`] does.
///
/// # Errors
/// [`Error`].
pub fn per_handshake(
    few: &Invocation,
    many: &Invocation,
    symbol: &str,
    options: &Options,
    accept: impl Fn(&[u8]) -> Result<(), String>,
) -> Result<PerHandshake, Error> {
    if many.handshakes <= few.handshakes {
        return Err(Error::Handshakes { few: few.handshakes, many: many.handshakes });
    }
    let before = profile(few, symbol, options, &accept)?;
    let after = profile(many, symbol, options, &accept)?;
    Ok(count(&before, &after, many.handshakes - few.handshakes, options.top))
}

#[derive(Default, Clone, Copy)]
struct Sum {
    instructions: i128,
    atomic: i128,
    fences: i128,
    unread: i128,
    /// Some of it is code for another processor.
    untold: bool,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.instructions += other.instructions;
        self.atomic += other.atomic;
        self.fences += other.fences;
        self.unread += other.unread;
        self.untold |= other.untold;
    }
}

/// The difference of two profiles by a number of handshakes.
fn count(before: &Profile, after: &Profile, handshakes: u64, top: usize) -> PerHandshake {
    let mut codes: HashMap<&str, Option<Code>> = HashMap::new();
    let mut sums: BTreeMap<(&str, &str), Sum> = BTreeMap::new();
    for (profile, sign) in [(before, -1), (after, 1)] {
        for (&(object, address), executed) in &profile.instructions {
            let path = profile.objects.get(object as usize).map_or("", String::as_str);
            let name = profile.functions.get(executed.function as usize).map_or("", String::as_str);
            let code = codes.entry(path).or_insert_with(|| Code::read(Path::new(path)));
            let times = i128::from(executed.times) * sign;
            let mut sum = Sum { instructions: times, ..Sum::default() };
            match code {
                Some(code) if !code.is_known() => sum.untold = true,
                code => match code.as_ref().and_then(|code| code.class(address)) {
                    Some(Class::Atomic) => sum.atomic = times,
                    Some(Class::Fence) => sum.fences = times,
                    Some(Class::Plain) => {}
                    None => sum.unread = times,
                },
            }
            sums.entry((path, name)).or_default().add(sum);
        }
    }
    let each = |sum: i128| sum as f64 / handshakes as f64;
    let part = |(path, symbol): (&str, &str), sum: &Sum| Part {
        object: file_name(path).to_owned(),
        symbol: plain(symbol).to_owned(),
        instructions: each(sum.instructions),
        atomic_rmw: (!sum.untold).then(|| each(sum.atomic)),
    };
    let mut objects: BTreeMap<(&str, &str), Sum> = BTreeMap::new();
    let mut all = Sum::default();
    for (&(path, _), &sum) in &sums {
        objects.entry((path, "")).or_default().add(sum);
        all.add(sum);
    }
    let executed = |(_, sum): &(&(&str, &str), &Sum)| sum.instructions != 0;
    let by_object = objects.iter().filter(executed).map(|(&key, sum)| part(key, sum)).collect();
    let by_symbol = sums.iter().filter(executed).map(|(&key, sum)| part(key, sum)).collect();
    PerHandshake {
        handshakes,
        instructions: each(all.instructions),
        atomic_rmw: (!all.untold).then(|| each(all.atomic)),
        fences: (!all.untold).then(|| each(all.fences)),
        unread: each(all.unread),
        by_object: ordered(by_object, usize::MAX),
        by_symbol: ordered(by_symbol, top),
        graph: graph(before, after, handshakes),
    }
}

/// The functions of the difference with what they executed themselves and for whom.
fn graph(before: &Profile, after: &Profile, handshakes: u64) -> Graph {
    let mut sums = Sums::default();
    for (profile, sign) in [(before, -1), (after, 1)] {
        let named = |place: &Place| {
            let path = profile.objects.get(place.object as usize).map_or("", String::as_str);
            let symbol = profile.functions.get(place.function as usize).map_or("", String::as_str);
            (path, symbol)
        };
        for (place, times) in &profile.own {
            sums.executed(named(place), i128::from(*times) * sign);
        }
        for ((caller, callee), cost) in &profile.calls {
            sums.called(named(caller), named(callee), i128::from(*cost) * sign);
        }
    }
    sums.graph(handshakes)
}

/// The most atomic first; of those without, the `top` largest.
fn ordered(mut parts: Vec<Part>, top: usize) -> Vec<Part> {
    let atomic = |part: &Part| part.atomic_rmw.unwrap_or(0.0);
    parts.sort_by(|a, b| {
        let largest = b.instructions.total_cmp(&a.instructions);
        atomic(b).total_cmp(&atomic(a)).then(largest).then_with(|| a.symbol.cmp(&b.symbol))
    });
    let mut others = 0;
    parts.retain(|part| {
        others += usize::from(atomic(part) == 0.0);
        atomic(part) != 0.0 || others <= top
    });
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(total: u64, costs: &str) -> Profile {
        let head = "positions: instr\nevents: Ir\nob=(1) /nowhere/a.so\n";
        Profile::parse(format!("{head}{costs}totals: {total}\n").as_bytes()).unwrap()
    }

    #[test]
    fn what_both_runs_have_is_taken_off() {
        let before = parsed(109, "fn=(1) start\n0x1 100\nfn=(2) step\n0x10 3\n0x11 6\n");
        let after = parsed(139, "fn=(7) step\n0x10 13\n0x11 26\nfn=(2) start\n0x1 100\n");
        let counts = count(&before, &after, 10, 5);
        assert_eq!((counts.instructions, counts.unread), (3.0, 3.0));
        let symbols: Vec<_> = counts.by_symbol.iter().map(|part| part.symbol.as_str()).collect();
        assert_eq!(symbols, ["step"]);
        assert_eq!(counts.by_object.len(), 1);
        assert_eq!(counts.by_object[0].object, "a.so");
    }

    #[test]
    fn calls_are_a_handshake_s_too() {
        let before =
            parsed(8, "fn=(1) step\n0x10 3\ncfn=(2) inner\ncalls=1 0x20\n* 5\nfn=(2)\n0x20 5\n");
        let after = parsed(
            58,
            "fn=(1) step\n0x10 13\ncfn=(2) inner\ncalls=9 0x20\n* 45\nfn=(2)\n0x20 45\n",
        );
        let graph = count(&before, &after, 10, 5).graph;
        let names: Vec<_> = graph.functions.iter().map(|one| one.symbol.as_str()).collect();
        assert_eq!(names, ["inner", "step"]);
        let own: Vec<_> = graph.functions.iter().map(|one| one.instructions).collect();
        assert_eq!(own, [4.0, 1.0]);
        assert_eq!(graph.calls.len(), 1);
        let call = &graph.calls[0];
        assert_eq!((call.caller, call.callee, call.instructions), (1, 0, 4.0));
    }

    /// The same code under one name in one run and under another in the next.
    #[test]
    fn a_graph_has_all_instructions_whoever_executes_them() {
        let before = parsed(40, "fn=(1) a\n0x10 30\nfn=(2) b\n0x10 10\n");
        let after = parsed(80, "fn=(2) b\n0x10 20\nfn=(1) a\n0x10 60\n");
        let counts = count(&before, &after, 10, 5);
        assert_eq!((counts.instructions, counts.graph.total()), (4.0, 4.0));
        let own: Vec<f64> = counts.graph.functions.iter().map(|one| one.instructions).collect();
        assert_eq!(own, [3.0, 1.0]);
    }

    #[test]
    fn functions_without_atomics_are_cut_and_the_others_are_not() {
        let part = |symbol: &str, instructions, atomic_rmw| Part {
            object: String::new(),
            symbol: symbol.into(),
            instructions,
            atomic_rmw: Some(atomic_rmw),
        };
        let parts = vec![
            part("a", 5.0, 0.0),
            part("b", 9.0, 0.0),
            part("c", 1.0, 2.0),
            part("d", 7.0, 0.5),
        ];
        let kept = ordered(parts, 1);
        let names: Vec<_> = kept.iter().map(|part| part.symbol.as_str()).collect();
        assert_eq!(names, ["c", "d", "b"]);
    }
}
