//! What a path can do to a connection.

use std::time::Duration;

use linkmodel::Path;

/// How long a client stays, under loss, to send again what the server did not get of its end.
const LINGER_UNDER_LOSS: Duration = Duration::from_secs(3);
/// What both ends need to close, beside round trips.
const CLOSING: Duration = Duration::from_millis(50);

/// What a path can do to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// Least time from client to server, and back.
    pub one_way: (Duration, Duration),
    /// Frames may get lost, so that a step may be late that was not sent late.
    pub lossy: bool,
}

impl Way {
    /// The way by a path from client to server.
    #[must_use]
    pub fn of(path: &Path) -> Way {
        let lossless = Path::default();
        Way {
            one_way: (path.forward.delay.duration(), path.backward.delay.duration()),
            lossy: path.forward.loss != lossless.forward.loss
                || path.backward.loss != lossless.backward.loss,
        }
    }

    /// Least time there and back.
    #[must_use]
    pub fn round_trip(self) -> Duration {
        self.one_way.0 + self.one_way.1
    }

    /// How long a client waits for the server's end after its own.
    #[must_use]
    pub fn linger(self) -> Duration {
        if self.lossy { LINGER_UNDER_LOSS } else { self.round_trip() * 2 + CLOSING }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_what_its_path_is_in_each_direction() {
        let path = Path::symmetric(Duration::from_millis(20).into());
        let way = Way::of(&path);
        assert_eq!((way.round_trip(), way.lossy), (Duration::from_millis(20), false));
        assert_eq!(way.linger(), Duration::from_millis(90));
        assert_eq!(Way { lossy: true, ..way }.linger(), LINGER_UNDER_LOSS);
        assert_eq!(Way::of(&Path::default()).linger(), CLOSING);
    }
}
