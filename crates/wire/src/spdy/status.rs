//! Status codes of RST_STREAM and of GOAWAY.

use std::fmt;

/// Why a stream is reset (§2.6.3). 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RstStatus(pub u32);

impl RstStatus {
    /// No other code fits.
    pub const PROTOCOL_ERROR: RstStatus = RstStatus(1);
    /// A frame came for a stream that is not active.
    pub const INVALID_STREAM: RstStatus = RstStatus(2);
    /// The stream was refused before anything was done for it.
    pub const REFUSED_STREAM: RstStatus = RstStatus(3);
    /// The version asked for is not supported.
    pub const UNSUPPORTED_VERSION: RstStatus = RstStatus(4);
    /// Its creator does not need it any more.
    pub const CANCEL: RstStatus = RstStatus(5);
    /// The implementation failed.
    pub const INTERNAL_ERROR: RstStatus = RstStatus(6);
    /// The peer violated flow control.
    pub const FLOW_CONTROL_ERROR: RstStatus = RstStatus(7);
    /// A second SYN_REPLY came.
    pub const STREAM_IN_USE: RstStatus = RstStatus(8);
    /// Data or a SYN_REPLY came after the sender's last frame.
    pub const STREAM_ALREADY_CLOSED: RstStatus = RstStatus(9);
    /// Draft 3: no valid client certificate for that origin.
    pub const INVALID_CREDENTIALS: RstStatus = RstStatus(10);
    /// The frame is larger than the implementation takes.
    pub const FRAME_TOO_LARGE: RstStatus = RstStatus(11);
}

impl fmt::Display for RstStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            RstStatus::PROTOCOL_ERROR => "PROTOCOL_ERROR",
            RstStatus::INVALID_STREAM => "INVALID_STREAM",
            RstStatus::REFUSED_STREAM => "REFUSED_STREAM",
            RstStatus::UNSUPPORTED_VERSION => "UNSUPPORTED_VERSION",
            RstStatus::CANCEL => "CANCEL",
            RstStatus::INTERNAL_ERROR => "INTERNAL_ERROR",
            RstStatus::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
            RstStatus::STREAM_IN_USE => "STREAM_IN_USE",
            RstStatus::STREAM_ALREADY_CLOSED => "STREAM_ALREADY_CLOSED",
            RstStatus::INVALID_CREDENTIALS => "INVALID_CREDENTIALS",
            RstStatus::FRAME_TOO_LARGE => "FRAME_TOO_LARGE",
            RstStatus(other) => return write!(f, "status {other}"),
        })
    }
}

/// Why a session ends (§2.6.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GoAwayStatus(pub u32);

impl GoAwayStatus {
    /// An ordinary end.
    pub const OK: GoAwayStatus = GoAwayStatus(0);
    /// No other code fits.
    pub const PROTOCOL_ERROR: GoAwayStatus = GoAwayStatus(1);
    /// The implementation failed.
    pub const INTERNAL_ERROR: GoAwayStatus = GoAwayStatus(2);
    /// The session's window was violated. §2.6.8 asks for a GOAWAY with this code, §2.6.6 has no
    /// number for it: this is the one of RST_STREAM.
    pub const FLOW_CONTROL_ERROR: GoAwayStatus = GoAwayStatus(7);
}

impl fmt::Display for GoAwayStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            GoAwayStatus::OK => "OK",
            GoAwayStatus::PROTOCOL_ERROR => "PROTOCOL_ERROR",
            GoAwayStatus::INTERNAL_ERROR => "INTERNAL_ERROR",
            GoAwayStatus::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
            GoAwayStatus(other) => return write!(f, "status {other}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_draft_has_its_name_and_others_their_number() {
        let names: Vec<_> = (0..13).map(|code| RstStatus(code).to_string()).collect();
        assert_eq!((names[0].as_str(), names[12].as_str()), ("status 0", "status 12"));
        assert_eq!(
            (names[1].as_str(), names[7].as_str()),
            ("PROTOCOL_ERROR", "FLOW_CONTROL_ERROR")
        );
        assert!(names[1..12].iter().all(|name| !name.starts_with("status")));
        assert_eq!(GoAwayStatus(2).to_string(), "INTERNAL_ERROR");
        assert_eq!(GoAwayStatus(3).to_string(), "status 3");
    }
}
