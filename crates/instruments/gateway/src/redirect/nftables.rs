//! Messages of nf_tables over netlink (linux/netlink.h, linux/netfilter/nf_tables.h): as much as a
//! redirect needs. A batch is taken whole or not at all.

use std::io::{self, Read};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

const AF_NETLINK: i32 = 16;
const NETLINK_NETFILTER: i32 = 12;
/// NFPROTO_NETDEV: hooks of a device.
const FAMILY: u8 = 5;
/// NFNL_SUBSYS_NFTABLES (linux/netfilter/nfnetlink.h).
const SUBSYSTEM: u16 = 10;

/// What a message asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    BatchBegin = 0x10,
    BatchEnd = 0x11,
    NewTable = (SUBSYSTEM as isize) << 8,
    NewChain = (SUBSYSTEM as isize) << 8 | 3,
    NewRule = (SUBSYSTEM as isize) << 8 | 6,
    NewSet = (SUBSYSTEM as isize) << 8 | 9,
}

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_APPEND: u16 = 0x800;
const NLMSG_ERROR: u16 = 2;
const NLA_F_NESTED: u16 = 0x8000;
/// Bytes of nlmsghdr.
const HEADER: usize = 16;

/// Where a payload expression counts its offset from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Network = 1,
    Transport = 2,
}

/// What is known of a packet besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meta {
    Protocol = 1,
    L4Protocol = 16,
}

/// A list of attributes (struct nlattr): length, type, value, padding to 4 bytes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Attributes(Vec<u8>);

impl Attributes {
    fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        let len = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        self.0.extend(len.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// nf_tables has its numbers in network byte order.
    fn number(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    fn text(self, kind: u16, value: &str) -> Self {
        self.bytes(kind, &[value.as_bytes(), &[0]].concat())
    }

    fn nest(self, kind: u16, value: Attributes) -> Self {
        self.bytes(kind | NLA_F_NESTED, &value.0)
    }

    /// NFTA_DATA_VALUE, nested in an attribute of this kind.
    fn data(self, kind: u16, value: &[u8]) -> Self {
        self.nest(kind, Attributes::default().bytes(1, value))
    }
}

/// The expressions of a rule, in their order; the rule ends at the first that does not hold. All use
/// the register 1, and the last but one of a hand-over the register 2.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Rule(Attributes);

impl Rule {
    fn expression(self, name: &str, data: Attributes) -> Self {
        let expression = Attributes::default().text(1, name).nest(2, data);
        // NFTA_LIST_ELEM.
        Rule(self.0.nest(1, expression))
    }

    fn load(self, base: Base, offset: u32, len: u32) -> Self {
        let data = Attributes::default().number(1, 1).number(2, base as u32);
        self.expression("payload", data.number(3, offset).number(4, len))
    }

    fn compare(self, value: &[u8]) -> Self {
        // NFT_CMP_EQ is 0.
        self.expression("cmp", Attributes::default().number(1, 1).number(2, 0).data(3, value))
    }

    /// The packet is of this protocol.
    pub(super) fn meta(self, key: Meta, value: &[u8]) -> Self {
        self.expression("meta", Attributes::default().number(2, key as u32).number(1, 1))
            .compare(value)
    }

    /// The packet has these bytes there.
    pub(super) fn is(self, base: Base, offset: u32, value: &[u8]) -> Self {
        let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
        self.load(base, offset, len).compare(value)
    }

    /// The packet has the bits of `value` there that `mask` has.
    pub(super) fn masked(self, base: Base, offset: u32, value: [u8; 4], mask: [u8; 4]) -> Self {
        let data = Attributes::default().number(1, 1).number(2, 1).number(3, 4);
        self.load(base, offset, 4)
            .expression("bitwise", data.data(4, &mask).data(5, &[0; 4]))
            .compare(&value)
    }

    /// The packet has a port there that is in the set.
    pub(super) fn port_in(self, set: &str, base: Base, offset: u32) -> Self {
        let data = Attributes::default().text(1, set).number(2, 1).number(4, SET_ID);
        self.load(base, offset, 2).expression("lookup", data)
    }

    /// Puts the port that is there into the set, or renews it.
    pub(super) fn remember_port(self, set: &str, base: Base, offset: u32) -> Self {
        // NFT_DYNSET_OP_UPDATE is 1.
        let data = Attributes::default().text(1, set).number(2, SET_ID).number(3, 1).number(4, 1);
        self.load(base, offset, 2).expression("dynset", data)
    }

    /// The packet leaves by the device of this index, to this neighbour.
    pub(super) fn forward(self, device: u32, neighbour: [u8; 4]) -> Self {
        let immediate =
            |register, value: &[u8]| Attributes::default().number(1, register).data(2, value);
        // NFPROTO_IPV4 is 2.
        let forward = Attributes::default().number(1, 1).number(2, 2).number(3, 2);
        self.expression("immediate", immediate(1, &device.to_ne_bytes()))
            .expression("immediate", immediate(2, &neighbour))
            .expression("fwd", forward)
    }
}

/// The number of a table's only set within its batch.
const SET_ID: u32 = 1;

/// A table that is to be, with all that is in it.
#[derive(Debug)]
pub(super) struct Batch {
    table: String,
    messages: Vec<u8>,
    /// Messages so far, which is the next one's sequence number.
    count: u32,
}

impl Batch {
    /// A table of the netdev family that goes with the socket that made it.
    pub(super) fn new(table: &str) -> Batch {
        let mut batch = Batch { table: table.to_owned(), messages: Vec::new(), count: 0 };
        batch.message(Kind::BatchBegin, 0, Attributes::default());
        // NFT_TABLE_F_OWNER.
        let owned = Attributes::default().text(1, table).number(2, 2);
        batch.message(Kind::NewTable, NLM_F_ACK | NLM_F_CREATE, owned);
        batch
    }

    /// A chain at the ingress of a device.
    pub(super) fn chain(&mut self, name: &str, device: &str, priority: i32) {
        let hook =
            Attributes::default().number(1, 0).bytes(2, &priority.to_be_bytes()).text(3, device);
        // NF_ACCEPT is 1.
        let chain = Attributes::default().text(1, &self.table).text(3, name).nest(4, hook);
        let chain = chain.number(5, 1).text(7, "filter");
        self.message(Kind::NewChain, NLM_F_ACK | NLM_F_CREATE, chain);
    }

    /// The set of ports, each of which is forgotten so long after it was last put in.
    pub(super) fn ports(&mut self, name: &str, remembered: Duration) {
        // NFT_SET_TIMEOUT and NFT_SET_EVAL; inet_service, as nft shows it, of 2 bytes.
        let set = Attributes::default().text(1, &self.table).text(2, name).number(3, 0x30);
        let set = set.number(4, 13).number(5, 2).number(10, SET_ID);
        let set = set.nest(9, Attributes::default().number(1, 65_535));
        let milliseconds = u64::try_from(remembered.as_millis()).unwrap_or(u64::MAX);
        let set = set.bytes(11, &milliseconds.to_be_bytes());
        self.message(Kind::NewSet, NLM_F_ACK | NLM_F_CREATE, set);
    }

    /// A rule at the end of a chain.
    pub(super) fn rule(&mut self, chain: &str, rule: Rule) {
        let rule = Attributes::default().text(1, &self.table).text(2, chain).nest(4, rule.0);
        self.message(Kind::NewRule, NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND, rule);
    }

    fn message(&mut self, kind: Kind, flags: u16, attributes: Attributes) {
        let batch = matches!(kind, Kind::BatchBegin | Kind::BatchEnd);
        // struct nfgenmsg: a batch says whose messages it has.
        let [high, low] = if batch { SUBSYSTEM } else { 0 }.to_be_bytes();
        let family = if batch { 0 } else { FAMILY };
        let len = u32::try_from(HEADER + 4 + attributes.0.len()).unwrap_or(u32::MAX);
        self.messages.extend(len.to_ne_bytes());
        self.messages.extend((kind as u16).to_ne_bytes());
        self.messages.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        self.messages.extend(self.count.to_ne_bytes());
        self.messages.extend([0; 4]);
        self.messages.extend([family, 0, high, low]);
        self.messages.extend(attributes.0);
        self.count += 1;
    }

    /// Has the kernel make the table. It is there for as long as the socket.
    pub(super) fn commit(mut self) -> io::Result<Socket> {
        self.message(Kind::BatchEnd, 0, Attributes::default());
        // All but the batch's ends are acknowledged.
        let mut awaited = self.count - 2;
        let family = Domain::from(AF_NETLINK);
        let socket = Socket::new(family, Type::RAW, Some(Protocol::from(NETLINK_NETFILTER)))?;
        socket.set_read_timeout(Some(LIMIT))?;
        socket.send(&self.messages)?;
        let mut answer = vec![0; 32 << 10];
        while awaited > 0 {
            let len = (&socket).read(&mut answer)?;
            for error in errors(answer.get(..len).unwrap_or_default()) {
                if error != 0 {
                    return Err(io::Error::from_raw_os_error(error.saturating_neg()));
                }
                awaited = awaited.saturating_sub(1);
            }
        }
        Ok(socket)
    }
}

/// The longest that the kernel may take.
const LIMIT: Duration = Duration::from_secs(10);

/// What messages of acknowledgment say: 0, or an error's number below it.
fn errors(mut messages: &[u8]) -> Vec<i32> {
    let mut found = Vec::new();
    while let Some(len) = messages.first_chunk().map(|len| u32::from_ne_bytes(*len) as usize) {
        let Some(message) = messages.get(..len).filter(|_| len >= HEADER) else { break };
        let kind = message.get(4..6).and_then(|kind| kind.first_chunk());
        let error = message.get(HEADER..).and_then(|body| body.first_chunk());
        if let (Some(kind), Some(error)) = (kind, error)
            && u16::from_ne_bytes(*kind) == NLMSG_ERROR
        {
            found.push(i32::from_ne_bytes(*error));
        }
        messages = messages.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn messages_are_as_nft_writes_them() {
        let batch = Batch::new("t");
        let begin = [20, 0, 0, 0, 16, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10];
        let table = [36, 0, 0, 0, 0, 10, 5, 4, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0];
        let name = [6, 0, 1, 0, b't', 0, 0, 0, 8, 0, 2, 0, 0, 0, 0, 2];
        assert_eq!(batch.messages, [&begin[..], &table, &name].concat());
        // nft --debug=mnl add rule ... tcp dport 443
        let rule = Rule::default().is(Base::Transport, 2, &443u16.to_be_bytes());
        let payload = b"\x34\0\x01\x80\x0c\0\x01\0payload\0\x24\0\x02\x80\x08\0\x01\0\0\0\0\x01\
                        \x08\0\x02\0\0\0\0\x02\x08\0\x03\0\0\0\0\x02\x08\0\x04\0\0\0\0\x02";
        let cmp = b"\x2c\0\x01\x80\x08\0\x01\0cmp\0\x20\0\x02\x80\x08\0\x01\0\0\0\0\x01\
                    \x08\0\x02\0\0\0\0\0\x0c\0\x03\x80\x06\0\x01\0\x01\xbb\0\0";
        assert_eq!(rule.0.0, [&payload[..], cmp].concat());
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn answers_are_read_and_nonsense_is_not() {
        let answer = |error: i32| {
            let header = [36, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
            [&header[..], &error.to_le_bytes(), &[0; 16]].concat()
        };
        assert_eq!(errors(&[answer(0), answer(-1)].concat()), [0, -1]);
        assert_eq!(errors(&answer(-1)[..30]), [0; 0]);
        for nonsense in [&[][..], &[0; 40], &[255; 40], &[16, 0, 0, 0, 2, 0, 0, 0]] {
            assert_eq!(errors(nonsense), [0; 0]);
        }
    }
}
