//! AF_PACKET sockets.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::Error;
use crate::sys::{get_option, set_option, socket};

/// Whether a socket shares what its interface receives with others: each frame goes to one of them, by a
/// hash of the two ends of its flow, whichever sent. Fragments of IPv4 are put together before. Of tunnels
/// over UDP only the outer ends count, whose ports may differ by direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fanout {
    /// It gets all.
    #[default]
    Alone,
    /// It begins a new group.
    Begin,
    /// It joins the group that another one began ([`PacketSocket::fanout_group`]).
    Join(u16),
}

/// How an AF_PACKET socket behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketOptions {
    /// Do not receive what this host itself sends out of the interface
    /// (`PACKET_IGNORE_OUTGOING`). A capture wants both directions, a link only one.
    pub ignore_outgoing: bool,
    /// Sent frames go straight to the device, past the queueing discipline
    /// (`PACKET_QDISC_BYPASS`).
    pub qdisc_bypass: bool,
    /// Every frame has a [`crate::vnet::HEADER_LEN`]-byte `virtio_net_hdr` before it, so that
    /// super-segments and unfinished checksums pass (`PACKET_VNET_HDR`).
    pub vnet_header: bool,
    /// Receive frames for other stations too. Of no effect on veth and TAP, which filter nothing.
    pub promiscuous: bool,
    /// Whether it shares what it receives with others (`PACKET_FANOUT`); of receive rings of blocks only.
    pub fanout: Fanout,
    /// Bytes of send buffer, capped by the kernel at `net.core.wmem_max`; `None` for its default.
    pub send_buffer: Option<u32>,
}

impl Default for SocketOptions {
    /// One end of a link: incoming frames only, no queueing discipline, plain frames.
    fn default() -> Self {
        SocketOptions {
            ignore_outgoing: true,
            qdisc_bypass: true,
            vnet_header: false,
            promiscuous: false,
            fanout: Fanout::Alone,
            send_buffer: None,
        }
    }
}

/// A raw AF_PACKET socket, non-blocking, of the network namespace in which it was opened; it may
/// be used from any thread thereafter.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    vnet_header: bool,
}

impl PacketSocket {
    /// A socket of the calling thread's network namespace that receives nothing until
    /// [`PacketSocket::bind`].
    ///
    /// # Errors
    /// [`Error::RawSocketsForbidden`] without CAP_NET_RAW in the namespace;
    /// [`Error::Unsupported`] if the kernel lacks AF_PACKET or an option.
    pub fn new(options: &SocketOptions) -> Result<Self, Error> {
        let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0).map_err(open_error)?;
        let this = PacketSocket { fd, vnet_header: options.vnet_header };
        this.set(libc::PACKET_IGNORE_OUTGOING, options.ignore_outgoing, "PACKET_IGNORE_OUTGOING")?;
        this.set(libc::PACKET_QDISC_BYPASS, options.qdisc_bypass, "PACKET_QDISC_BYPASS")?;
        this.set(libc::PACKET_VNET_HDR, options.vnet_header, "PACKET_VNET_HDR")?;
        if let Some(bytes) = options.send_buffer {
            let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
            set_option(this.fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, bytes)
                .map_err(|source| Error::System { doing: "setting the send buffer", source })?;
        }
        Ok(this)
    }

    /// A socket bound to the interface with index `interface`.
    ///
    /// # Errors
    /// As [`PacketSocket::new`] and [`PacketSocket::bind`].
    pub fn open(interface: u32, options: &SocketOptions) -> Result<Self, Error> {
        let socket = PacketSocket::new(options)?;
        socket.bind(interface)?;
        if options.promiscuous {
            socket.join_promiscuous(interface)?;
        }
        Ok(socket)
    }

    /// Receives from and sends to the interface with index `interface` from now on, all protocols.
    ///
    /// # Errors
    /// [`Error::NoInterface`] if the socket's namespace has none of that index.
    pub fn bind(&self, interface: u32) -> Result<(), Error> {
        let index = libc::c_int::try_from(interface)
            .map_err(|_| Error::NoInterface { name: format!("number {interface}") })?;
        // SAFETY: `sockaddr_ll` is a C struct of integers; all zeroes is valid.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        // SAFETY: pointer and length describe `address`, which lives through the call.
        let result = unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                (&raw const address).cast(),
                mem::size_of_val(&address) as libc::socklen_t,
            )
        };
        if result == 0 {
            return Ok(());
        }
        let source = io::Error::last_os_error();
        match source.raw_os_error() {
            Some(libc::ENODEV) => Err(Error::NoInterface { name: format!("number {interface}") }),
            _ => Err(Error::System { doing: "binding a packet socket", source }),
        }
    }

    /// Whether frames carry a `virtio_net_hdr`.
    #[must_use]
    pub fn has_vnet_header(&self) -> bool {
        self.vnet_header
    }

    /// Takes the socket's pending error, such as the interface having gone down. It must be taken
    /// before the socket is polled again, or the poll returns at once.
    pub fn take_error(&self) -> Option<io::Error> {
        match get_option::<libc::c_int>(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR) {
            Ok(0) => None,
            Ok(code) => Some(io::Error::from_raw_os_error(code)),
            Err(error) => Some(error),
        }
    }

    pub(crate) fn set(&self, option: i32, on: bool, name: &'static str) -> Result<(), Error> {
        match set_option(self.fd.as_fd(), libc::SOL_PACKET, option, libc::c_int::from(on)) {
            Ok(()) => Ok(()),
            // An option that is off anyway need not be known.
            Err(_) if !on => Ok(()),
            Err(source) => {
                Err(Error::Unsupported { what: name, remedy: "use Linux 4.20 or newer", source })
            }
        }
    }

    /// Shares from now on; the socket must be bound.
    pub(crate) fn share(&self, fanout: Fanout) -> Result<(), Error> {
        let (group, begins) = match fanout {
            Fanout::Alone => return Ok(()),
            Fanout::Begin => (0, libc::PACKET_FANOUT_FLAG_UNIQUEID),
            Fanout::Join(group) => (group, 0),
        };
        let kind = libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_DEFRAG | begins;
        let value = (kind as libc::c_int) << 16 | libc::c_int::from(group);
        set_option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_FANOUT, value).map_err(
            |source| {
                let remedy = "capture on one thread, or use Linux 4.12 or newer";
                Error::Unsupported { what: "PACKET_FANOUT", remedy, source }
            },
        )
    }

    /// The group that it shares with, for others to join.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn fanout_group(&self) -> Result<u16, Error> {
        get_option::<libc::c_int>(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_FANOUT)
            .map(|value| (value & 0xffff) as u16)
            .map_err(|source| Error::System { doing: "reading a socket's fanout group", source })
    }

    pub(crate) fn join_promiscuous(&self, interface: u32) -> Result<(), Error> {
        let request = libc::packet_mreq {
            mr_ifindex: interface as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, request)
            .map_err(|source| Error::System { doing: "entering promiscuous mode", source })
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn open_error(source: io::Error) -> Error {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Error::RawSocketsForbidden { source },
        Some(libc::EAFNOSUPPORT) => Error::Unsupported {
            what: "AF_PACKET sockets",
            remedy: "load the module `af_packet` or use a kernel built with CONFIG_PACKET",
            source,
        },
        _ => Error::System { doing: "opening a packet socket", source },
    }
}
