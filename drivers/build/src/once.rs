//! What need not be built again.

use std::fs;
use std::path::PathBuf;

use crate::{out_dir, package_dir};

/// Runs a build unless all that it makes is there, made of the same inputs: a change of the shim alone
/// is not to cost the library's build again. The inputs are the options, the driver's build script and
/// the lock file of its source.
///
/// # Panics
/// If the build does, or if the inputs cannot be noted down.
pub(crate) fn once(options: &[&str], made: &[PathBuf], build: impl FnOnce()) {
    let stamp = out_dir().join("built.txt");
    let mut inputs = options.join("\n");
    for name in ["build.rs", "source/Cargo.lock"] {
        inputs += &fs::read_to_string(package_dir().join(name)).unwrap_or_default();
    }
    let same = fs::read_to_string(&stamp).is_ok_and(|before| before == inputs);
    if same && made.iter().all(|path| path.exists()) {
        println!("as built before: {}", out_dir().display());
        return;
    }
    // A build that breaks off leaves no stamp.
    let _ = fs::remove_file(&stamp);
    build();
    fs::write(&stamp, inputs).unwrap_or_else(|error| panic!("{}: {error}", stamp.display()));
}
