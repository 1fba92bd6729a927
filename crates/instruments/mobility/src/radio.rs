//! Radios that the kernel simulates (mac80211_hwsim): made where the program is, moved to a node, and put in or out
//! of reach.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use l2vpn::kernel::generic::{ask, attribute, with_null};
use lab::Node;
use rustix::mount::{MountFlags, mount};

use crate::Error;
use crate::holds::TRACING;

// drivers/net/wireless/mac80211_hwsim.h
const HWSIM: &str = "MAC80211_HWSIM";
const HWSIM_CMD_NEW_RADIO: u8 = 4;
const HWSIM_CMD_DEL_RADIO: u8 = 5;
const HWSIM_ATTR_RADIO_NAME: u16 = 17;
// linux/nl80211.h
const NL80211: &str = "nl80211";
const NL80211_CMD_SET_WIPHY_NETNS: u8 = 49;
const NL80211_ATTR_WIPHY: u16 = 1;
const NL80211_ATTR_NETNS_FD: u16 = 219;

/// Where the kernel shows what is for developers.
const DEBUG: &str = "/sys/kernel/debug";
/// The power with which radios send, in dBm.
const POWER: i32 = 20;
/// Radios of one group hear each other.
const IN_REACH: u32 = 1;
const OUT_OF_REACH: u32 = 2;

/// A radio on a node. It goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Radio {
    name: String,
    node: Node,
    /// Its interface on the node.
    pub(crate) interface: String,
    /// Its Ethernet address.
    pub(crate) mac: String,
}

impl Radio {
    /// Makes one. Radios hear only those that were made in the same network namespace, wherever they are moved: so
    /// that this must be called outside of the nodes.
    pub(crate) fn make(name: &str, node: &Node) -> Result<Radio, Error> {
        let failed = |doing: &str| Error::radio(format!("{doing} the radio {name}"));
        let mut attributes = Vec::new();
        attribute(&mut attributes, HWSIM_ATTR_RADIO_NAME, &with_null(name));
        ask(HWSIM, HWSIM_CMD_NEW_RADIO, &attributes).map_err(failed("making"))?;
        let wiphy = number(name).map_err(failed("looking for"))?;
        let mac = address(name).map_err(failed("looking for the interface of"))?;
        let namespace = node.run(|| File::open("/proc/thread-self/ns/net"))?;
        let namespace = namespace.map_err(failed("opening a namespace for"))?;
        let mut attributes = Vec::new();
        attribute(&mut attributes, NL80211_ATTR_WIPHY, &wiphy.to_ne_bytes());
        let descriptor = namespace.as_raw_fd().cast_unsigned();
        attribute(&mut attributes, NL80211_ATTR_NETNS_FD, &descriptor.to_ne_bytes());
        ask(NL80211, NL80211_CMD_SET_WIPHY_NETNS, &attributes).map_err(failed("moving"))?;
        // The kernel gives it another name where the node has one of the same.
        let devices = node.devices()?;
        let moved = devices.into_iter().find(|device| written(&device.mac) == mac);
        let moved = moved.ok_or_else(|| io::ErrorKind::NotFound.into());
        let interface = moved.map_err(failed("looking on its node for"))?.name;
        let radio = Radio { name: name.to_owned(), node: node.clone(), interface, mac };
        radio.reach(true)?;
        Ok(radio)
    }

    /// Whether others hear it, and it them. Nobody is told.
    pub(crate) fn reach(&self, reached: bool) -> Result<(), Error> {
        let group = if reached { IN_REACH } else { OUT_OF_REACH };
        self.set("group", &group.to_string())
    }

    /// The signal with which others hear it, in dBm.
    pub(crate) fn signal(&self, dbm: i32) -> Result<(), Error> {
        // The power of the sender is added.
        let dbm = dbm.saturating_sub(POWER);
        // Kernels before 6.2 take no sign, but the number's bits.
        let bits = i64::from(dbm).cast_unsigned().to_string();
        self.set("rx_rssi", &bits).or_else(|_| self.set("rx_rssi", &dbm.to_string()))
    }

    fn set(&self, file: &str, value: &str) -> Result<(), Error> {
        let path = Path::new(DEBUG).join("ieee80211").join(&self.name).join("hwsim").join(file);
        let doing = format!("setting {file} of the radio {} to {value}", self.name);
        fs::write(path, value).map_err(Error::radio(doing))
    }
}

impl Drop for Radio {
    fn drop(&mut self) {
        let mut attributes = Vec::new();
        attribute(&mut attributes, HWSIM_ATTR_RADIO_NAME, &with_null(&self.name));
        // Only from where it is now.
        let gone = self.node.run(move || ask(HWSIM, HWSIM_CMD_DEL_RADIO, &attributes));
        match gone {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(radio = self.name, %error, "a radio stays"),
            Err(error) => tracing::warn!(radio = self.name, %error, "a radio stays"),
        }
    }
}

/// Makes the developers' files visible: those by which radios are put out of reach, and what the kernel records.
pub(crate) fn prepare() -> Result<(), Error> {
    for (kind, place) in [("debugfs", DEBUG), ("tracefs", TRACING)] {
        match mount(kind, place, kind, MountFlags::empty(), None::<&std::ffi::CStr>) {
            Ok(()) | Err(rustix::io::Errno::BUSY) => {}
            Err(error) => return Err(Error::radio(format!("mounting {kind}"))(error.into())),
        }
    }
    Ok(())
}

/// The number of a radio.
fn number(name: &str) -> io::Result<u32> {
    let text = fs::read_to_string(Path::new("/sys/class/ieee80211").join(name).join("index"))?;
    text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The Ethernet address of a radio's interface.
fn address(name: &str) -> io::Result<String> {
    for entry in fs::read_dir("/sys/class/net")? {
        let path = entry?.path();
        let of = fs::read_to_string(path.join("phy80211/name")).unwrap_or_default();
        if of.trim() == name {
            return Ok(fs::read_to_string(path.join("address"))?.trim().to_owned());
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// An Ethernet address as the kernel writes it.
pub(crate) fn written(mac: &[u8]) -> String {
    mac.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}
