//! What each node of a [`Topology`](crate::path::Topology) does with a frame: pure, in place, without allocation.
//!
//! A [`Hop`] is a node in one direction, and a short list of steps:
//!
//! | node | steps |
//! |---|---|
//! | first | routed: [`Lan::strip`]; seal |
//! | provider edge | [`Push`](crate::vpws::Push) or [`Pop`](crate::vpws::Pop); encrypted on every hop, opened before and sealed after |
//! | provider | [`Swap`](crate::vpws::Swap), the same |
//! | switch or router | nothing; encrypted on every hop, open and seal |
//! | last | open; routed: [`Lan::dress`]; a slow [`Gateway`] if the path has one |
//!
//! Nodes are bumps in the wire (RFC 4301 §3.3): they count no hop off the tester's packets. Where IP packets alone
//! are carried, Ethernet's header and VLAN tag stay behind at the first node, and the last writes those that its
//! LAN expects.
//!
//! Call order: [`Plan::numbered`] or a plan of the caller's; [`nodes`]; for each frame [`Hop::handle`].

mod gateway;
mod lan;
mod node;
mod opener;
mod plan;
mod reason;
mod sealer;

pub use gateway::{Gateway, GatewayOptions};
pub use lan::Lan;
pub use node::{Hop, HopCounters, Node, nodes};
pub use opener::Opener;
pub use plan::{KeyId, Plan, PlaneError, VLAN, Way, address};
pub use reason::Reason;
pub use sealer::Sealer;

/// Room before a frame for all that any path puts there: L2TP over ESP with CBC, in UDP over IPv6 and PPPoE, takes 110
/// bytes, a pseudowire 22, or MACsec over MACsec's pseudowire 54.
pub const HEADROOM: u16 = 160;

/// Room behind a frame: ESP's padding, trailer and ICV take at most 33 bytes.
pub const TAILROOM: u16 = 64;

/// Numbers below the highest that ESP's anti-replay remembers.
const ESP_WINDOW: u32 = 64;

/// MACsec takes frames in order only (IEEE 802.1AE-2018 §10.7.8, replayWindow 0): with a wider window it would take
/// a frame twice.
const MACSEC_WINDOW: u32 = 0;

/// The number of every PPPoE session.
const PPPOE_SESSION: u16 = 1;

/// The port of WireGuard's datagrams, by custom.
const WIREGUARD_PORT: u16 = 51_820;
