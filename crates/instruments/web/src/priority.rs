//! The `priority` header field (RFC 9218).

/// How urgent a response is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Priority {
    /// 0 (first) to 7 (last); 3 where nothing is said (RFC 9218 §4.1).
    pub urgency: u8,
    /// Whether the client can use it piece by piece (RFC 9218 §4.2).
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Priority { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// Reads a field's value. What is unknown or out of range is ignored, as RFC 9218 §4 has it; of a
    /// parameter that comes twice the last counts (RFC 8941 §3.2).
    #[must_use]
    pub fn parse(value: &[u8]) -> Self {
        let mut priority = Priority::default();
        for member in value.split(|byte| *byte == b',') {
            // Parameters of a member are for extensions.
            let member = member.split(|byte| *byte == b';').next().unwrap_or_default();
            match member.trim_ascii() {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }

    /// The field's value.
    pub(crate) fn value(self) -> String {
        let incremental = if self.incremental { ", i" } else { "" };
        format!("u={}{incremental}", self.urgency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_the_rfc_has_them() {
        let parse = |text: &str| {
            let priority = Priority::parse(text.as_bytes());
            (priority.urgency, priority.incremental)
        };
        assert_eq!(parse(""), (3, false));
        assert_eq!(parse("u=5, i"), (5, true));
        assert_eq!(parse("i,u=0"), (0, true));
        assert_eq!(parse("u=1;x=2, i=?0"), (1, false));
        // RFC 9218 §4: out of range or of another type is ignored.
        assert_eq!(parse("u=8"), (3, false));
        assert_eq!(parse("u=-1, i=1, y"), (3, false));
        assert_eq!(parse("u=1, u=7"), (7, false));
    }

    #[test]
    fn what_is_written_is_read_again() {
        for urgency in 0..8 {
            for incremental in [false, true] {
                let priority = Priority { urgency, incremental };
                assert_eq!(Priority::parse(priority.value().as_bytes()), priority);
            }
        }
    }
}
