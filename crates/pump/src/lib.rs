//! The link model on wall time, and how well it keeps time.
//!
//! One thread moves the frames of all links. A link joins two [`Port`]s: interfaces in the hub's
//! network namespace (AF_PACKET), or TAP devices of the nodes.
//!
//! ```text
//!  node a                     hub: the pump's thread                          node b
//!  veth ====> veth: ring ----> buffer -> linkmodel::Link -> outbox ----> veth ====> veth
//!                   (stamp)    (pool)       due time        (sendmmsg)
//! ```
//!
//! Call order: [`Builder::new`], [`Builder::add_link`], [`Builder::start`]; then [`Handle`] to add,
//! change, watch and remove links, and [`Handle::stop`]. [`calibrate()`] measures a pump on a rig of
//! the caller's.
//!
//! # Time
//! A frame's due time is computed by the model from its time of arrival: the kernel's stamp in the
//! ring, if sane, and not the time at which the pump got round to reading it. So what a wake-up is
//! late adds nothing to a delay, except to one shorter than the lateness. A TAP device gives no
//! stamps: there the time of reading counts, and a blocked pump reads some tens of microseconds
//! late. Each link begins anew with what the kernel delivers to it: over links one behind the
//! other, the release errors add up.
//!
//! How it waits ([`Timing`]): with real-time scheduling and a second processor it sleeps until
//! shortly before the due time and spins the rest, the margin following how late the timers are of
//! late; no spin is longer than 200 us, and no 100 ms see 50 ms of it. Otherwise it only blocks:
//! nothing spins on one processor, as in a guest with virtual time. A real-time pump that is busy
//! without pause rests 0.6 ms in every 10 ms, so that the kernel's throttle (50 ms in a second)
//! never stops it; its capacity is 6 % lower for that.
//!
//! # What limits it
//! Per frame: two copies (ring to buffer, buffer to the kernel), no allocation, no lock. On
//! AF_PACKET, receiving takes no system call, and sending one for up to 64 frames; on TAP one each
//! way for each frame. Most of a frame's CPU time is the kernel's: allocating the packet buffer,
//! the second copy, and the receiving node's protocol stack, which runs in the sender's context.
//! AF_PACKET's sender pays the pump's receive copy, too, so the nodes' side is the first limit
//! there. Not used: TX rings (their memory is still referenced by the receiver after the kernel
//! gives it back), TPACKET_V3 (blocks 1 ms late), AF_XDP (copies on veth).
//!
//! Measured 2026-11-21 on 2 processors of a virtual machine (Xeon 2.8 GHz, Linux 6.18) while five
//! other processes kept it busy; pump and sender under SCHED_RR; 1000-byte frames one way, 5 rounds
//! of veth and TAP in turn by
//! `cargo bench -p pump -- --cpu 1 --sender-realtime --bytes 1000 --rounds 5`; beside it what a bare
//! loop of the same calls forwarded on that machine, without a model and without rests:
//!
//! | | thousand frames/s, median (range) | ns CPU a frame, median | bare loop |
//! |---|---|---|---|
//! | veth | 731 (653 to 780), of 731 offered | 1244 | 683 |
//! | TAP | 837 (764 to 858) | 1122 | 887 |
//!
//! Of one run's time about 40 % on veth and 25 % on TAP was the pump's own; the rest was spent in
//! system calls. Release error of delays of 10 ms and 0.2 ms in the same runs: median 0.2 to
//! 0.5 us, 99th percentile 0.6 to 107 us. From stamp to stamp frames took 3 to 6 us longer than the
//! delay on veth, 9 to 46 us on TAP.
//!
//! An ordinary user's pump blocks, and shares the processors with all the rest: 5 rounds while one
//! to three other processes ran gave 480 (335 to 642) thousand frames/s on veth and 666 (276 to
//! 779) on TAP, at 1260 to 2040 ns a frame, since a pump that keeps up is woken for a few frames
//! at a time; median release error 29 to 70 us, 99th percentile 0.1 to 2.4 ms.
//!
//! # Memory
//! At most [`Options::buffers`] x 2 KiB (64 MiB by default, touched only as frames are under way)
//! for all links; and for each AF_PACKET port [`Options::ring_frames`] x 2.1 KiB of kernel memory
//! (4.3 MiB by default), for each link 0.2 MB of histograms and lists. Frames that find no room are
//! dropped and counted with their cause ([`PumpCounters`]).
//!
//! # Offload mode
//! [`Options::offload`] carries super-segments of up to 64 KB with their `virtio_net_hdr`, for bulk
//! flows. Delay, loss, rate and queue then act on super-segments: one loss takes up
//! to 45 segments with it, and a queue of 1000 packets holds 64 MB.
#![forbid(unsafe_code)]

mod calibrate;
mod calibration;
mod direction;
mod error;
mod handle;
mod options;
mod pace;
mod pool;
mod queue;
mod stats;
mod worker;

pub use calibrate::{CalibrationOptions, CalibrationRig, calibrate};
pub use calibration::{Calibration, Capacity, DelayCheck, DifferenceSummary, Warning};
pub use error::Error;
pub use handle::{Builder, Handle, LinkId};
pub use options::{FRAME_BYTES, Options, Realtime, SEGMENT_BYTES, Timing};
pub use packet::Port;
pub use queue::QueueWatch;
pub use stats::{DirectionStats, FinalStats, Mode, PumpCounters, Stats, ThreadStats, TimeSummary};
