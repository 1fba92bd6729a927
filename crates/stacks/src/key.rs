//! What a built driver was made from, as a short text that changes when any of it does.

use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

/// Folders of a driver's package that are results, not sources.
const RESULTS: [&str; 1] = ["target"];

/// The key of a driver: its package, its shim, the interface, and what builds them.
pub(crate) fn of(drivers: &Path, name: &str, kind: &str) -> io::Result<String> {
    let mut hash = Sha256::new();
    hash.update(std::env::consts::ARCH);
    for folder in [name, "include"] {
        add(&mut hash, drivers, &drivers.join(folder), &|_| true)?;
    }
    if kind == "rustls" {
        add(&mut hash, drivers, &drivers.join("rustls-shim"), &|_| true)?;
    } else {
        add(&mut hash, drivers, &drivers.join("build"), &|_| true)?;
        // The shims of other families do not matter.
        let own = |file: &Path| file.file_stem().is_some_and(|stem| stem == kind);
        add(&mut hash, drivers, &drivers.join("shim"), &own)?;
    }
    Ok(hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

/// Adds the files below a folder that count, in the order of their names.
fn add(
    hash: &mut Sha256,
    root: &Path,
    folder: &Path,
    counts: &dyn Fn(&Path) -> bool,
) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            if !RESULTS.iter().any(|result| entry.file_name() == *result) {
                add(hash, root, &path, counts)?;
            }
            continue;
        }
        if !counts(&path) {
            continue;
        }
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        let bytes = fs::read(&path)?;
        // Lengths first: no two trees read alike.
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(&bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_of_a_source_changes_the_key() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "include", "shim", "build", "a/target"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("a/driver.toml"), "x").unwrap();
        fs::write(folder.path().join("shim/s.c"), "y").unwrap();
        let first = of(folder.path(), "a", "s").unwrap();
        fs::write(folder.path().join("a/target/object"), "result").unwrap();
        assert_eq!(of(folder.path(), "a", "s").unwrap(), first, "results do not count");
        fs::write(folder.path().join("shim/s.c"), "z").unwrap();
        let second = of(folder.path(), "a", "s").unwrap();
        assert_ne!(second, first);
        fs::write(folder.path().join("shim/other.c"), "z").unwrap();
        assert_eq!(of(folder.path(), "a", "s").unwrap(), second, "another family's shim");
        fs::rename(folder.path().join("shim/s.c"), folder.path().join("shim/s.cpp")).unwrap();
        assert_ne!(of(folder.path(), "a", "s").unwrap(), second);
    }
}
