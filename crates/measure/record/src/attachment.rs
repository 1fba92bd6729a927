//! What a sample has beside its numbers: a time series, a histogram, a timeline, a HAR.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::folder::reading;
use crate::{Error, Problem};

/// The folder of attachments in a results folder.
const FOLDER: &str = "attachments";
/// The largest attachment, in bytes.
pub const MAX_ATTACHMENT: u64 = 64 << 20;

/// A file beside a sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// What it shows: `congestion window`.
    pub name: String,
    /// How it is to be read.
    pub kind: AttachmentKind,
    /// Where it lies, from the results folder.
    pub file: String,
    /// Its length in bytes.
    pub bytes: u64,
}

/// How an attachment is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttachmentKind {
    /// CSV: a time, then values.
    TimeSeries,
    /// CSV: a bin's lower end, then how many lie in it.
    Histogram,
    /// JSON: what happened when, in order.
    Timeline,
    /// A HAR 1.2 file.
    Har,
}

impl AttachmentKind {
    const fn ending(self) -> &'static str {
        match self {
            AttachmentKind::TimeSeries | AttachmentKind::Histogram => "csv",
            AttachmentKind::Timeline => "json",
            AttachmentKind::Har => "har",
        }
    }
}

/// Writes an attachment of the sample `key`, whole or not at all. The same sample's attachment of the
/// same name has the same file: what a killed run left is written over by the next.
pub(crate) fn write(
    dir: &Path,
    key: &str,
    name: &str,
    kind: AttachmentKind,
    content: &[u8],
) -> Result<Attachment, Error> {
    let folder = dir.join(FOLDER);
    let bytes = content.len() as u64;
    if bytes > MAX_ATTACHMENT {
        let (what, limit) = ("an attachment's length in bytes", MAX_ATTACHMENT);
        let (verb, remedy) = ("kept", "measure for less time");
        let problem = Problem::TooLarge { what, have: bytes, limit, verb, remedy };
        return Err(Error::new(&folder, problem));
    }
    let hash = crate::plan_hash(&serde_json::json!([key, name]));
    let file = format!("{FOLDER}/{hash}.{}", kind.ending());
    let (path, temporary) = (dir.join(&file), folder.join(format!("{hash}.new")));
    let write = || {
        fs::create_dir_all(&folder)?;
        let mut new = File::create(&temporary)?;
        new.write_all(content)?;
        new.sync_data()?;
        fs::rename(&temporary, &path)
    };
    match write() {
        Ok(()) => Ok(Attachment { name: name.to_owned(), kind, file, bytes }),
        Err(error) => {
            let _ = fs::remove_file(&temporary);
            Err(Error::io(&path, "writing it", error))
        }
    }
}

/// Reads an attachment. Where it lies is not trusted: it must be a file below the results' own folder
/// of attachments, of the stated length.
pub(crate) fn read(dir: &Path, attachment: &Attachment) -> Result<Vec<u8>, Error> {
    let file = PathBuf::from(&attachment.file);
    let path = dir.join(&file);
    let mut parts = file.components();
    let own = parts.next() == Some(Component::Normal(FOLDER.as_ref()))
        && parts.all(|part| matches!(part, Component::Normal(_)));
    if !own {
        return Err(Error::new(dir, Problem::NotAttachment { file: attachment.file.clone() }));
    }
    let mut content = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(MAX_ATTACHMENT + 1).read_to_end(&mut content))
        .map_err(|error| reading(&path, "reading it", error))?;
    if content.len() as u64 != attachment.bytes {
        return Err(Error::new(dir, Problem::NotAttachment { file: attachment.file.clone() }));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_attached_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let content = b"0,10\n1,20\n";
        let kind = AttachmentKind::TimeSeries;
        let made = write(folder.path(), "demo/a=1#0", "window", kind, content).unwrap();
        assert!(made.file.starts_with("attachments/") && made.file.ends_with(".csv"));
        assert_eq!(read(folder.path(), &made).unwrap(), content);
        let again = write(folder.path(), "demo/a=1#0", "window", kind, b"").unwrap();
        assert_eq!(again.file, made.file);
        let other = write(folder.path(), "demo/a=1#1", "window", kind, b"").unwrap();
        assert_ne!(other.file, made.file);
        assert_eq!(fs::read_dir(folder.path().join(FOLDER)).unwrap().count(), 2);
    }

    #[test]
    fn nothing_outside_the_folder_is_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secret"), "1").unwrap();
        let kind = AttachmentKind::Timeline;
        for file in
            ["secret", "../secret", "/etc/passwd", "attachments/../secret", "attachments", ""]
        {
            let stranger =
                Attachment { name: String::new(), kind, file: file.to_owned(), bytes: 1 };
            assert!(read(folder.path(), &stranger).is_err(), "{file}");
        }
        let mut cut = write(folder.path(), "a", "b", kind, b"{}").unwrap();
        cut.bytes += 1;
        assert!(read(folder.path(), &cut).is_err());
    }
}
