//! The libraries that programs need, and what those need.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Error, elf};

/// Where a system has its libraries.
const SYSTEM: [&str; 7] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
];

/// All libraries of these programs and their loaders, by name. `folders` are looked in before the system's.
pub(crate) fn closure(
    programs: &[PathBuf],
    folders: &[PathBuf],
) -> Result<BTreeMap<String, PathBuf>, Error> {
    let mut found = BTreeMap::new();
    let mut ahead: Vec<PathBuf> = programs.to_vec();
    while let Some(file) = ahead.pop() {
        let bytes = fs::read(&file).map_err(Error::file("reading", &file))?;
        let needs = elf::needs(&bytes).ok_or_else(|| Error::NotAProgram(file.clone()))?;
        if let Some(loader) = needs.loader.map(PathBuf::from) {
            found.insert(name_of(&loader), loader);
        }
        for library in needs.libraries {
            if found.contains_key(&library) {
                continue;
            }
            let own = needs.folders.iter().map(|folder| origin(folder, &file));
            let folders = own.chain(folders.iter().cloned()).chain(SYSTEM.map(PathBuf::from));
            let path = folders.map(|folder| folder.join(&library)).find(|path| path.is_file());
            let Some(path) = path else {
                return Err(Error::NoLibrary { library, needed_by: file });
            };
            ahead.push(path.clone());
            found.insert(library, path);
        }
    }
    Ok(found)
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A folder that a file names, with its own in place of `$ORIGIN` (ld.so(8)).
fn origin(folder: &str, file: &Path) -> PathBuf {
    let own = file.parent().unwrap_or(Path::new("/")).to_string_lossy();
    PathBuf::from(folder.replace("$ORIGIN", &own).replace("${ORIGIN}", &own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_its_libraries_and_its_loader() {
        let program = std::env::current_exe().unwrap();
        let found = closure(&[program], &[]).unwrap();
        assert!(found.keys().any(|name| name.starts_with("libc.so")), "{found:?}");
        assert!(found.keys().any(|name| name.starts_with("ld-linux")), "{found:?}");
        assert!(found.values().all(|path| path.is_file()), "{found:?}");
    }

    #[test]
    fn what_is_no_program_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        fs::write(&file, "#!/bin/sh\n").unwrap();
        assert!(matches!(closure(&[file], &[]), Err(Error::NotAProgram(_))));
    }

    #[test]
    fn an_origin_is_the_files_folder() {
        let file = Path::new("/opt/x/bin/program");
        assert_eq!(origin("$ORIGIN/../lib", file), Path::new("/opt/x/bin/../lib"));
        assert_eq!(origin("/lib", file), Path::new("/lib"));
    }
}
