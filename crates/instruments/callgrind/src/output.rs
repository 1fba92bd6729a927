//! Reading callgrind's output file ("Callgrind Format Specification" in valgrind's manual).

use std::collections::HashMap;

use fault::{Explain, Fault};

/// Names, places with a cost, and pairs of caller and called that a file may have at most.
const NAMES_MAX: usize = 1 << 20;
const PLACES_MAX: usize = 1 << 22;
const CALLS_MAX: usize = 1 << 20;
/// Length of a name, in bytes.
const NAME_MAX: usize = 1 << 14;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("callgrind's output, line {line}: {what}")]
pub struct ParseError {
    /// The line's number, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: &'static str,
}

impl Explain for ParseError {
    fn fault(&self) -> Fault {
        Fault::Measurement
    }
}

/// How often an instruction was executed, and in which function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executed {
    /// An index into [`Profile::functions`].
    pub function: u32,
    /// How many times it was executed.
    pub times: u64,
}

/// A function of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// An index into [`Profile::objects`].
    pub object: u32,
    /// An index into [`Profile::functions`].
    pub function: u32,
}

/// What was executed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// Paths of the objects.
    pub objects: Vec<String>,
    /// Names of the functions.
    pub functions: Vec<String>,
    /// By object (an index into `objects`) and address in it.
    pub instructions: HashMap<(u32, u64), Executed>,
    /// What each function executed itself. An address may be of several: the tail of one that others jump
    /// into.
    pub own: HashMap<Place, u64>,
    /// By caller and called: instructions that the called executed for it, those of what it called in turn
    /// among them.
    pub calls: HashMap<(Place, Place), u64>,
}

impl Profile {
    /// Reads a file that was written with `--dump-instr=yes`.
    ///
    /// # Errors
    /// [`ParseError`]: also for a file that is larger than any program's would be.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut parser = Parser::default();
        for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            parser.line(line).map_err(|what| ParseError { line: index + 1, what })?;
        }
        let end = |what| ParseError { line: bytes.split(|&byte| byte == b'\n').count(), what };
        if parser.after != After::Nothing {
            return Err(end("it ends after calls="));
        }
        if parser.columns.is_none() || parser.event.is_none() {
            return Err(end("there is no positions: or no events: line"));
        }
        // What a full disk cut off may end with a whole line.
        match parser.totals {
            None => Err(end("it ends before its totals: line")),
            Some(totals) if totals != parser.profile.total() => {
                Err(end("its costs do not add up to its totals: line"))
            }
            Some(_) => Ok(parser.profile),
        }
    }

    /// Instructions executed in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.instructions.values().fold(0, |sum, one| sum.saturating_add(one.times))
    }
}

/// Names that are written out once, `(7) name`, and then as `(7)`.
#[derive(Default)]
struct Names {
    /// Index by the number in the file, and by the name where there is none.
    numbered: HashMap<u64, u32>,
    plain: HashMap<String, u32>,
}

impl Names {
    /// The index of what a line names, in `all`.
    fn resolve(&mut self, text: &[u8], all: &mut Vec<String>) -> Result<u32, &'static str> {
        if text.len() > NAME_MAX {
            return Err("a name is too long");
        }
        let text = String::from_utf8_lossy(text);
        let text = text.trim();
        let compressed = text.strip_prefix('(').and_then(|rest| {
            let (number, name) = rest.split_once(')')?;
            Some((number.parse::<u64>().ok()?, name.trim()))
        });
        match compressed {
            Some((number, "")) => {
                self.numbered.get(&number).copied().ok_or("a name's number was not defined")
            }
            Some((number, name)) => {
                let index = self.index(name, all)?;
                self.numbered.insert(number, index);
                Ok(index)
            }
            None => self.index(text, all), // such as "(below main)" without compression
        }
    }

    fn index(&mut self, name: &str, all: &mut Vec<String>) -> Result<u32, &'static str> {
        if let Some(&index) = self.plain.get(name) {
            return Ok(index);
        }
        if all.len() >= NAMES_MAX {
            return Err("there are too many names");
        }
        let index = all.len() as u32;
        all.push(name.to_owned());
        self.plain.insert(name.to_owned(), index);
        Ok(index)
    }
}

/// What the next line with a cost belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum After {
    /// The function itself.
    #[default]
    Nothing,
    /// The function that it calls.
    Call,
    /// A jump, which has a place and no cost.
    Jump,
}

#[derive(Default)]
struct Parser {
    profile: Profile,
    object_names: Names,
    function_names: Names,
    object: Option<u32>,
    function: Option<u32>,
    /// Columns of positions, and which of them is the instruction's.
    columns: Option<(usize, usize)>,
    /// Which of the events is `Ir`.
    event: Option<usize>,
    /// The last address that a cost line had.
    address: u64,
    /// Of the next call: its object, if it is another than the caller's, and its function.
    called_object: Option<u32>,
    called: Option<u32>,
    after: After,
    /// Instructions in all, as the file says at its end.
    totals: Option<u64>,
}

impl Parser {
    fn line(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let line = line.trim_ascii();
        match line.first() {
            None | Some(b'#') => Ok(()),
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => self.cost(line),
            Some(_) => self.named(line),
        }
    }

    fn named(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let end = line.iter().position(|byte| matches!(byte, b'=' | b':'));
        let Some((key, rest)) = end.and_then(|end| line.split_at_checked(end)) else {
            return Err("it is neither a cost nor a name nor a header");
        };
        let (mark, rest) = rest.split_at_checked(1).unwrap_or_default();
        let objects = &mut self.profile.objects;
        let functions = &mut self.profile.functions;
        match (key, mark) {
            (b"ob", b"=") => self.object = Some(self.object_names.resolve(rest, objects)?),
            (b"fn", b"=") => self.function = Some(self.function_names.resolve(rest, functions)?),
            // Those called are perhaps named here for the first time.
            (b"cob", b"=") => {
                self.called_object = Some(self.object_names.resolve(rest, objects)?);
            }
            (b"cfn", b"=") => self.called = Some(self.function_names.resolve(rest, functions)?),
            (b"calls", b"=") => self.after = After::Call,
            (b"jump" | b"jcnd", b"=") => self.after = After::Jump,
            (b"positions", b":") => {
                let names = words(rest);
                let instruction = names.iter().position(|&name| name == b"instr");
                let instruction = instruction.ok_or("it has no addresses: --dump-instr=yes")?;
                self.columns = Some((names.len(), instruction));
            }
            (b"events", b":") => {
                let event = words(rest).iter().position(|&name| name == b"Ir");
                self.event = Some(event.ok_or("instructions (Ir) were not counted")?);
            }
            (b"totals", b":") => {
                let event = self.event.ok_or("totals before events:")?;
                // Zeros at the end are not written here either.
                let total = words(rest).get(event).map_or(Some(0), |field| number(field));
                let total = total.ok_or("a total is not a number")?;
                // A file of several dumps has one of each.
                let sum = self.totals.unwrap_or(0).checked_add(total);
                self.totals = Some(sum.ok_or("a sum is too large")?);
            }
            _ => {}
        }
        Ok(())
    }

    fn cost(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let (positions, instruction) = self.columns.ok_or("a cost before positions:")?;
        let event = self.event.ok_or("a cost before events:")?;
        let fields = words(line);
        let place = fields.get(instruction).ok_or("a position is missing")?;
        self.address = position(place, self.address)?;
        let after = std::mem::take(&mut self.after);
        if after == After::Jump {
            return Ok(());
        }
        // Zeros at the end are not written.
        let times = match fields.get(positions + event) {
            Some(field) => number(field).ok_or("a cost is not a number")?,
            None => 0,
        };
        let object = self.own_object()?;
        let function = self.function.ok_or("a cost before fn=")?;
        if after == After::Call {
            return self.call(Place { object, function }, times);
        }
        let full = self.profile.instructions.len() >= PLACES_MAX;
        let place = (object, self.address);
        if full && !self.profile.instructions.contains_key(&place) {
            return Err("there are too many places");
        }
        let executed =
            self.profile.instructions.entry(place).or_insert(Executed { function, times: 0 });
        executed.times = executed.times.checked_add(times).ok_or("a sum is too large")?;
        let own = self.profile.own.entry(Place { object, function }).or_insert(0);
        *own = own.checked_add(times).ok_or("a sum is too large")?;
        Ok(())
    }

    /// The object that costs are of: without ob= lines a program has one, of no name.
    fn own_object(&mut self) -> Result<u32, &'static str> {
        if let Some(object) = self.object {
            return Ok(object);
        }
        let unnamed = self.object_names.resolve(b"", &mut self.profile.objects)?;
        Ok(*self.object.insert(unnamed))
    }

    /// What a call cost; who is called is named anew before each.
    fn call(&mut self, caller: Place, cost: u64) -> Result<(), &'static str> {
        let object = self.called_object.take().unwrap_or(caller.object);
        let function = self.called.take().ok_or("a call before cfn=")?;
        let pair = (caller, Place { object, function });
        let calls = &mut self.profile.calls;
        if calls.len() >= CALLS_MAX && !calls.contains_key(&pair) {
            return Err("there are too many calls");
        }
        let sum = calls.entry(pair).or_insert(0);
        *sum = sum.checked_add(cost).ok_or("a sum is too large")?;
        Ok(())
    }
}

fn words(line: &[u8]) -> Vec<&[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect()
}

/// A position, absolute or by what the last one was.
fn position(field: &[u8], last: u64) -> Result<u64, &'static str> {
    const BEYOND: &str = "a position is out of range";
    match field.split_first() {
        Some((b'*', [])) => Ok(last),
        Some((b'+', rest)) => {
            last.checked_add(number(rest).ok_or("a step is not a number")?).ok_or(BEYOND)
        }
        Some((b'-', rest)) => {
            last.checked_sub(number(rest).ok_or("a step is not a number")?).ok_or(BEYOND)
        }
        _ => number(field).ok_or("a position is not a number"),
    }
}

fn number(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: &str = "# callgrind format
version: 1
cmd:  ./main 3
positions: instr line
events: Ir

ob=(5) /opt/main
fl=(139) ???
fn=(654) step
0x1179 0 3
+4 0 3
cob=(6) /opt/lib.so
cfi=(162) ???
cfn=(656) inner
calls=3 0x110e 0
* 0 204
-4 0 3

ob=(6)
fn=(656)
0x1179 12
+0x10 12 7

fn=(700) outer
cfn=(656)
calls=1 +4 0
0x2000 0 7
jump=1 +4 0
0x2004 0
totals: 16
";

    fn times<'a>(profile: &'a Profile, object: &str, address: u64) -> Option<(&'a str, u64)> {
        let object = profile.objects.iter().position(|name| name == object)? as u32;
        let executed = profile.instructions.get(&(object, address))?;
        Some((&profile.functions[executed.function as usize], executed.times))
    }

    #[test]
    fn self_costs_are_kept_and_those_of_calls_are_not() {
        let profile = Profile::parse(SAMPLE.as_bytes()).unwrap();
        assert_eq!(times(&profile, "/opt/main", 0x1179), Some(("step", 6)));
        assert_eq!(times(&profile, "/opt/main", 0x117d), Some(("step", 3)));
        assert_eq!(times(&profile, "/opt/lib.so", 0x1179), Some(("inner", 0)));
        assert_eq!(times(&profile, "/opt/lib.so", 0x1189), Some(("inner", 7)));
        assert_eq!(times(&profile, "/opt/lib.so", 0x2000), None);
        assert_eq!(profile.total(), 16);
        assert_eq!(profile.objects, ["/opt/main", "/opt/lib.so"]);
    }

    #[test]
    fn a_call_costs_what_is_inside_it_and_stays_in_the_object_unless_told() {
        let profile = Profile::parse(SAMPLE.as_bytes()).unwrap();
        let name = |place: Place| {
            let object = profile.objects[place.object as usize].rsplit('/').next().unwrap();
            format!("{object}:{}", profile.functions[place.function as usize])
        };
        let calls = profile.calls.iter();
        let mut calls: Vec<_> =
            calls.map(|(&(from, to), &cost)| (name(from), name(to), cost)).collect();
        calls.sort();
        let call = |from: &str, to: &str, cost| (from.to_owned(), to.to_owned(), cost);
        assert_eq!(
            calls,
            [call("lib.so:outer", "lib.so:inner", 7), call("main:step", "lib.so:inner", 204)]
        );
    }

    #[test]
    fn other_columns_and_names_without_numbers() {
        let text = "positions: line instr\nevents: Dr Ir\nfn=(below main)\n7 0x10 5 6\n* +1 5\n\
                    totals: 10 6\n";
        let profile = Profile::parse(text.as_bytes()).unwrap();
        assert_eq!(times(&profile, "", 0x10), Some(("(below main)", 6)));
        assert_eq!(times(&profile, "", 0x11), Some(("(below main)", 0)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let head = "positions: instr\nevents: Ir\nfn=(1) f\n";
        for (text, line, what) in [
            ("", 1, "there is no positions: or no events: line"),
            ("positions: line\n", 1, "it has no addresses: --dump-instr=yes"),
            ("events: Dr\n", 1, "instructions (Ir) were not counted"),
            ("0x1 1\n", 1, "a cost before positions:"),
            ("rubbish\n", 1, "it is neither a cost nor a name nor a header"),
            (&format!("{head}-1 1\n"), 4, "a position is out of range"),
            (&format!("{head}0x1 y\n"), 4, "a cost is not a number"),
            (&format!("{head}+ 1\n"), 4, "a step is not a number"),
            (&format!("{head}fn=(2)\n"), 4, "a name's number was not defined"),
            (&format!("{head}1 18446744073709551615\n1 1\n"), 5, "a sum is too large"),
            (&format!("{head}calls=1 0"), 4, "it ends after calls="),
            (&format!("{head}calls=1 0\n1 1\n"), 5, "a call before cfn="),
            (&format!("{head}cfn=(1)\ncalls=1 0\n1 y\n"), 6, "a cost is not a number"),
            (&format!("{head}fn={}\n", "n".repeat(NAME_MAX + 1)), 4, "a name is too long"),
            (&format!("{head}1 5"), 4, "it ends before its totals: line"),
            (&format!("{head}1 5\ntotals: 6"), 5, "its costs do not add up to its totals: line"),
            (&format!("{head}totals: x"), 4, "a total is not a number"),
            ("totals: 1\n", 1, "totals before events:"),
        ] {
            assert_eq!(Profile::parse(text.as_bytes()), Err(ParseError { line, what }), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_profile_or_an_error(bytes: Vec<u8>) {
            let _ = Profile::parse(&bytes);
        }

        #[test]
        fn any_lines_of_the_format_do(lines in proptest::collection::vec(
            "(ob|fn|cfn|cob|fl|calls|jump)=\\([0-3]\\)( [ab])?|[+*-]?[0-9]{0,3} [0-9]{1,3}|positions: instr|events: Ir",
            0..40))
        {
            let _ = Profile::parse(lines.join("\n").as_bytes());
        }

        #[test]
        fn costs_written_are_read_back(costs in proptest::collection::vec((0u64..1 << 40, 1u64..1 << 20), 1..50)) {
            let mut text = "positions: instr\nevents: Ir\nob=(1) o\nfn=(1) f\n".to_owned();
            let mut last = None;
            for &(address, times) in &costs {
                let place = match last {
                    Some(last) if address == last => "*".to_owned(),
                    Some(last) if address > last => format!("+{}", address - last),
                    Some(last) => format!("-{}", last - address),
                    None => format!("{address:#x}"),
                };
                text += &format!("{place} {times}\n");
                last = Some(address);
            }
            text += &format!("totals: {}\n", costs.iter().map(|cost| cost.1).sum::<u64>());
            let profile = Profile::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(profile.total(), costs.iter().map(|cost| cost.1).sum::<u64>());
            prop_assert_eq!(profile.own.values().sum::<u64>(), profile.total());
            for &(address, _) in &costs {
                let sum: u64 = costs.iter().filter(|cost| cost.0 == address).map(|cost| cost.1).sum();
                prop_assert_eq!(times(&profile, "o", address), Some(("f", sum)));
            }
        }
    }
}
