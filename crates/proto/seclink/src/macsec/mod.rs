//! MACsec's data plane (IEEE 802.1AE-2018): a transmitting secure channel, and a receiving SecY.
//!
//! A frame is a whole Ethernet frame without preamble and frame check sequence. [`Transmit::seal`] puts tag and
//! ICV in, [`Receive::open`] takes them out and says what becomes of the frame, counted as the standard
//! counts.

mod counters;
mod receive;
mod suite;
mod transmit;

pub use counters::{ChannelCounters, ReceiveCounters, TransmitCounters};
pub use receive::{Dropped, Opened, Receive, ReceiveAssociation, Validation};
pub use suite::{Association, Extended, Suite};
pub use transmit::{Naming, Transmit, TransmitAssociation};

pub use wire::mka::Confidentiality;

/// Bytes of the two addresses, which stay in front of the tag (§9.1).
const ADDRESSES_LEN: usize = 12;

/// Bytes of an EtherType.
const ETHER_TYPE_LEN: usize = 2;

/// Bytes of the ICV of every cipher suite here.
pub const ICV_LEN: usize = crate::aead::TAG_LEN;
