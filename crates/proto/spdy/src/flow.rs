//! Windows: what may be sent, and what may be received (§2.6.8).

use wire::spdy::MAX_WINDOW;

/// What this side may still send. A change of the initial size may make it negative.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendWindow(i64);

/// The window would grow beyond 2^31 - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overflow;

impl SendWindow {
    pub(crate) fn new(initial: u32) -> Self {
        SendWindow(i64::from(initial))
    }

    pub(crate) fn size(self) -> i64 {
        self.0
    }

    pub(crate) fn is_shut(self) -> bool {
        self.0 <= 0
    }

    /// Bytes that may be sent now.
    pub(crate) fn room(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    pub(crate) fn spend(&mut self, bytes: usize) {
        self.0 -= bytes as i64;
    }

    /// Adds what the peer says, or the difference of initial sizes.
    pub(crate) fn add(&mut self, bytes: i64) -> Result<(), Overflow> {
        let sum = self.0.saturating_add(bytes);
        if sum > i64::from(MAX_WINDOW) {
            return Err(Overflow);
        }
        self.0 = sum;
        Ok(())
    }
}

/// What the peer may still send, and what it is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiveWindow {
    /// What the peer may send, when it has heard all that it was told.
    left: i64,
    /// Consumed, and not told yet.
    untold: u64,
    /// Told as soon as more than this is consumed.
    threshold: u64,
}

impl ReceiveWindow {
    /// A window of `size` bytes that is told again when more than a `divisor`th of it is consumed; at
    /// least 2, since more than all of it never is.
    pub(crate) fn new(size: u32, divisor: u32) -> Self {
        ReceiveWindow {
            left: i64::from(size),
            untold: 0,
            threshold: u64::from(size / divisor.max(2)),
        }
    }

    pub(crate) fn size(self) -> i64 {
        self.left
    }

    /// Takes a frame; whether it keeps within the window and `slack` more.
    pub(crate) fn take(&mut self, bytes: usize, slack: i64) -> bool {
        self.left -= bytes as i64;
        self.left + slack >= 0
    }

    /// Counts bytes as consumed; the WINDOW_UPDATE that is due.
    pub(crate) fn consume(&mut self, bytes: u64) -> Option<u32> {
        self.untold = self.untold.saturating_add(bytes);
        if self.untold <= self.threshold {
            return None;
        }
        let delta = u32::try_from(self.untold).unwrap_or(MAX_WINDOW).min(MAX_WINDOW);
        self.untold -= u64::from(delta);
        self.left += i64::from(delta);
        Some(delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_window_goes_below_zero_and_never_beyond_its_bound() {
        let mut window = SendWindow::new(64 << 10);
        window.spend(60 << 10);
        // §2.6.8: 60 KB sent, the initial size becomes 16 KB: -44 KB.
        window.add(-(48 << 10)).unwrap();
        assert_eq!((window.size(), window.room(), window.is_shut()), (-(44 << 10), 0, true));
        assert_eq!(window.add(i64::from(MAX_WINDOW) + (44 << 10) + 1), Err(Overflow));
        window.add(i64::from(MAX_WINDOW) + (44 << 10)).unwrap();
        assert_eq!(window.room(), MAX_WINDOW as usize);
    }

    #[test]
    fn an_update_is_due_when_more_than_the_part_is_consumed() {
        let mut window = ReceiveWindow::new(1000, 2);
        assert!(window.take(1000, 0));
        assert_eq!(window.consume(500), None);
        assert_eq!(window.consume(1), Some(501));
        assert_eq!(window.size(), 501);
        assert!(window.take(501, 0) && !window.take(1, 0) && window.take(9, 10));
    }
}
