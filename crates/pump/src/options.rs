//! How a pump runs.

use serde::{Deserialize, Serialize};

/// How a pump waits for the next due time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// [`Timing::Spin`] where it is allowed, else [`Timing::Block`].
    #[default]
    Auto,
    /// Sleep until the due time. Frames leave some tens of microseconds late.
    Block,
    /// Sleep until shortly before the due time and spin for the rest: at most 200 us at a time
    /// and less than half of any 100 ms. It needs real-time scheduling and a second processor;
    /// without them the pump blocks, and says so ([`crate::Mode`]).
    Spin,
}

/// Whether a pump asks for real-time scheduling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Realtime {
    /// Ask for SCHED_RR, and do without where it is refused.
    #[default]
    Try,
    /// Stay with the ordinary scheduler.
    Off,
}

/// Longest frame carried in single-frame mode, in bytes: MTU 1500, Ethernet header, two VLAN tags
/// and room for an encapsulation.
pub const FRAME_BYTES: u32 = 2000;
/// Longest super-segment carried in offload mode, in bytes.
pub const SEGMENT_BYTES: u32 = 65_535 + 22;

/// Longest frame of a link with jumbo frames, in bytes: the usual MTU of 9000 and room.
const JUMBO_BYTES: u32 = 9300;
/// What a frame has besides the MTU's bytes: an Ethernet header and two VLAN tags.
const HEADERS: u32 = 22;
/// Frames that a port of large frames holds at least.
const FEWEST_RING_FRAMES: u32 = 128;

/// Room for the frames of one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// Longest frame that is carried.
    pub(crate) frame_bytes: u32,
    /// Frames that all links of this size hold together.
    pub(crate) buffers: u32,
    /// Frames that each AF_PACKET port holds.
    pub(crate) ring_frames: u32,
}

/// How a pump runs. The default suits a laboratory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// How it waits.
    pub timing: Timing,
    /// How it is scheduled.
    pub realtime: Realtime,
    /// The processor it stays on; any if not given.
    pub cpu: Option<usize>,
    /// Frames that all links together hold at one time; one that finds no buffer is dropped and
    /// counted. Address space for all is taken at the start, memory only as it is first used: at
    /// most 2 KiB a frame, in offload mode 64 KiB.
    pub buffers: u32,
    /// Frames that each AF_PACKET port holds until the pump takes them: about 2 KiB each of
    /// kernel memory, in offload mode 64 KiB.
    pub ring_frames: u32,
    /// Carry super-segments of up to 64 KB and unfinished checksums (`virtio_net_hdr`), for bulk
    /// flows. The nodes' offloads then stay on. Off by default, because delay, loss, rate and
    /// queue then act on super-segments instead of on the frames of the wire: one loss takes up
    /// to 45 segments with it.
    pub offload: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            timing: Timing::Auto,
            realtime: Realtime::Try,
            cpu: None,
            buffers: 32_768,
            ring_frames: 2048,
            offload: false,
        }
    }
}

impl Options {
    /// The default for bulk flows in super-segments: [`Options::offload`], 2048 buffers, rings of
    /// 128 frames.
    #[must_use]
    pub fn offload() -> Self {
        Options { buffers: 2048, ring_frames: 128, offload: true, ..Options::default() }
    }

    /// Longest frame that is carried.
    #[must_use]
    pub const fn frame_bytes(&self) -> u32 {
        if self.offload { SEGMENT_BYTES } else { FRAME_BYTES }
    }

    /// The room of links whose frames carry at most `mtu` bytes: links of one size share buffers, and
    /// longer frames have fewer, so that the memory stays the same.
    pub(crate) fn size_for(&self, mtu: u32) -> Size {
        let usual = self.frame_bytes();
        let longest = mtu.saturating_add(HEADERS);
        let Some(frame_bytes) = [JUMBO_BYTES, SEGMENT_BYTES]
            .into_iter()
            .find(|bytes| longest > usual && longest <= *bytes)
        else {
            let (buffers, ring_frames) = (self.buffers, self.ring_frames);
            return Size { frame_bytes: usual, buffers, ring_frames };
        };
        let fewer = |frames: u32| {
            let frames = u64::from(frames) * u64::from(usual) / u64::from(frame_bytes);
            u32::try_from(frames).unwrap_or(u32::MAX)
        };
        let ring_frames = fewer(self.ring_frames).max(FEWEST_RING_FRAMES);
        Size { frame_bytes, buffers: fewer(self.buffers).max(2 * ring_frames), ring_frames }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_frames_have_fewer_buffers_of_the_same_memory() {
        let options = Options::default();
        let usual = options.size_for(1500);
        assert_eq!((usual.frame_bytes, usual.buffers), (FRAME_BYTES, options.buffers));
        assert_eq!(options.size_for(68), usual);
        for (mtu, frame_bytes) in [(9000, 9300), (65_535, SEGMENT_BYTES)] {
            let size = options.size_for(mtu);
            assert_eq!(size.frame_bytes, frame_bytes);
            let bytes = |size: Size| u64::from(size.buffers) * u64::from(size.frame_bytes);
            assert!(bytes(size) <= bytes(usual), "{size:?}");
        }
        let offload = Options::offload();
        assert_eq!(offload.size_for(65_535), offload.size_for(1500));
    }
}
