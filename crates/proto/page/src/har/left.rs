//! What of a HAR file is not in the page, in words.

/// Why an entry is no object of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Its URL is not of HTTP.
    NotHttp,
    /// It is a WebSocket.
    WebSocket,
    /// It has no answer.
    NoAnswer,
    /// Its date is none.
    BadDate,
    /// It began more than [`MAX_DELAY`](crate::Page::MAX_DELAY) from the others.
    FarAway,
    /// It began after the page had loaded.
    AfterLoad,
}

/// How many entries of a HAR file are no objects of its page, by why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Those of pages after the first.
    pub other_pages: usize,
    /// Those whose URL is `data:`, `blob:` or something else that no server is asked for.
    pub not_http: usize,
    /// WebSockets.
    pub web_sockets: usize,
    /// Requests without an answer: they failed or were blocked.
    pub no_answer: usize,
    /// Entries whose date cannot be read.
    pub bad_date: usize,
    /// Entries that began more than ten minutes before or after the page.
    pub far_away: usize,
    /// Entries that began after `onLoad`, as beacons do.
    pub after_load: usize,
}

impl LeftOut {
    /// All of them.
    #[must_use]
    pub fn count(&self) -> usize {
        self.other_pages + self.after_load + self.odd()
    }

    /// Entries that are left out for what they are.
    fn odd(&self) -> usize {
        self.not_http + self.web_sockets + self.no_answer + self.bad_date + self.far_away
    }

    pub(super) fn add(&mut self, why: Why) {
        let count = match why {
            Why::NotHttp => &mut self.not_http,
            Why::WebSocket => &mut self.web_sockets,
            Why::NoAnswer => &mut self.no_answer,
            Why::BadDate => &mut self.bad_date,
            Why::FarAway => &mut self.far_away,
            Why::AfterLoad => &mut self.after_load,
        };
        *count += 1;
    }

    /// A sentence each for those of other pages, those after `onLoad` and the others, where there are some.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.other_pages > 0 {
            let (entries, were) = entries(self.other_pages);
            notes.push(format!(
                "the file has several pages: {entries} of other pages {were} left out, the first page is loaded"
            ));
        }
        if self.after_load > 0 {
            let (entries, were) = entries(self.after_load);
            notes.push(format!("{entries} began after onLoad and {were} left out"));
        }
        let whys = [
            (self.not_http, "data:, blob: or another URL that is not HTTP"),
            (self.web_sockets, "WebSocket"),
            (self.no_answer, "no answer (failed, blocked)"),
            (self.bad_date, "no valid date"),
            (self.far_away, "more than 10 minutes before or after the page"),
        ];
        let whys: Vec<String> = whys
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, why)| format!("{why}: {count}"))
            .collect();
        if !whys.is_empty() {
            let (entries, were) = entries(self.odd());
            notes.push(format!("{entries} {were} left out: {}", whys.join("; ")));
        }
        notes
    }
}

fn entries(count: usize) -> (String, &'static str) {
    if count == 1 { ("1 entry".to_owned(), "was") } else { (format!("{count} entries"), "were") }
}
