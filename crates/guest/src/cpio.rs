//! Archives of the kind from which the kernel fills its first file system: cpio, "newc"
//! (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel).

use std::collections::BTreeSet;
use std::io::{self, Write};

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const FILE: u32 = 0o100_644;
const LINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;
/// The name of the entry that ends an archive.
const TRAILER: &str = "TRAILER!!!";

/// Writes an archive, entry by entry. Paths have no slash in front; the folders above an entry are made
/// with it.
#[derive(Debug)]
pub(crate) struct Archive<W> {
    out: W,
    entries: u32,
    folders: BTreeSet<String>,
}

/// What sets one entry apart.
struct Entry<'a> {
    mode: u32,
    device: (u32, u32),
    data: &'a [u8],
}

impl<W: Write> Archive<W> {
    pub(crate) fn new(out: W) -> Archive<W> {
        Archive { out, entries: 0, folders: BTreeSet::new() }
    }

    /// A folder, unless there is one already.
    pub(crate) fn folder(&mut self, path: &str) -> io::Result<()> {
        if path.is_empty() || self.folders.contains(path) {
            return Ok(());
        }
        self.parents(path)?;
        self.folders.insert(path.to_owned());
        self.entry(path, &Entry { mode: FOLDER, device: (0, 0), data: &[] })
    }

    /// A file, of root, that everyone may read.
    pub(crate) fn file(&mut self, path: &str, data: &[u8], executable: bool) -> io::Result<()> {
        self.parents(path)?;
        let mode = if executable { PROGRAM } else { FILE };
        self.entry(path, &Entry { mode, device: (0, 0), data })
    }

    /// A symbolic link.
    pub(crate) fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.parents(path)?;
        self.entry(path, &Entry { mode: LINK, device: (0, 0), data: target.as_bytes() })
    }

    /// A character device.
    pub(crate) fn device(&mut self, path: &str, major: u32, minor: u32) -> io::Result<()> {
        self.parents(path)?;
        self.entry(path, &Entry { mode: CHARACTER_DEVICE, device: (major, minor), data: &[] })
    }

    /// Ends the archive, and gives back where it was written to.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.entry(TRAILER, &Entry { mode: 0, device: (0, 0), data: &[] })?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn parents(&mut self, path: &str) -> io::Result<()> {
        match path.rsplit_once('/') {
            Some((folder, _)) => self.folder(folder),
            None => Ok(()),
        }
    }

    fn entry(&mut self, name: &str, entry: &Entry<'_>) -> io::Result<()> {
        let size = u32::try_from(entry.data.len()).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{name} has more than 4 GiB"))
        })?;
        let name_size = name.len() as u32 + 1;
        self.entries += 1;
        // inode, mode, owner, group, links, time, size, device (2), device that it is (2), name, check.
        let (major, minor) = entry.device;
        let fields = [self.entries, entry.mode, 0, 0, 1, 0, size, 0, 0, major, minor, name_size, 0];
        let mut head = String::from("070701");
        for field in fields {
            head.push_str(&format!("{field:08x}"));
        }
        self.out.write_all(head.as_bytes())?;
        self.out.write_all(name.as_bytes())?;
        self.out.write_all(&[0])?;
        self.pad(head.len() + name.len() + 1)?;
        self.out.write_all(entry.data)?;
        self.pad(entry.data.len())
    }

    /// What begins next begins at a multiple of four.
    fn pad(&mut self, written: usize) -> io::Result<()> {
        let zeros = [0; 3];
        self.out.write_all(zeros.get(..written.wrapping_neg() % 4).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Entries as another reads them: name, mode, data.
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            assert_eq!(&bytes[..6], b"070701");
            let field = |n: usize| {
                let text = std::str::from_utf8(&bytes[6 + n * 8..][..8]).unwrap();
                u32::from_str_radix(text, 16).unwrap()
            };
            let (mode, size, name_size) = (field(1), field(6) as usize, field(11) as usize);
            let name = std::str::from_utf8(&bytes[110..110 + name_size - 1]).unwrap().to_owned();
            let data_at = (110 + name_size).next_multiple_of(4);
            let data = bytes[data_at..data_at + size].to_vec();
            let next = data_at + size.next_multiple_of(4);
            bytes = &bytes[next..];
            if name == TRAILER {
                assert!(bytes.is_empty());
                return entries;
            }
            entries.push((name, mode, data));
        }
    }

    #[test]
    fn entries_have_their_folders_before_them_and_each_folder_once() {
        let mut archive = Archive::new(Vec::new());
        archive.file("usr/bin/ip", b"program", true).unwrap();
        archive.file("usr/bin/tc", b"", false).unwrap();
        archive.link("bin", "usr/bin").unwrap();
        archive.device("dev/console", 5, 1).unwrap();
        archive.folder("usr").unwrap();
        let entries = read(&archive.finish().unwrap());
        let shown: Vec<_> =
            entries.iter().map(|(name, mode, _)| format!("{mode:o} {name}")).collect();
        assert_eq!(
            shown,
            [
                "40755 usr",
                "40755 usr/bin",
                "100755 usr/bin/ip",
                "100644 usr/bin/tc",
                "120777 bin",
                "40755 dev",
                "20600 dev/console",
            ]
        );
        assert_eq!((&entries[2].2[..], &entries[4].2[..]), (&b"program"[..], &b"usr/bin"[..]));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(files in prop::collection::btree_map("[a-z]{1,9}", prop::collection::vec(any::<u8>(), 0..40), 0..6)) {
            let mut archive = Archive::new(Vec::new());
            for (name, data) in &files {
                archive.file(name, data, false).unwrap();
            }
            let read: std::collections::BTreeMap<_, _> = read(&archive.finish().unwrap())
                .into_iter()
                .map(|(name, _, data)| (name, data))
                .collect();
            prop_assert_eq!(read, files);
        }
    }
}
