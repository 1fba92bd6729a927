//! Where the time of an outage went: the phases of a handoff, by the transitions of the paper's timed Petri net.
//!
//! The time between the last frame before the gap and the first after it is cut at each event and each piece is
//! given to one phase: the earliest that has begun and not ended, since the later ones wait for it; where none
//! has, the one that begins or ends next. What no event accounts for is [`Phase::Unexplained`].

use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::{Time, named};

use crate::outage::{Direction, Outage};
use crate::{Event, Run, Source, What};

named! {
    /// A phase of a handoff. Their order is that in which they need each other.
    pub enum Phase: "phase" {
        /// t0: from the trigger until the station begins to do something about it.
        Trigger = "t0",
        /// t1: the station looks for an access point.
        Discovery = "t1",
        /// t2: 802.11 authentication and association.
        Attachment = "t2",
        /// t4: EAP and the 4-way handshake; keys of the radio.
        Authentication = "t4",
        /// t3: an address by DHCP (RFC 2131).
        Configuration = "t3",
        /// t3: duplicate address detection.
        DuplicateDetection = "t3-dad",
        /// A radio holds the traffic's frames back, and with them ARP's, until its request for block acknowledgements
        /// is answered or a second is over.
        Held = "held",
        /// t3: the gateway's hardware address.
        GatewayDiscovery = "t3-gateway",
        /// t5: IKEv2, MKA, WireGuard's handshake.
        Security = "t5",
        /// t6 and t7: the peer or the bridge learns where the host is.
        Binding = "t6",
        /// t8: traffic is sent to the new place.
        Redirection = "t8",
        /// t9: from there to the host.
        Local = "t9",
        /// What no event accounts for.
        Unexplained = "unexplained",
    }
}

impl Phase {
    /// Its transition and what it is: `t1 discovery`.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Phase::Trigger => "t0 trigger",
            Phase::Discovery => "t1 discovery",
            Phase::Attachment => "t2 attachment",
            Phase::Authentication => "t4 authentication",
            Phase::Configuration => "t3 DHCP",
            Phase::DuplicateDetection => "t3 duplicate detection",
            Phase::Held => "hold for block acknowledgements",
            Phase::GatewayDiscovery => "t3 gateway discovery",
            Phase::Security => "t5 security association",
            Phase::Binding => "t6, t7 binding update",
            Phase::Redirection => "t8 redirection",
            Phase::Local => "t9 local redirection",
            Phase::Unexplained => "unexplained",
        }
    }
}

/// A piece of an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// What it went to.
    pub phase: Phase,
    /// When it begins, since the run began.
    pub from: Time,
    /// When it ends, since the run began.
    pub to: Time,
}

impl Span {
    /// How long it is, `from` to `to`.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.to.saturating_since(self.from)
    }
}

/// Where the time of one direction's outage went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// When the last frame before the gap came.
    pub from: Time,
    /// When the first frame after it came; where none did, when the trial ended.
    pub to: Time,
    /// Whether a frame came after it.
    pub is_over: bool,
    /// The pieces in order of time, without a gap between them.
    pub spans: Vec<Span>,
}

/// An event that came so much after the first frame explains what was before it: daemons say late what the kernel did.
const SAID_LATE: Duration = Duration::from_millis(5);

/// The share of an outage that may stay unexplained.
pub const EXPLAINED_WITHIN: f64 = 0.05;

impl Timeline {
    /// The phases of one direction's outage; `None` where no frame came before it, or nothing was cut off.
    #[must_use]
    pub fn of(run: &Run, direction: Direction) -> Option<Timeline> {
        let outage = Outage::of(run, direction);
        let stream = run.stream(direction);
        let (from, to) = match outage.gap {
            Some(gap) if outage.is_over => (gap.before.at, gap.after.at),
            _ => (stream.last?.at, end_of(run)),
        };
        if to <= from {
            return None;
        }
        let mut events: Vec<&Event> = run.events.iter().collect();
        events.sort_by_key(|event| event.at);
        let mut walk = Walk::new(from, to);
        for event in events {
            if event.at > to + SAID_LATE {
                break;
            }
            walk.pass(event);
        }
        Some(Timeline { from, to, is_over: outage.is_over, spans: walk.finish() })
    }

    /// How long the outage was.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.to.saturating_since(self.from)
    }

    /// The time that went to a phase, all its pieces together.
    #[must_use]
    pub fn of_phase(&self, phase: Phase) -> Duration {
        self.spans.iter().filter(|span| span.phase == phase).map(Span::duration).sum()
    }

    /// What the phases add up to, less what is unexplained.
    #[must_use]
    pub fn explained(&self) -> Duration {
        self.duration().saturating_sub(self.of_phase(Phase::Unexplained))
    }

    /// Whether the phases add up to the outage, within [`EXPLAINED_WITHIN`].
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let rest = self.of_phase(Phase::Unexplained).as_secs_f64();
        rest <= EXPLAINED_WITHIN * self.duration().as_secs_f64()
    }
}

/// When the trial ended.
fn end_of(run: &Run) -> Time {
    let ended = run.events.iter().find(|event| event.what == What::Ended).map(|event| event.at);
    let (up, down) = (run.up.span.1, run.down.span.1);
    ended.unwrap_or_else(|| up.max(down))
}

/// What an event does to a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    Begins(Phase),
    Ends(Phase),
}

const fn edge(what: What) -> Option<Edge> {
    use Edge::{Begins, Ends};
    Some(match what {
        What::Triggered => Begins(Phase::Trigger),
        What::LinkLost => Ends(Phase::Trigger),
        What::ScanStarted => Begins(Phase::Discovery),
        What::ScanDone => Ends(Phase::Discovery),
        What::Authenticating | What::Associating => Begins(Phase::Attachment),
        What::Associated => Ends(Phase::Attachment),
        What::Authorized | What::LinkUp => Ends(Phase::Authentication),
        What::DhcpStarted => Begins(Phase::Configuration),
        What::DhcpBound | What::AddressSet | What::RouteSet => Ends(Phase::Configuration),
        What::DuplicateCheckStarted => Begins(Phase::DuplicateDetection),
        What::DuplicateCheckDone => Ends(Phase::DuplicateDetection),
        What::GatewayAsked => Begins(Phase::GatewayDiscovery),
        What::GatewayKnown => Ends(Phase::GatewayDiscovery),
        What::SecurityStarted => Begins(Phase::Security),
        What::SecurityDone => Ends(Phase::Security),
        What::Bound => Ends(Phase::Binding),
        What::Redirected => Ends(Phase::Redirection),
        What::HoldStarted => Begins(Phase::Held),
        What::HoldEnded => Ends(Phase::Held),
        What::Authenticated | What::Ended => return None,
    })
}

/// Whether the station itself says it.
const fn is_own(source: Source) -> bool {
    matches!(source, Source::Supplicant | Source::Kernel | Source::Radio)
}

/// Goes through the events of a run and cuts the outage at them.
struct Walk {
    /// Up to here the outage is cut.
    now: Time,
    to: Time,
    /// Phases that have begun and not ended, in no order.
    open: Vec<Phase>,
    /// Whether the trigger was pulled.
    is_triggered: bool,
    /// Whether the host is attached anew.
    is_attached: bool,
    /// Who holds frames back: the station's radio, the access point's, or both.
    holders: Vec<Source>,
    /// The phase that ended last.
    ended: Option<Phase>,
    spans: Vec<Span>,
}

impl Walk {
    const fn new(from: Time, to: Time) -> Walk {
        Walk {
            now: from,
            to,
            open: Vec::new(),
            is_triggered: false,
            is_attached: false,
            holders: Vec::new(),
            ended: None,
            spans: Vec::new(),
        }
    }

    /// What counts of an event: what is not of the handoff does not.
    fn counted(&self, event: &Event) -> Option<Edge> {
        let edge = edge(event.what)?;
        if !self.is_triggered && edge != Edge::Begins(Phase::Trigger) {
            return None;
        }
        let is_open = |phase: &Phase| self.open.contains(phase);
        let counts = match (event.what, edge) {
            // A second trigger is none; one that is attached scans for nothing that it waits for.
            (What::Triggered, _) => !self.is_triggered,
            (What::ScanStarted, _) => !self.is_attached,
            // What was not begun is not waited for.
            (What::LinkLost | What::ScanDone, Edge::Ends(phase)) => is_open(&phase),
            // Of other addresses there are events too.
            (What::AddressSet | What::RouteSet, Edge::Ends(phase)) => {
                is_open(&phase) || self.ended == Some(phase)
            }
            // The old place has a gateway, and a place in the bridge.
            (What::GatewayAsked | What::GatewayKnown | What::Bound | What::Redirected, _) => {
                self.is_attached
            }
            // So has the old place's radio what it holds; one that lets go does not free what another holds.
            (What::HoldStarted, _) => self.is_attached,
            (What::HoldEnded, _) => self.holders == [event.source],
            _ => true,
        };
        counts.then_some(edge)
    }

    fn pass(&mut self, event: &Event) {
        let Some(edge) = self.counted(event) else {
            self.note(event);
            return;
        };
        let phase = match (edge, self.earliest()) {
            (Edge::Begins(Phase::Trigger), _) => Phase::Unexplained,
            (Edge::Begins(_), Some(open)) => open,
            (Edge::Ends(phase), Some(open)) => open.min(phase),
            (Edge::Begins(phase) | Edge::Ends(phase), None) => phase,
        };
        // What was before a hold is for the next to say: keys that end are waited for all the same.
        let is_first = edge == Edge::Begins(Phase::Held) && self.open.is_empty();
        // After the outage only an end says what was before it.
        if !is_first && (event.at <= self.to || matches!(edge, Edge::Ends(_))) {
            self.cut(event.at.min(self.to), phase);
        }
        match edge {
            Edge::Begins(phase) => self.begin(phase),
            Edge::Ends(phase) => self.end(phase),
        }
        self.note(event);
    }

    /// What an event says of the host beside the phase that it begins or ends.
    fn note(&mut self, event: &Event) {
        match event.what {
            What::Triggered if !self.is_triggered => {
                (self.is_triggered, self.is_attached) = (true, false);
            }
            What::Associated | What::Authorized | What::LinkUp if self.is_triggered => {
                self.is_attached = true;
            }
            // The station itself knows best whether it is attached.
            What::LinkLost if is_own(event.source) => self.is_attached = false,
            What::HoldStarted if self.is_attached && !self.holders.contains(&event.source) => {
                self.holders.push(event.source);
            }
            What::HoldEnded => self.holders.retain(|holder| *holder != event.source),
            _ => {}
        }
    }

    fn begin(&mut self, phase: Phase) {
        // Whatever begins, the station has noticed.
        self.open.retain(|open| *open != Phase::Trigger);
        if !self.open.contains(&phase) {
            self.open.push(phase);
        }
    }

    fn end(&mut self, phase: Phase) {
        if phase == Phase::Held {
            // What else was waited for is waited for still.
            self.open.retain(|open| *open != phase);
            return;
        }
        // What it needed is over too, even if nobody said so. Key daemons and bridges say nothing about the radio; and
        // frames are held until who holds them lets go.
        let has_needs = phase <= Phase::GatewayDiscovery;
        self.open.retain(|open| {
            *open == Phase::Held || if has_needs { *open > phase } else { *open != phase }
        });
        self.ended = Some(phase);
    }

    fn earliest(&self) -> Option<Phase> {
        self.open.iter().copied().min()
    }

    fn cut(&mut self, at: Time, phase: Phase) {
        if at <= self.now {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.phase == phase => last.to = at,
            _ => self.spans.push(Span { phase, from: self.now, to: at }),
        }
        self.now = at;
    }

    /// The rest, from the last event to the first frame.
    fn finish(mut self) -> Vec<Span> {
        let phase = self.earliest().unwrap_or(match self.ended {
            Some(Phase::Binding) => Phase::Redirection,
            Some(Phase::Redirection) => Phase::Local,
            _ => Phase::Unexplained,
        });
        self.cut(self.to, phase);
        self.spans
    }
}

#[cfg(test)]
mod tests;
