//! What was seen of one handoff.

use serde::{Deserialize, Serialize};
use units::{Delay, Probability, Time, named};

named! {
    /// Who saw it.
    pub enum Source: "source" {
        /// The one who measures: triggers, the first packet that went to a new address.
        Control = "control",
        /// The station's supplicant.
        Supplicant = "supplicant",
        /// An access point: its daemon, and what its radio holds back.
        AccessPoint = "access-point",
        /// The station's kernel: links, addresses, routes, neighbours (rtnetlink).
        Kernel = "kernel",
        /// The station's kernel: scans, authentication, association (nl80211), and what its radio holds back.
        Radio = "radio",
        /// The station's DHCP client.
        Dhcp = "dhcp",
        /// A key daemon: IKEv2's, MKA's, WireGuard's handshake.
        Keys = "keys",
        /// The bridge of the sites: where it has learnt the host.
        Bridge = "bridge",
    }
}

named! {
    /// What happened in a handoff; t0 to t8 are its phases.
    pub enum What: "event" {
        /// t0: the trigger was pulled.
        Triggered = "triggered",
        /// The station knows that it is cut off (deauthenticated, beacons lost, carrier gone).
        LinkLost = "link-lost",
        /// t1 begins: the station looks for access points.
        ScanStarted = "scan-started",
        /// t1 ends: the scan's results are there.
        ScanDone = "scan-done",
        /// t2 begins: 802.11 authentication asked for (SAE: commit).
        Authenticating = "authenticating",
        /// 802.11 authentication done.
        Authenticated = "authenticated",
        /// Association asked for.
        Associating = "associating",
        /// t2 ends: the access point has associated the station.
        Associated = "associated",
        /// t4 ends: the 4-way handshake, EAP or both are done, keys are in.
        Authorized = "authorized",
        /// The kernel says that the link carries (IFF_LOWER_UP, dormant no more).
        LinkUp = "link-up",
        /// t3 begins: DHCP's first message left.
        DhcpStarted = "dhcp-started",
        /// DHCP's acknowledgement came.
        DhcpBound = "dhcp-bound",
        /// Duplicate address detection began.
        DuplicateCheckStarted = "duplicate-check-started",
        /// Duplicate address detection ended.
        DuplicateCheckDone = "duplicate-check-done",
        /// The address is on the interface.
        AddressSet = "address-set",
        /// The default route is there.
        RouteSet = "route-set",
        /// The gateway is asked for its hardware address.
        GatewayAsked = "gateway-asked",
        /// t3 ends: the gateway's hardware address is known.
        GatewayKnown = "gateway-known",
        /// t5 begins: the security association is being set up.
        SecurityStarted = "security-started",
        /// t5 ends: the security association is in use.
        SecurityDone = "security-done",
        /// t6, t7: the peer, or the bridge of the sites, knows where the host is now.
        Bound = "bound",
        /// t8: the first packet was sent to the host's new place.
        Redirected = "redirected",
        /// A radio asks for block acknowledgements (IEEE 802.11-2020 §10.25.2), and holds frames of that priority back.
        HoldStarted = "hold-started",
        /// It has its answer, or has given up: the frames go.
        HoldEnded = "hold-ended",
        /// The trial ends.
        Ended = "ended",
    }
}

/// Something that happened, on the one clock of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When: since the run began.
    pub at: Time,
    /// Who saw it.
    pub source: Source,
    /// The kind of event.
    pub what: What,
    /// In the words of who saw it.
    #[serde(default)]
    pub detail: String,
}

/// A frame that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Its number, from 0.
    pub number: u64,
    /// When: since the run began.
    pub at: Time,
}

/// A frame that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Its number, from 0.
    pub number: u64,
    /// When it had left.
    pub sent: Time,
    /// When it came: since the run began.
    pub at: Time,
}

/// One direction of the traffic. Of frames that came in time only those around the gap are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Frames that left.
    pub sent: u64,
    /// Different frames that came.
    pub received: u64,
    /// Frames that came twice.
    pub duplicates: u64,
    /// Frames that came after one of a higher number.
    pub reordered: u64,
    /// Frames that came more than [`crate::LATE`] after they had left: somebody kept them.
    #[serde(default)]
    pub late: u64,
    /// Numbers that never came, as runs: first and last; at most 65536 runs.
    pub lost: Vec<(u64, u64)>,
    /// Frames before and after each of the longest gaps between arrivals, the longest first; at most 8.
    pub gaps: Vec<(Received, Received)>,
    /// The last frame that came.
    #[serde(default)]
    pub last: Option<Received>,
    /// When the first frame left and when the last did.
    pub span: (Time, Time),
}

/// What was seen of one handoff.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Frames per second offered in each direction.
    pub frames_per_second: u32,
    /// Bytes of a frame.
    pub frame: u32,
    /// How long traffic ran.
    pub trial: Delay,
    /// What happened, in order of time.
    pub events: Vec<Event>,
    /// From the host.
    pub up: Stream,
    /// To the host.
    pub down: Stream,
    /// Share of the machine's processor that was busy while traffic ran.
    pub busy: Probability,
}
