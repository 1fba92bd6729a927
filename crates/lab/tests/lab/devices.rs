//! Bridges and kernel devices of a node's own, and devices that it adopts.

use std::net::IpAddr;

use lab::{Addresses, DeviceKind, Error, Lab, LinkOptions};
use lab_test::{Need, Test, TestResult, skip};
use linkmodel::Path;

use crate::links::{echo, ping};
use crate::support::{enter, options};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("a_bridge_joins_the_links_of_its_node", bridge),
        Test::new("a_vxlan_carries_frames_over_a_link", vxlan),
        Test::new("devices_are_listed_added_and_removed", listed),
        Test::new("an_outer_device_is_adopted_and_given_back", adopted),
    ]
}

/// A link whose first end has this address, and whose second has none.
fn to_bridge(address: &str) -> TestResult<LinkOptions> {
    let addresses = Addresses::Given([vec![address.parse()?], Vec::new()]);
    Ok(LinkOptions { arp: true, addresses, ..LinkOptions::default() })
}

fn bridge() -> TestResult {
    enter()?;
    let mut lab = Lab::new(options())?;
    let (a, b, between) = (lab.add_node("a")?, lab.add_node("b")?, lab.add_node("bridge")?);
    let path = Path::symmetric("2ms".parse()?);
    lab.connect_with(&a, &between, &path, &to_bridge("192.0.2.1/24")?)?;
    lab.connect_with(&b, &between, &path, &to_bridge("192.0.2.2/24")?)?;
    let made = between.add_bridge("br0", &["link1", "link2"])?;
    assert_eq!((made.kind.as_deref(), made.up), (Some("bridge"), true));
    let devices = between.devices()?;
    assert_eq!(devices.iter().filter(|device| device.bridge == Some(made.index)).count(), 2);
    let times = ping(&a, echo(&b, IpAddr::V4(b.addr4()?))?, 2)?;
    // Over both links and back.
    assert!(times.iter().all(|time| time.as_millis() >= 4), "{times:?}");
    // The bridge may have an address itself.
    between.add_address("br0", "192.0.2.3/24".parse()?)?;
    ping(&a, echo(&between, "192.0.2.3".parse()?)?, 1)?;
    assert!(between.add_bridge("br1", &["link9"]).is_err());
    Ok(())
}

fn vxlan() -> TestResult {
    enter()?;
    let mut lab = Lab::new(options())?;
    let (a, b) = (lab.add_node("a")?, lab.add_node("b")?);
    lab.connect(&a, &b, &Path::symmetric("2ms".parse()?))?;
    let ends = [(&a, &b, "192.0.2.1/24"), (&b, &a, "192.0.2.2/24")];
    for (here, there, address) in ends {
        let (local, remote) = (here.addr4()?.into(), there.addr4()?.into());
        let kind = DeviceKind::Vxlan { on: "link1".to_owned(), id: 42, local, remote, port: 4789 };
        match here.add_device("overlay", &kind) {
            Err(Error::Unsupported { what: "vxlan", .. }) => {
                return skip(Need::Host, "no vxlan in this kernel");
            }
            made => assert_eq!(made?.mtu, 1450),
        }
        here.add_address("overlay", address.parse()?)?;
    }
    let times = ping(&a, echo(&b, "192.0.2.2".parse()?)?, 2)?;
    assert!(times.iter().all(|time| time.as_millis() >= 2), "{times:?}");
    Ok(())
}

fn listed() -> TestResult {
    enter()?;
    let mut lab = Lab::new(options())?;
    let (a, b) = (lab.add_node("a")?, lab.add_node("b")?);
    lab.connect(&a, &b, &Path::default())?;
    let names = |list: &[lab::Device]| list.iter().map(|d| d.name.clone()).collect::<Vec<_>>();
    let before = a.devices()?;
    assert_eq!(names(&before), ["lo", "link1"]);
    assert!(before[1].up && before[1].running);
    assert_eq!((before[1].mtu, before[1].mac.as_slice()), (1500, &a.ends()[0].mac[..]));
    a.add_bridge("br0", &[])?;
    assert_eq!(names(&a.devices()?), ["lo", "link1", "br0"]);
    assert!(matches!(a.add_bridge("br0", &[]), Err(Error::Netlink { .. })));
    a.remove_device("br0")?;
    assert_eq!(a.devices()?, before);
    assert!(a.remove_device("br0").is_err());
    for (kind, what) in
        [(DeviceKind::Dummy, "dummy"), (DeviceKind::Vlan { on: "link1".to_owned(), id: 7 }, "vlan")]
    {
        // Either the kernel has it, or it is reported by its name.
        match a.add_device("new", &kind) {
            Ok(device) => {
                assert_eq!(device.kind.as_deref(), Some(what));
                a.remove_device("new")?;
            }
            Err(Error::Unsupported { what: named, .. }) => assert_eq!(named, what),
            Err(other) => return Err(other.into()),
        }
    }
    Ok(())
}

/// In a network namespace of its own before the lab is entered, so that no device of the machine is
/// touched.
fn adopted() -> TestResult {
    if !lab::inside() {
        // SAFETY: cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return skip(Need::Root, "an ordinary user has no devices to give");
        }
        // SAFETY: moves this process, which has one thread, into a new network namespace.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return skip(Need::Lab, "no network namespace to be had");
        }
        let Ok(tap) = packet::Tap::create("outer0") else {
            return skip(Need::Tap, "no TAP device to be had");
        };
        // The outer process waits for the lab's end within `enter`; its device lives as long.
        std::mem::forget(tap);
    }
    lab::enter(&lab::EnterOptions::new().keep_rights(true))?;
    if lab::entered().is_none_or(|entered| entered.user_namespace) {
        let node = Lab::new(options())?.add_node("a")?;
        assert!(matches!(node.adopt("outer0"), Err(Error::NoRights { .. })));
        return Ok(());
    }
    for _ in 0..2 {
        // The second lab finds what the first has given back.
        let mut lab = Lab::new(options())?;
        let node = lab.add_node("a")?;
        let device = node.adopt("outer0")?;
        assert_eq!((device.name.as_str(), device.up), ("outer0", true));
        assert_eq!(node.devices()?.len(), 2);
        assert!(node.adopt("outer0").is_err());
        assert!(node.adopt("lo").is_err());
    }
    Ok(())
}
