//! Packets of a script: made if they come in, compared if they go out.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use wire::tcp::{FastOpen, Flags, OptionList, Repr, SackBlocks, Segment as View};

use super::script::split;
use super::verdict::Failure;

/// A packet's line.
#[derive(Debug, Default)]
pub struct Line {
    /// The ECN field, if the line names it.
    pub ecn: Option<String>,
    /// Parts of the IP header that are not played.
    pub unread: Vec<String>,
    pub protocol: Protocol,
}

#[derive(Debug)]
pub enum Protocol {
    Tcp(Segment),
    Icmp(Icmp),
}

impl Default for Protocol {
    fn default() -> Self {
        Protocol::Tcp(Segment::default())
    }
}

/// A segment in the script's numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Segment {
    pub flags: String,
    pub start: u32,
    pub len: usize,
    pub ack: Option<u32>,
    pub window: Option<u16>,
    pub urgent: Option<u16>,
    /// The text between angle brackets.
    pub options: Option<String>,
}

impl Segment {
    pub fn is_syn(&self) -> bool {
        self.flags.contains('S')
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Icmp {
    pub kind: String,
    pub code: String,
    pub mtu: u16,
    /// First byte of the quoted segment.
    pub sequence: u32,
}

/// The options of a line, by kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// `<...>`: whatever comes.
    pub any: bool,
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    pub sack_ok: bool,
    pub timestamps: Option<(u32, u32)>,
    pub sack: Vec<(u32, u32)>,
    /// Whether it is the experimental kind, and the cookie.
    pub fast_open: Option<(bool, Vec<u8>)>,
}

impl Options {
    /// Reads the text between angle brackets.
    pub fn parse(text: &str) -> Result<Options, Failure> {
        let mut options = Options::default();
        let wrong = |part: &str| Failure::Unread(format!("the TCP option `{part}`"));
        for part in split(text) {
            let words: Vec<&str> = part.split_whitespace().collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<u32>().ok());
            match words[..] {
                ["..."] => options.any = true,
                ["nop" | "eol" | "NOP" | "EOL"] | [] => {}
                ["mss", _] => options.mss = number(1).map(|mss| mss as u16),
                ["wscale" | "ws", _] => options.scale = number(1).map(|shift| shift as u8),
                ["sackOK"] => options.sack_ok = true,
                ["TS", "val", _, "ecr", _] => {
                    options.timestamps = number(2).zip(number(4));
                    options.timestamps.ok_or_else(|| wrong(&part))?;
                }
                ["sack", ref blocks @ ..] => {
                    for block in blocks {
                        let (left, right) = block.split_once(':').ok_or_else(|| wrong(&part))?;
                        let edges = left.parse().ok().zip(right.parse().ok());
                        options.sack.push(edges.ok_or_else(|| wrong(&part))?);
                    }
                }
                ["FO" | "FOEXP"] => options.fast_open = Some((words[0] == "FOEXP", Vec::new())),
                ["FO" | "FOEXP", hex] => {
                    let cookie = from_hex(hex).ok_or_else(|| wrong(&part))?;
                    options.fast_open = Some((words[0] == "FOEXP", cookie));
                }
                _ => return Err(wrong(&part)),
            }
        }
        Ok(options)
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| (high * 16 + low) as u8).collect())
}

/// A connection: its addresses, and how the script's numbers become those of the endpoint.
#[derive(Debug, Clone)]
pub struct Flow {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Initial sequence numbers: the script's and the real ones, of this side and of the peer.
    pub ours: (u32, Option<u32>),
    pub theirs: (u32, Option<u32>),
    /// A pair of timestamps of this side, the script's and the real one.
    pub clock: Option<(u32, u32)>,
    /// Cookies by the script's.
    pub cookies: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The application has closed it.
    pub closed: bool,
}

impl Flow {
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Flow {
            local,
            remote,
            ours: (0, None),
            theirs: (0, None),
            clock: None,
            cookies: BTreeMap::new(),
            closed: false,
        }
    }

    /// What is added to a number of the script: in packets with SYN those are absolute, in others relative to the
    /// initial one.
    fn shift((scripted, real): (u32, Option<u32>), syn: bool) -> u32 {
        real.unwrap_or(0).wrapping_sub(if syn { scripted } else { 0 })
    }

    /// The endpoint's sequence number for one of ours in a packet without SYN.
    pub fn our_sequence(&self, sequence: u32) -> u32 {
        sequence.wrapping_add(Self::shift(self.ours, false))
    }

    /// A segment of the peer's as an IP packet.
    pub fn make(&mut self, segment: &Segment) -> Result<Vec<u8>, Failure> {
        let syn = segment.is_syn();
        if syn && self.theirs.1.is_none() {
            self.theirs = (segment.start, Some(segment.start.wrapping_add(0x7000_0000)));
        }
        let options = Options::parse(segment.options.as_deref().unwrap_or(""))?;
        let ours = Self::shift(self.ours, syn);
        let blocks: Vec<_> = options
            .sack
            .iter()
            .map(|(left, right)| (self.our_sequence(*left), self.our_sequence(*right)))
            .collect();
        let echo = |echo: u32| match self.clock {
            Some((scripted, real)) if echo != 0 => echo.wrapping_add(real).wrapping_sub(scripted),
            _ => echo,
        };
        let cookie = options
            .fast_open
            .as_ref()
            .map(|(_, cookie)| self.cookies.get(cookie).cloned().unwrap_or_else(|| cookie.clone()));
        let experimental =
            options.fast_open.as_ref().is_some_and(|(experimental, _)| *experimental);
        let list = OptionList {
            mss: options.mss,
            window_scale: options.scale,
            sack_permitted: options.sack_ok,
            timestamps: options.timestamps.map(|(value, ecr)| (value, echo(ecr))),
            sack: SackBlocks::new(&blocks),
            fast_open: cookie.as_deref().map(|cookie| FastOpen { cookie, experimental }),
        };
        if list.padded_len() > wire::tcp::MAX_OPTIONS_LEN {
            return Err(Failure::Unread("options that do not fit a header".into()));
        }
        let repr = Repr {
            source_port: self.remote.port(),
            destination_port: self.local.port(),
            sequence: segment.start.wrapping_add(Self::shift(self.theirs, syn)),
            // The flag decides, whatever the line says.
            acknowledgment: segment
                .flags
                .contains('.')
                .then(|| segment.ack.unwrap_or(0).wrapping_add(ours)),
            flags: flags(&segment.flags),
            window: segment.window.unwrap_or(0),
            options: list,
        };
        let mut bytes = vec![0; repr.buffer_len(segment.len)];
        let payload = vec![0; segment.len];
        repr.emit(self.remote.ip(), self.local.ip(), &payload, &mut bytes)
            .map_err(|error| Failure::Wrong(error.to_string()))?;
        Ok(super::addresses::ip_packet(self.remote.ip(), self.local.ip(), &bytes))
    }

    /// Whether a packet that was sent is the expected one.
    pub fn compare(
        &mut self,
        expected: &Segment,
        sent: &Sent,
    ) -> Result<Vec<&'static str>, Failure> {
        let mut notes = Vec::new();
        let view = sent.segment();
        let syn = view.flags().has(Flags::SYN);
        if syn {
            self.ours = (expected.start, Some(view.sequence()));
        }
        let got = self.describe(sent, expected);
        let shown = format!("sent {got}");
        let wrong = |what: &str| Err(Failure::Wrong(format!("{what}: {shown}")));
        let (want, is) = (flags(&expected.flags), view.flags());
        let push = Flags::PSH.0;
        if (want.0 ^ is.0) & !push & 0x3f != 0 {
            return wrong("other flags");
        }
        if (want.0 ^ is.0) & push != 0 {
            notes.push("PSH");
        }
        if got.start != expected.start || got.len != expected.len {
            return wrong("another range");
        }
        if got.ack != expected.ack {
            return wrong("another acknowledgment");
        }
        if expected.window.is_some() && got.window != expected.window {
            notes.push("windows");
        }
        notes.extend(
            self.compare_options(expected, sent)
                .map_err(|what| Failure::Wrong(format!("{what}: {shown}")))?,
        );
        Ok(notes)
    }

    fn compare_options(
        &mut self,
        expected: &Segment,
        sent: &Sent,
    ) -> Result<Vec<&'static str>, String> {
        let mut notes = Vec::new();
        let text = expected.options.as_deref().unwrap_or("");
        let want = Options::parse(text).map_err(|failure| failure.to_string())?;
        let list = Repr::parse(&sent.segment()).options;
        if let (Some((scripted, _)), Some((real, _))) = (want.timestamps, list.timestamps) {
            self.clock = Some((scripted, real));
        }
        if want.any {
            return Ok(notes);
        }
        if (want.mss, want.sack_ok) != (list.mss, list.sack_permitted) {
            return Err("other options".into());
        }
        match (want.scale, list.window_scale) {
            (Some(want), Some(is)) if want != is => notes.push("windows"),
            (want, is) if want.is_some() != is.is_some() => return Err("window scale".into()),
            _ => {}
        }
        if want.timestamps.is_some() != list.timestamps.is_some() {
            return Err("timestamps".into());
        }
        if want.timestamps.map(|(_, echo)| echo) != list.timestamps.map(|(_, echo)| echo) {
            return Err("another timestamp is echoed".into());
        }
        let theirs = Self::shift(self.theirs, false);
        let blocks: Vec<_> = list
            .sack
            .as_slice()
            .iter()
            .map(|(left, right)| (left.wrapping_sub(theirs), right.wrapping_sub(theirs)))
            .collect();
        if blocks != want.sack {
            return Err(format!("SACK blocks {blocks:?}"));
        }
        match (&want.fast_open, list.fast_open) {
            (None, None) => {}
            // A server's cookie is its own; the script's stands for it from now on.
            (Some((_, cookie)), Some(option)) if cookie.len() == option.cookie.len() => {
                self.cookies.insert(cookie.clone(), option.cookie.to_vec());
            }
            _ => return Err("Fast Open".into()),
        }
        Ok(notes)
    }

    /// A packet in the script's numbers.
    fn describe(&self, sent: &Sent, expected: &Segment) -> Segment {
        let view = sent.segment();
        let syn = view.flags().has(Flags::SYN);
        let names = [(0x02, 'S'), (0x01, 'F'), (0x04, 'R'), (0x08, 'P'), (0x20, 'U'), (0x10, '.')];
        let names = names.iter().filter(|(bit, _)| view.flags().0 & bit != 0);
        Segment {
            flags: names.map(|(_, name)| *name).collect(),
            start: view.sequence().wrapping_sub(Self::shift(self.ours, syn)),
            len: sent.len(),
            ack: view.acknowledgment().map(|ack| ack.wrapping_sub(Self::shift(self.theirs, syn))),
            window: expected.window.map(|_| view.window()),
            urgent: None,
            options: Some(format!("{:?}", Repr::parse(&view).options)),
        }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.start.wrapping_add(self.len as u32);
        write!(f, "{} {}:{end}({})", self.flags, self.start, self.len)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        Ok(())
    }
}

fn flags(text: &str) -> Flags {
    let bit = |flag| match flag {
        'F' => 0x01,
        'S' => 0x02,
        'R' => 0x04,
        'P' => 0x08,
        '.' => 0x10,
        'U' => 0x20,
        'E' => 0x40,
        'C' | 'W' => 0x80,
        _ => 0,
    };
    Flags(text.chars().map(bit).fold(0, |all, bit| all | bit))
}

/// A packet of the endpoint's.
#[derive(Debug, Clone)]
pub struct Sent {
    pub at: units::Time,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// The IP packet.
    pub packet: Vec<u8>,
    /// Bytes of IP header.
    pub ip: usize,
    /// Payload of the segments that follow and were joined to this one.
    pub joined: usize,
}

impl Sent {
    pub fn segment(&self) -> View<'_> {
        View::new_checked(&self.packet[self.ip..]).expect("the endpoint makes whole segments")
    }

    /// Payload, of joined ones too.
    pub fn len(&self) -> usize {
        self.segment().payload().len() + self.joined
    }
}
