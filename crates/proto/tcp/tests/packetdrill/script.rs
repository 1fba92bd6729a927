//! A reader of packetdrill's notation: options, shell lines, packets and system calls with their times.

use std::time::Duration;

use super::cursor::Cursor;
use super::packet::{Icmp, Line, Protocol, Segment};

/// A script that is read.
#[derive(Debug, Default)]
pub struct Script {
    /// `--name=value` lines before the first event.
    pub options: Vec<(String, String)>,
    /// Commands between backticks before the first event.
    pub setup: Vec<String>,
    pub events: Vec<Event>,
}

#[derive(Debug)]
pub struct Event {
    pub line: usize,
    pub at: When,
    /// End of a call that blocks, from its beginning or from the script's.
    pub until: Option<Point>,
    pub what: What,
}

/// A time from the script's beginning, or after the event before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Point {
    Absolute(Duration),
    After(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    At(Point),
    /// Any time between the two.
    Between(Point, Point),
    Any,
}

#[derive(Debug)]
pub enum What {
    Packet { inbound: bool, line: Line },
    Call(Call),
    Shell(String),
    Python(String),
}

/// A system call with its expected result.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub name: String,
    pub arguments: Vec<String>,
    /// The number and the name of the error; `None` if the script does not care.
    pub result: Option<i64>,
    pub error: Option<String>,
}

/// The reason why a script cannot be read, with its line.
#[derive(Debug)]
pub struct Unreadable {
    pub line: usize,
    pub reason: String,
}

/// The text with the lines blank that the preprocessor leaves out; of its names only `STANDARD` is defined, for what
/// the standards say.
fn preprocess(text: &str) -> String {
    let mut kept = Vec::new();
    let is_kept = |kept: &[bool]| kept.iter().all(|kept| *kept);
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("#ifdef"), name) => kept.push(name == Some("STANDARD")),
            (Some("#ifndef"), name) => kept.push(name != Some("STANDARD")),
            (Some("#else"), _) => {
                kept.iter_mut().last().into_iter().for_each(|kept| *kept = !*kept)
            }
            (Some("#endif"), _) => drop(kept.pop()),
            _ if is_kept(&kept) => return format!("{line}\n"),
            _ => {}
        }
        "\n".to_owned()
    };
    text.lines().map(line).collect()
}

impl Script {
    pub fn parse(text: &str) -> Result<Script, Unreadable> {
        let text = preprocess(text);
        let mut cursor = Cursor::new(&text);
        let mut script = Script::default();
        loop {
            cursor.skip_blank();
            if cursor.is_at_end() {
                return Ok(script);
            }
            let line = cursor.line();
            let refuse = |reason: String| Unreadable { line, reason };
            if cursor.eat("--") {
                let option = cursor.rest_of_line();
                let (name, value) = option.split_once('=').unwrap_or((option, "1"));
                script.options.push((name.trim().into(), value.trim().into()));
            } else if script.events.is_empty() && cursor.starts_with("`") {
                script.setup.push(cursor.between("`", "`").map_err(refuse)?.into());
            } else {
                script.events.push(event(&mut cursor, line).map_err(refuse)?);
            }
        }
    }
}

fn event(cursor: &mut Cursor<'_>, line: usize) -> Result<Event, String> {
    let (mut at, mut until) = (When::At(Point::After(Duration::ZERO)), None);
    if cursor.eat("*") {
        at = When::Any;
    } else if cursor.starts_with("+") || cursor.starts_with_digit() {
        let begin = point(cursor)?;
        at = When::At(begin);
        cursor.skip_blank();
        if cursor.eat("~") {
            cursor.skip_blank();
            let end = point(cursor)?;
            at = When::Between(begin, with_kind(end, begin));
        } else if cursor.eat("...") {
            cursor.skip_blank();
            until = Some(with_kind(point(cursor)?, begin));
        }
    }
    cursor.skip_blank();
    let what = if cursor.starts_with("`") {
        What::Shell(cursor.between("`", "`")?.into())
    } else if cursor.starts_with("%{") {
        What::Python(cursor.between("%{", "}%")?.into())
    } else if cursor.eat("<") {
        What::Packet { inbound: true, line: packet(cursor)? }
    } else if cursor.eat(">") {
        What::Packet { inbound: false, line: packet(cursor)? }
    } else {
        What::Call(call(cursor)?)
    };
    Ok(Event { line, at, until, what })
}

/// The end of a range counts as its beginning does, with a plus sign or without.
fn with_kind(end: Point, begin: Point) -> Point {
    match (begin, end) {
        (Point::After(_), Point::Absolute(after)) => Point::After(after),
        _ => end,
    }
}

fn point(cursor: &mut Cursor<'_>) -> Result<Point, String> {
    let relative = cursor.eat("+");
    let text = cursor.take_number();
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is no time"))?;
    let time = Duration::from_nanos((seconds * 1e9).round() as u64);
    Ok(if relative { Point::After(time) } else { Point::Absolute(time) })
}

fn packet(cursor: &mut Cursor<'_>) -> Result<Line, String> {
    cursor.skip_blank();
    let mut line = Line::default();
    let mut quoted = None;
    loop {
        cursor.skip_blank();
        if cursor.eat("[") {
            let words = cursor.until("]")?.trim();
            if words.starts_with(|c: char| c.is_ascii_digit()) {
                // Newer scripts have the quoted segment before `icmp`.
                quoted = Some(first_byte(words)?);
            } else {
                // ECN of the IP header; other words stand there in encapsulations only.
                line.ecn = Some(words.into());
            }
        } else if cursor.eat("(") {
            let words = cursor.until(")")?.trim().to_owned();
            line.unread.push(format!("({words})"));
        } else {
            break;
        }
    }
    let word = cursor.peek_word();
    match word {
        "icmp" | "icmpv6" => {
            cursor.take_word();
            let mut icmp = icmp(cursor)?;
            icmp.sequence = quoted.unwrap_or(icmp.sequence);
            line.protocol = Protocol::Icmp(icmp);
        }
        "ipv4" | "ipv6" | "gre" | "mpls" | "udp" | "udplite" | "sctp" | "sock" => {
            return Err(format!("packets of `{word}` are not played"));
        }
        _ => line.protocol = Protocol::Tcp(segment(cursor)?),
    }
    Ok(line)
}

/// The first byte of a quoted segment: `1:1001(1000)`, or with flags before it.
fn first_byte(quoted: &str) -> Result<u32, String> {
    let range = quoted.rsplit(' ').next().unwrap_or(quoted);
    let first = range.split(':').next().unwrap_or(range);
    first.parse().map_err(|_| format!("`{quoted}` is no quoted segment"))
}

fn icmp(cursor: &mut Cursor<'_>) -> Result<Icmp, String> {
    cursor.skip_blank();
    let kind = cursor.take_word().to_owned();
    cursor.skip_on_line();
    let mut icmp = Icmp { kind, ..Icmp::default() };
    while !cursor.is_at_line_end() {
        if cursor.eat("[") {
            icmp.sequence = first_byte(cursor.until("]")?.trim())?;
        } else {
            let word = cursor.take_word().to_owned();
            match word.as_str() {
                "mtu" => {
                    cursor.skip_on_line();
                    let mtu = cursor.take_number();
                    icmp.mtu = mtu.parse().map_err(|_| format!("`{mtu}` is no MTU"))?;
                }
                "" => return Err("not an ICMP message".into()),
                _ => icmp.code = word,
            }
        }
        cursor.skip_on_line();
    }
    Ok(icmp)
}

fn segment(cursor: &mut Cursor<'_>) -> Result<Segment, String> {
    let mut segment = Segment { flags: cursor.take_token().into(), ..Segment::default() };
    if !segment.flags.chars().all(|flag| "SFRP.UEWCA-".contains(flag)) || segment.flags.is_empty() {
        return Err(format!("`{}` are no TCP flags", segment.flags));
    }
    cursor.skip_on_line();
    if cursor.starts_with_digit() {
        segment.start = number(cursor)?;
        if !cursor.eat(":") {
            return Err("a sequence range is expected".into());
        }
        number::<u32>(cursor)?;
        if !cursor.eat("(") {
            return Err("a length in parentheses is expected".into());
        }
        segment.len = number(cursor)?;
        cursor.until(")")?;
    }
    loop {
        cursor.skip_on_line();
        if cursor.is_at_line_end() {
            return Ok(segment);
        }
        if cursor.eat("<") {
            segment.options = Some(cursor.until(">")?.trim().into());
            continue;
        }
        let word = cursor.take_word().to_owned();
        cursor.skip_on_line();
        match word.as_str() {
            "ack" => segment.ack = Some(number(cursor)?),
            "win" => segment.window = Some(number(cursor)?),
            "urg" => segment.urgent = Some(number(cursor)?),
            _ => return Err(format!("`{word}` of a packet is not known")),
        }
    }
}

fn number<T: std::str::FromStr>(cursor: &mut Cursor<'_>) -> Result<T, String> {
    let text = cursor.take_number();
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

fn call(cursor: &mut Cursor<'_>) -> Result<Call, String> {
    let name = cursor.take_word().to_owned();
    cursor.skip_blank();
    if name.is_empty() || !cursor.starts_with("(") {
        return Err(format!("neither packet nor call: `{}`", cursor.rest_of_line()));
    }
    let inside = cursor.balanced()?;
    let mut call = Call { name, arguments: split(inside), result: None, error: None };
    cursor.skip_on_line();
    if cursor.eat("=") {
        cursor.skip_on_line();
        if !cursor.eat("...") && !cursor.eat("?") {
            let text = cursor.take_token();
            call.result = Some(parse_number(text).ok_or_else(|| format!("`{text}` is no result"))?);
        }
        cursor.skip_on_line();
        let error = cursor.peek_word();
        if error.starts_with('E')
            && error.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
        {
            call.error = Some(cursor.take_word().into());
        }
        cursor.skip_on_line();
        if cursor.starts_with("(") {
            cursor.balanced()?;
        }
    }
    Ok(call)
}

/// A number in decimal or hexadecimal.
pub fn parse_number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Splits at commas outside of brackets.
pub fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut part) = (Vec::new(), 0, String::new());
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part).trim().to_owned());
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    if !part.trim().is_empty() || !parts.is_empty() {
        parts.push(part.trim().to_owned());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(at: f64) -> Duration {
        Duration::from_secs_f64(at)
    }

    #[test]
    fn of_the_preprocessor_s_branches_the_standard_s_is_read() {
        let text = "#ifdef STANDARD
0 close(1) = 0
#else
0 close(2) = 0
#endif
#ifndef STANDARD
0 close(3) = 0
#endif
#ifdef FreeBSD
0 close(4) = 0
#endif
0 close(5) = 0
";
        let script = Script::parse(text).unwrap();
        assert_eq!(script.events.iter().map(|event| event.line).collect::<Vec<_>>(), [2, 12]);
    }

    #[test]
    fn times_packets_and_calls_are_read() {
        let text = "--tolerance_usecs=7000
// A comment.
`sysctl -q net.ipv4.tcp_sack=0`
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3 /* its
  number */
+0...0.200 connect(3, ..., ...) = 0
+.1~+.2 > P. 1:1001(1000) ack 1 win 65535 <nop,nop,TS val 10 ecr 20>
*  < [ect0] . 1:1(0) ack 1001 win 257
+0 read(3, ..., 1000) = -1 EAGAIN (Resource temporarily unavailable)
+0 < icmp unreachable frag_needed mtu 1200 [1:1001(1000)]
+0 < [7:7(0)] icmp unreachable port_unreachable
+0 %{ assert tcpi_snd_cwnd == 10 }%
";
        let script = Script::parse(text).unwrap();
        assert_eq!(script.options, [("tolerance_usecs".into(), "7000".into())]);
        assert_eq!(script.setup, ["sysctl -q net.ipv4.tcp_sack=0"]);
        let [socket, connect, data, ack, read, icmp, newer, python] = &script.events[..] else {
            panic!("{script:?}")
        };
        assert!(matches!(&socket.what, What::Call(call) if call.result == Some(3)));
        assert_eq!(connect.until, Some(Point::After(seconds(0.2))));
        assert_eq!(data.at, When::Between(Point::After(seconds(0.1)), Point::After(seconds(0.2))));
        let What::Packet { inbound: false, line: Line { protocol: Protocol::Tcp(segment), .. } } =
            &data.what
        else {
            panic!("{data:?}")
        };
        assert_eq!((segment.start, segment.len, segment.window), (1, 1000, Some(65_535)));
        assert_eq!(ack.at, When::Any);
        assert!(matches!(&read.what, What::Call(call) if call.error.as_deref() == Some("EAGAIN")));
        assert_eq!(read.line, 9);
        assert!(
            matches!(&icmp.what, What::Packet { line: Line { protocol: Protocol::Icmp(icmp), .. }, .. }
            if (icmp.code.as_str(), icmp.mtu, icmp.sequence) == ("frag_needed", 1200, 1))
        );
        assert!(
            matches!(&newer.what, What::Packet { line: Line { protocol: Protocol::Icmp(icmp), .. }, .. }
            if (icmp.code.as_str(), icmp.sequence) == ("port_unreachable", 7))
        );
        assert!(matches!(&python.what, What::Python(code) if code.contains("snd_cwnd")));
    }
}
