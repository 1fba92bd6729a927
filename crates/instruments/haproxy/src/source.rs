//! HAProxy's source: fetched, held against its pinned sum, unpacked, corrected.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use outfile::Scratch;
use sha2::{Digest, Sha256};

use crate::command::{run, tail};
use crate::release::SourceFile;
use crate::{Error, Release};

/// Most bytes of a file of the source.
const LARGEST: u64 = 64 << 20;

/// The SHA-256 of a file in hexadecimal.
pub(crate) fn sum(path: &Path) -> Result<String, Error> {
    let read = || {
        let mut file = File::open(path)?;
        let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(hash),
                count => hash.update(buffer.get(..count).unwrap_or_default()),
            }
        }
    };
    Ok(hex(&read().map_err(Error::io("reading it", path))?.finalize()))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Fetches both files of a release into a folder; what is there already is only held against its sum.
///
/// # Errors
/// [`Error::Fetch`], [`Error::WrongSum`], [`Error::Missing`], [`Error::Interrupted`], [`Error::Io`].
pub(crate) fn fetch(release: &Release, folder: &Path, stop: &AtomicBool) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::io("making it", folder))?;
    [&release.source, &release.patches]
        .into_iter()
        .try_for_each(|file| fetch_one(file, folder, stop))
}

fn fetch_one(file: &SourceFile, folder: &Path, stop: &AtomicBool) -> Result<(), Error> {
    let path = folder.join(file.name);
    if path.exists() && sum(&path)? == file.sha256 {
        return Ok(());
    }
    let new =
        Scratch::new_in(folder, "new-").map_err(Error::io("making a folder in it", folder))?;
    let (partial, log) = (new.path().join(file.name), new.path().join("log"));
    download(file, &path, &partial, &log, stop)?;
    fs::rename(&partial, &path).map_err(Error::io("renaming a download to it", &path))
}

fn download(
    file: &SourceFile,
    path: &Path,
    partial: &Path,
    log: &Path,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let url = file.url();
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--silent", "--show-error", "--location", "--retry", "2"]);
    curl.args(["--connect-timeout", "20", "--max-time", "600"]);
    curl.arg("--max-filesize").arg(LARGEST.to_string()).arg("--output").arg(partial).arg(&url);
    run("fetching HAProxy's source", &mut curl, log, stop, || {}).map_err(|error| match error {
        Error::Build { .. } => Error::Fetch {
            url: url.clone(),
            reason: tail(log, 1000).unwrap_or_default().trim().to_owned(),
            file: path.to_owned(),
            sha256: file.sha256.to_owned(),
        },
        other => other,
    })?;
    let found = sum(partial)?;
    match found == file.sha256 {
        true => Ok(()),
        false => Err(Error::WrongSum { url, found, wanted: file.sha256.to_owned() }),
    }
}

/// Unpacks a release's files into a folder and applies Debian's corrections to `source` within it, in
/// their order.
///
/// # Errors
/// [`Error::Build`], [`Error::Missing`], [`Error::Interrupted`], [`Error::Io`].
pub(crate) fn unpack(
    release: &Release,
    sources: &Path,
    folder: &Path,
    source: &Path,
    log: &Path,
    stop: &AtomicBool,
) -> Result<(), Error> {
    for file in [&release.source, &release.patches] {
        let mut tar = Command::new("tar");
        tar.arg("--extract").arg("--no-same-owner").arg("--file").arg(sources.join(file.name));
        run("unpacking HAProxy's source", tar.arg("--directory").arg(folder), log, stop, || {})?;
    }
    let patches = folder.join("debian/patches");
    let series = patches.join("series");
    let series = fs::read_to_string(&series).map_err(Error::io("reading it", &series))?;
    for name in names(&series) {
        let mut patch = Command::new("patch");
        patch.args(["--strip=1", "--force", "--silent", "--input"]).arg(patches.join(name));
        let what = format!("applying Debian's correction {name}");
        run(&what, patch.current_dir(source), log, stop, || {})?;
    }
    Ok(())
}

/// The patches that a series file lists.
fn names(series: &str) -> impl Iterator<Item = &str> {
    series.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_lists_patches_in_order() {
        let series = "a.patch\n\n# applied during the build process:\n# b.patch\n c.patch \n";
        assert_eq!(names(series).collect::<Vec<_>>(), ["a.patch", "c.patch"]);
    }

    #[test]
    fn sums_are_sha256() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        fs::write(&path, "abc").unwrap();
        // FIPS 180-4's first example.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sum(&path).unwrap(), abc);
    }
}
