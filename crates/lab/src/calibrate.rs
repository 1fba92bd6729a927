//! The lab measures itself: how late its links are, how many frames they carry.

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::Duration;

use packet::{PacketSocket, SocketOptions};
use pump::{Calibration, CalibrationOptions, CalibrationRig};

use crate::wiring::Joint;
use crate::{Backend, Error, Lab, LabOptions, LinkOptions, Node};

/// How often the calling thread looks whether the calibration has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Calibrates links such as a lab with these options makes, in a lab of its own that is gone
/// afterwards. Takes about 3 s. `progress` is told the part done, from 0 to 1, and what comes next;
/// it says whether to go on.
///
/// # Errors
/// [`Error::NoStats`] with netem and direct links, which have no pump to calibrate; what making a lab refuses;
/// [`Error::Pump`].
pub fn calibrate(
    options: &LabOptions,
    mut progress: impl FnMut(f64, &str) -> ControlFlow<()>,
) -> Result<Calibration, Error> {
    let mut lab = Lab::new(*options)?;
    if matches!(lab.backend(), Backend::Netem | Backend::Direct) {
        return Err(Error::NoStats);
    }
    let (a, b) = (lab.add_node("calibrate-a")?, lab.add_node("calibrate-b")?);
    let nodes = [a.clone(), b.clone()];
    let mut joint = Joint::new(1, nodes, options.seed, LinkOptions::default())?;
    let [port_a, port_b] = lab.ports(&mut joint)?;
    let rig = CalibrationRig {
        backend: lab.backend().to_string(),
        a: port_a,
        b: port_b,
        far_a: far_socket(&a, joint.interface_index(0))?,
        far_b: far_socket(&b, joint.interface_index(1))?,
    };
    let settings = CalibrationOptions {
        pump: options.pump,
        sender_cpu: options.node_cpu,
        ..CalibrationOptions::default()
    };
    let (reported, steps) = mpsc::channel();
    // On the hub's thread, for the ports are of the hub's namespace.
    let running = lab.hub().spawn(move || async move {
        pump::calibrate(rig, &settings, |done, step| {
            match reported.send((done, step.to_owned())) {
                Ok(()) => ControlFlow::Continue(()),
                // Nobody wants to know more.
                Err(_) => ControlFlow::Break(()),
            }
        })
    });
    let mut steps = Some(steps);
    while !running.is_finished() {
        let Some(hears) = &steps else {
            std::thread::sleep(LOOK);
            continue;
        };
        if let Ok((done, step)) = hears.recv_timeout(LOOK)
            && progress(done, &step).is_break()
        {
            steps = None;
        }
    }
    Ok(running.join()??)
}

/// A raw socket at a node's end of the link.
fn far_socket(node: &Node, interface: u32) -> Result<PacketSocket, Error> {
    let socket = node.run(move || PacketSocket::open(interface, &SocketOptions::default()))?;
    Ok(socket?)
}
