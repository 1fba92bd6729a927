//! What a built driver was made from, as a short text that changes when any of it does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

/// What a driver's package holds beside its sources: results, and what is said of the library.
const BESIDE: [&str; 2] = ["target", "driver.toml"];

/// Bytes of a hash that a key has: two hexadecimal digits each.
const BYTES: usize = 8;

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
        let recipes = recipes(drivers, name)?;
        let used = |file: &Path| {
            file.file_stem().is_some_and(|stem| recipes.get(stem).is_none_or(|used| *used))
        };
        add(&mut hash, drivers, &drivers.join("build"), &used)?;
        // The shims of other families do not matter.
        let own = |file: &Path| {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            stem == kind || stem.strip_prefix(kind).is_some_and(|rest| rest.starts_with('_'))
        };
        add(&mut hash, drivers, &drivers.join("shim"), &own)?;
    }
    Ok(hash.finalize().iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect())
}

/// Whether a text may be a driver's key.
pub(crate) fn is_key(text: &str) -> bool {
    let is_digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    text.len() == 2 * BYTES && text.chars().all(is_digit)
}

/// The modules of the build crate, and whether a package needs them: those that its build script names,
/// those that these name, and so on. A change of WolfSSL's is not to build OpenSSL anew.
fn recipes(drivers: &Path, name: &str) -> io::Result<BTreeMap<OsString, bool>> {
    let mut texts = BTreeMap::new();
    let folder = drivers.join("build/src");
    if folder.is_dir() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if let Some(stem) = path.file_stem().filter(|stem| *stem != "lib") {
                texts.insert(stem.to_owned(), fs::read_to_string(&path)?);
            }
        }
    }
    let script = drivers.join(name).join("build.rs");
    let mut unread =
        vec![if script.is_file() { fs::read_to_string(script)? } else { String::new() }];
    let mut used: BTreeMap<OsString, bool> =
        texts.keys().map(|stem| (stem.clone(), false)).collect();
    while let Some(text) = unread.pop() {
        for (stem, own) in &texts {
            let named = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| {
                *stem == *word
                    || word
                        .strip_prefix(&*stem.to_string_lossy())
                        .is_some_and(|rest| rest.starts_with('_'))
            });
            if named && !used.insert(stem.clone(), true).unwrap_or(false) {
                unread.push(own.clone());
            }
        }
    }
    Ok(used)
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
        if BESIDE.iter().any(|beside| entry.file_name() == *beside) {
            continue;
        }
        if path.is_dir() {
            add(hash, root, &path, counts)?;
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
        fs::write(folder.path().join("a/driver.toml"), "said otherwise").unwrap();
        assert_eq!(of(folder.path(), "a", "s").unwrap(), first, "neither is a source");
        fs::write(folder.path().join("shim/s.c"), "z").unwrap();
        let second = of(folder.path(), "a", "s").unwrap();
        assert_ne!(second, first);
        fs::write(folder.path().join("shim/other.c"), "z").unwrap();
        fs::write(folder.path().join("shim/s2.c"), "z").unwrap();
        assert_eq!(of(folder.path(), "a", "s").unwrap(), second, "another family's shim");
        fs::write(folder.path().join("shim/s_part.h"), "z").unwrap();
        let second = {
            let with_part = of(folder.path(), "a", "s").unwrap();
            assert_ne!(with_part, second, "a part of its own shim");
            with_part
        };
        fs::write(folder.path().join("a/build.rs"), "driver_build::one_with(2)").unwrap();
        fs::create_dir(folder.path().join("build/src")).unwrap();
        for (module, text) in
            [("lib", "mod one; mod two; mod three;"), ("one", "use crate::two::f;")]
        {
            fs::write(folder.path().join(format!("build/src/{module}.rs")), text).unwrap();
        }
        for module in ["two", "three"] {
            fs::write(folder.path().join(format!("build/src/{module}.rs")), "").unwrap();
        }
        let third = of(folder.path(), "a", "s").unwrap();
        fs::write(folder.path().join("build/src/three.rs"), "changed").unwrap();
        assert_eq!(of(folder.path(), "a", "s").unwrap(), third, "a recipe of others");
        fs::write(folder.path().join("build/src/two.rs"), "changed").unwrap();
        assert_ne!(of(folder.path(), "a", "s").unwrap(), third, "one that its own needs");
        fs::rename(folder.path().join("shim/s.c"), folder.path().join("shim/s.cpp")).unwrap();
        assert_ne!(of(folder.path(), "a", "s").unwrap(), second);
    }
}
