//! HAProxy's own counters: `show info` and `show stat`, read by bounded parsers.

use std::collections::BTreeMap;

use crate::Error;

/// Most bytes of an answer that are read.
pub const MAX_ANSWER: usize = 1 << 20;
/// Most lines of an answer, and fields of a line.
const MAX_LINES: usize = 4096;
const MAX_FIELDS: usize = 1024;

/// What `show info` says: names and values.
///
/// # Errors
/// [`Error::Answer`] for what is not lines of `Name: value`.
pub fn parse_info(text: &str) -> Result<BTreeMap<String, String>, Error> {
    let wrong = |reason: &str| Error::Answer { command: "show info", reason: reason.to_owned() };
    let lines = bounded(text).ok_or_else(|| wrong("it is too long"))?;
    let pairs = lines.filter(|line| !line.is_empty()).map(|line| {
        let (name, value) = line.split_once(':').ok_or_else(|| wrong("a line has no colon"))?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    });
    let info: BTreeMap<String, String> = pairs.collect::<Result<_, Error>>()?;
    match info.get("Name").map(String::as_str) {
        Some("HAProxy") => Ok(info),
        _ => Err(wrong("it does not name HAProxy")),
    }
}

/// A side of all proxies together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Side {
    /// Full handshakes that succeeded.
    pub full: u64,
    /// Resumed handshakes that succeeded.
    pub resumed: u64,
    /// Handshakes that failed.
    pub failed: u64,
}

impl Side {
    /// Handshakes that succeeded.
    #[must_use]
    pub fn handshakes(self) -> u64 {
        self.full + self.resumed
    }

    /// What came since.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            full: self.full.saturating_sub(before.full),
            resumed: self.resumed.saturating_sub(before.resumed),
            failed: self.failed.saturating_sub(before.failed),
        }
    }

    /// The share that was resumed; none where nothing was.
    #[must_use]
    pub fn reuse(self) -> Option<f64> {
        let all = self.handshakes();
        (all > 0).then(|| self.resumed as f64 / all as f64)
    }

    fn add(&mut self, other: Self) {
        self.full = self.full.saturating_add(other.full);
        self.resumed = self.resumed.saturating_add(other.resumed);
        self.failed = self.failed.saturating_add(other.failed);
    }
}

/// What all proxies have counted: TLS handshakes over TCP on both sides, and responses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Handshakes with clients. Those of QUIC are in no counter of TLS.
    pub front: Side,
    /// Handshakes with servers.
    pub back: Side,
    /// Responses of frontends with a status of 2xx, over whatever they went.
    pub answered: u64,
}

impl Counted {
    /// What came since.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            front: self.front.since(before.front),
            back: self.back.since(before.back),
            answered: self.answered.saturating_sub(before.answered),
        }
    }
}

/// What `show stat` counts (its columns `ssl_sess`, `ssl_reused_sess` and `ssl_failed_handshake` in the rows
/// of frontends and backends, `hrsp_2xx` in those of frontends).
///
/// # Errors
/// [`Error::Answer`] for a table without these columns, or with what is no number in them.
pub fn parse_counted(text: &str) -> Result<Counted, Error> {
    let wrong = |reason: String| Error::Answer { command: "show stat", reason };
    let mut lines = bounded(text).ok_or_else(|| wrong("it is too long".into()))?;
    let head = lines.next().and_then(|line| line.strip_prefix("# "));
    let head = head.ok_or_else(|| wrong("it does not begin with the names of columns".into()))?;
    let names = fields(head);
    let column = |name: &str| {
        let found = names.iter().position(|one| one == name);
        found.ok_or_else(|| wrong(format!("it has no column {name}")))
    };
    let (kind, full) = (column("svname")?, column("ssl_sess")?);
    let (resumed, failed) = (column("ssl_reused_sess")?, column("ssl_failed_handshake")?);
    let answered = column("hrsp_2xx")?;
    let mut sum = Counted::default();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let fields = fields(line);
        let number = |column: usize| match fields.get(column).map(String::as_str) {
            None | Some("") => Ok(0),
            Some(text) => text.parse().map_err(|_| wrong(format!("`{text}` is not a number"))),
        };
        let side = match fields.get(kind).map(String::as_str) {
            Some("FRONTEND") => {
                sum.answered = sum.answered.saturating_add(number(answered)?);
                &mut sum.front
            }
            Some("BACKEND") => &mut sum.back,
            _ => continue,
        };
        side.add(Side { full: number(full)?, resumed: number(resumed)?, failed: number(failed)? });
    }
    Ok(sum)
}

fn bounded(text: &str) -> Option<impl Iterator<Item = &str>> {
    (text.len() <= MAX_ANSWER && text.lines().count() <= MAX_LINES).then(|| text.lines())
}

/// The fields of a line of CSV (RFC 4180 §2, within one line).
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => {
                if fields.len() == MAX_FIELDS {
                    return fields;
                }
                fields.push(std::mem::take(&mut field));
            }
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INFO: &str = "Name: HAProxy\nVersion: 3.0.11-9e587df\nNbthread: 1\nUptime: 0d 0h00m02s\n\
                        SslFrontendSessionReuse_pct: 32\nBuild info: 3.0.11-9e587df\n\n";
    const STAT: &str = "# pxname,svname,hrsp_2xx,desc,ssl_sess,ssl_reused_sess,ssl_failed_handshake,\n\
        hop1,FRONTEND,3,\"a \"\"quoted\"\", text\",3,0,1,\n\
        hop1,next,3,,1,2,0,\n\
        hop1,BACKEND,3,,1,2,0,\n\
        hop2,FRONTEND,2,,1,2,0,\n\
        hop2,BACKEND,,,,,,\n\n";

    #[test]
    fn info_is_names_and_values() {
        let info = parse_info(INFO).unwrap();
        assert_eq!(info["SslFrontendSessionReuse_pct"], "32");
        assert_eq!(info["Uptime"], "0d 0h00m02s");
        for wrong in ["", "Name: nginx\n", "Unknown command\n"] {
            assert!(parse_info(wrong).is_err(), "{wrong:?}");
        }
        assert!(parse_info(&"a:b\n".repeat(MAX_LINES + 1)).is_err());
    }

    #[test]
    fn counts_are_summed_over_the_proxies_and_servers_are_not_counted_twice() {
        let found = parse_counted(STAT).unwrap();
        assert_eq!(found.front, Side { full: 4, resumed: 2, failed: 1 });
        assert_eq!(found.back, Side { full: 1, resumed: 2, failed: 0 });
        assert_eq!(found.front.reuse(), Some(1.0 / 3.0));
        assert_eq!(Side::default().reuse(), None);
        assert_eq!(found.answered, 5, "of the frontends alone");
        let before = Counted { front: Side { full: 3, ..Side::default() }, answered: 1, ..found };
        let since = found.since(before);
        assert_eq!(since.answered, 4);
        assert_eq!(since.front, Side { full: 1, resumed: 2, failed: 1 });
        assert_eq!(since.back, Side::default());
    }

    #[test]
    fn a_table_of_another_form_is_refused() {
        for wrong in [
            "",
            "pxname,svname\n",
            "# pxname,svname,ssl_sess\n",
            &STAT.replace(",3,0,1,", ",x,0,1,"),
        ] {
            assert!(matches!(parse_counted(wrong), Err(Error::Answer { .. })), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,200}") {
            let _ = parse_info(&text);
            let _ = parse_counted(&format!("{}{text}", STAT.lines().next().unwrap()));
            let _ = parse_counted(&format!("# {text}"));
        }

        #[test]
        fn fields_are_read_back(fields_in in prop::collection::vec("[a-z\", ]{0,8}", 1..20)) {
            let quoted: Vec<String> =
                fields_in.iter().map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
            prop_assert_eq!(fields(&quoted.join(",")), fields_in);
        }
    }
}
