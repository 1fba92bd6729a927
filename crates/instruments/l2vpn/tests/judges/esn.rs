//! ESP with sequence numbers of 64 bits (RFC 4303 §2.2.1), against the kernel's.

use l2vpn::{Direction, KernelOptions, Side, Span, ends, keys};
use lab_test::TestResult;
use seclink::esp::{Inbound, Outbound, Parameters};
use seclink::path::{Cipher, Protection, Topology};
use seclink::plane::{Hop, Opener, Plan, Reason, Sealer};
use seclink::underlay::Underlay;

use super::meet::{Meeting, pass};
use super::port::{frame, kept};
use super::{SEED, every_cipher};

/// Both ways with every cipher. The upper half is not sent, but it is authenticated: another one would not do.
pub fn extended() -> TestResult {
    for path in &every_cipher(&[Protection::Esp]) {
        meet(path).map_err(|error| format!("{:?}: {error}", path.cipher))?;
    }
    Ok(())
}

/// ESP's parameters of one way.
fn parameters(span: &Span, cipher: Cipher, direction: Direction) -> Parameters {
    let suite = cipher.esp().expect("a cipher of ESP");
    let key = keys(SEED, Protection::Esp, span.number, direction, suite.key_material());
    Parameters { spi: span.spi(direction), suite, key: key.into_secret(), extended: true }
}

fn meet(path: &Topology) -> TestResult {
    let mut met =
        Meeting::new(path, &KernelOptions { extended: true, ..KernelOptions::default() })?;
    let [span] = ends::spans(path)[..] else { return Err("one span".into()) };
    let plan = Plan::numbered(path);
    let [mut own, mut peer] = plan.links[0];
    [own.ip, peer.ip] = plan.through;
    let (underlay, lan) = (Underlay::between(own, peer), Some(plan.lans[0]));
    let outbound = Outbound::new(parameters(&span, path.cipher, Direction::Forward))?;
    let mut sealing = Hop::sealing(lan, Sealer::Esp { outbound: Box::new(outbound), underlay });
    let inbound = Inbound::new(parameters(&span, path.cipher, Direction::Backward), Some(64))?;
    let mut opening = Hop::opening(Opener::Esp { inbound: Box::new(inbound), underlay }, lan);

    for number in 0..5 {
        let sent = frame(&met.standing, Side::Left, 300, number);
        let sealed = pass(&mut sealing, &sent).map_err(|why| why.to_string())?;
        met.link.send(&sealed)?;
        let came = met.tester.next()?;
        assert_eq!(kept(&met.standing, &came), kept(&met.standing, &sent));
        // Once more is once too often.
        met.link.send(&sealed)?;

        let sent = frame(&met.standing, Side::Right, 300, number);
        met.tester.send(&sent)?;
        let sealed = met.next_sealed()?;
        let came = pass(&mut opening, &sealed).map_err(|why| why.to_string())?;
        assert_eq!(kept(&met.standing, &came), kept(&met.standing, &sent));
        assert_eq!(pass(&mut opening, &sealed), Err(Reason::EspReplayed));
    }
    // Far ahead, and at last in the next round of the lower half: the kernel takes the upper half to be one more.
    for first in [0x8000_0000, 0xffff_fff0, 0x1_0000_0001] {
        let parameters = parameters(&span, path.cipher, Direction::Forward);
        let outbound = Box::new(Outbound::beginning(parameters, first)?);
        let mut ahead = Hop::sealing(lan, Sealer::Esp { outbound, underlay });
        let sent = frame(&met.standing, Side::Left, 300, 99);
        let sealed = pass(&mut ahead, &sent).map_err(|why| why.to_string())?;
        met.link.send(&sealed)?;
        let came = met.tester.next().map_err(|error| format!("from {first:#x} on: {error}"))?;
        assert_eq!(kept(&met.standing, &came), kept(&met.standing, &sent));
    }
    let drops: Vec<_> = met.standing.drops()?;
    assert_eq!(drops, [("XfrmInStateSeqError".to_owned(), 5)]);
    Ok(())
}
