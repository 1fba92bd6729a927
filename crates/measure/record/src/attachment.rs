//! Files beside the numbers: a sample's time series, histogram, timeline or HAR, and what a plan was
//! made of.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use sha2::{Digest, Sha256};

use crate::{Error, Folder, Manifest, Problem};

/// The folder of attachments in a results folder.
const FOLDER: &str = "attachments";
/// The largest attachment, in bytes.
pub const MAX_ATTACHMENT: u64 = 64 << 20;

/// The files that a plan was made of, by [`content_name`]. A plan names them, and a manifest lists them:
/// what is large is no part of the manifest's JSON.
pub type PlanFiles = BTreeMap<String, Vec<u8>>;

/// The name of a content: its SHA-256 in hexadecimal digits.
#[must_use]
pub fn content_name(content: &[u8]) -> String {
    let mut name = String::new();
    for byte in Sha256::digest(content) {
        // Writing to a String cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// A file beside a sample, or beside a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// What it shows: `congestion window`. Of a plan's file, [`content_name`].
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
    /// As it was given to the plan.
    Input,
}

impl AttachmentKind {
    const fn ending(self) -> &'static str {
        match self {
            AttachmentKind::TimeSeries | AttachmentKind::Histogram => "csv",
            AttachmentKind::Timeline => "json",
            AttachmentKind::Har => "har",
            AttachmentKind::Input => "input",
        }
    }
}

/// Writes an attachment of the sample `key`, whole or not at all. The same sample's attachment of the
/// same name has the same file: what a killed run left is written over by the next.
pub(crate) fn write(
    folder: &Folder,
    key: &str,
    name: &str,
    kind: AttachmentKind,
    content: &[u8],
) -> Result<Attachment, Error> {
    let hash = crate::plan_hash(&serde_json::json!([key, name]));
    write_as(folder, &hash, name, kind, content)
}

/// Writes the files of a plan, and lists them in its manifest.
pub(crate) fn write_plan_files(
    folder: &Folder,
    manifest: &mut Manifest,
    files: &PlanFiles,
) -> Result<(), Error> {
    for (name, content) in files {
        let written = write_as(folder, name, name, AttachmentKind::Input, content)?;
        manifest.files.push(written);
    }
    Ok(())
}

/// Removes the files of a plan; the folder of attachments, too, if nothing else is in it.
pub(crate) fn remove_plan_files(folder: &Folder, files: &PlanFiles) {
    let Ok(attachments) = folder.folder(FOLDER) else { return };
    for name in files.keys() {
        attachments.remove(&format!("{name}.{}", AttachmentKind::Input.ending()));
    }
    folder.remove_folder(FOLDER);
}

/// Removes the files of the plan in this manifest; the folder of attachments, too, if nothing else is in it.
pub(crate) fn remove_files_of(folder: &Folder, manifest: &Manifest) {
    let files = manifest.files.iter().map(|file| (file.name.clone(), Vec::new()));
    remove_plan_files(folder, &files.collect());
}

/// Reads the files of a plan. Each has the content that it is named by.
pub(crate) fn read_plan_files(folder: &Folder, manifest: &Manifest) -> Result<PlanFiles, Error> {
    let mut files = PlanFiles::new();
    let mut bytes = 0u64;
    for file in &manifest.files {
        bytes = bytes.saturating_add(file.bytes);
        if bytes > MAX_ATTACHMENT {
            let (what, limit) = ("the length of the plan's files in bytes", MAX_ATTACHMENT);
            let (verb, remedy) = ("read", "check that this is the right folder");
            return Err(Error::new(folder.path(), Problem::TooLarge { what, limit, verb, remedy }));
        }
        let content = read(folder, file)?;
        if content_name(&content) != file.name {
            let file = file.file.clone();
            return Err(Error::new(folder.path(), Problem::NotAttachment { file }));
        }
        files.insert(file.name.clone(), content);
    }
    Ok(files)
}

fn write_as(
    folder: &Folder,
    stem: &str,
    name: &str,
    kind: AttachmentKind,
    content: &[u8],
) -> Result<Attachment, Error> {
    let bytes = content.len() as u64;
    if bytes > MAX_ATTACHMENT {
        let (what, limit) = ("an attachment's length in bytes", MAX_ATTACHMENT);
        let (verb, remedy) = ("kept", "measure for less time");
        let problem = Problem::TooLarge { what, limit, verb, remedy };
        return Err(Error::new(&folder.path().join(FOLDER), problem));
    }
    let own = format!("{stem}.{}", kind.ending());
    folder.make_folder(FOLDER)?.replace(&own, content)?;
    let file = format!("{FOLDER}/{own}");
    Ok(Attachment { name: name.to_owned(), kind, file, bytes })
}

/// Reads an attachment. Where it lies is not trusted: it must be a file in the results' own folder of
/// attachments, of the stated length.
pub(crate) fn read(folder: &Folder, attachment: &Attachment) -> Result<Vec<u8>, Error> {
    let file = &attachment.file;
    let stranger =
        || Error::new(folder.path(), Problem::NotAttachment { file: attachment.file.clone() });
    let own = file.strip_prefix(FOLDER).and_then(|rest| rest.strip_prefix('/'));
    let name = own.filter(|name| !name.contains('/')).ok_or_else(stranger)?;
    if attachment.bytes > MAX_ATTACHMENT {
        return Err(stranger());
    }
    let content = folder.folder(FOLDER)?.read(name, MAX_ATTACHMENT)?;
    if content.len() as u64 != attachment.bytes {
        return Err(stranger());
    }
    Ok(content)
}

/// Removes what killed processes left among the attachments.
pub(crate) fn clear_partial(folder: &Folder) {
    if let Ok(attachments) = folder.folder(FOLDER) {
        attachments.clear_partial();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_attached_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let content = b"0,10\n1,20\n";
        let kind = AttachmentKind::TimeSeries;
        let made = write(&folder, "demo/a=1#0", "window", kind, content).unwrap();
        assert!(made.file.starts_with("attachments/") && made.file.ends_with(".csv"));
        assert_eq!(read(&folder, &made).unwrap(), content);
        let again = write(&folder, "demo/a=1#0", "window", kind, b"").unwrap();
        assert_eq!(again.file, made.file);
        let other = write(&folder, "demo/a=1#1", "window", kind, b"").unwrap();
        assert_ne!(other.file, made.file);
        assert_eq!(fs::read_dir(dir.path().join(FOLDER)).unwrap().count(), 2);
    }

    #[test]
    fn nothing_outside_the_folder_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        fs::write(dir.path().join("secret"), "1").unwrap();
        let kind = AttachmentKind::Timeline;
        for file in
            ["secret", "../secret", "/etc/passwd", "attachments/../secret", "attachments", ""]
        {
            let stranger =
                Attachment { name: String::new(), kind, file: file.to_owned(), bytes: 1 };
            assert!(read(&folder, &stranger).is_err(), "{file}");
        }
        let mut cut = write(&folder, "a", "b", kind, b"{}").unwrap();
        cut.bytes += 1;
        assert!(read(&folder, &cut).is_err());
    }
}
