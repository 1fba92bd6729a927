//! Libraries as the distribution has them, by its development packages: linked in where it ships an
//! archive that can go into a shared object, else by the system's shared library.

use std::path::{Path, PathBuf};

use crate::{Sdk, copy_tree, link, out_dir, shim, tool};

/// How a library of the system goes into its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linking {
    /// Its archives are linked in.
    Archives,
    /// The system's shared library is loaded with the driver.
    Shared,
}

/// A library that the distribution has.
#[derive(Debug, Clone, Copy)]
pub struct SystemLibrary<'a> {
    /// The shim on it, in `drivers/shim`.
    pub shim: &'a str,
    /// The package with its headers, for the hint when they are not there.
    pub development: &'a str,
    /// The package with the library, whose version is told in the flags.
    pub package: &'a str,
    /// Folders of headers, and under which name the shim looks for each ("" for its own top).
    pub headers: &'a [(&'a str, &'a str)],
    /// The libraries, users before what they use, without `lib`.
    pub libraries: &'a [&'a str],
    /// Whether the driver holds them or loads the system's when it is loaded.
    pub linking: Linking,
}

/// Builds the shim on a library that the system has.
///
/// # Panics
/// If its headers or archives are not there, with the package to install.
pub fn system_library(library: &SystemLibrary<'_>) {
    let include = out_dir().join("include");
    for (folder, name) in library.headers {
        let from = Path::new(folder);
        assert!(
            from.is_dir(),
            "{folder} is not there; hint: install the package {}",
            library.development
        );
        println!("cargo:rerun-if-changed={folder}");
        // Only these: all of /usr/include before the compiler's own folders would upset C++.
        copy_tree(from, &include.join(name));
    }
    let archives = match library.linking {
        Linking::Archives => library.libraries.iter().map(|name| archive(name, library)).collect(),
        Linking::Shared => Vec::new(),
    };
    let flags = match library.linking {
        Linking::Archives => "linked statically",
        Linking::Shared => "the system's shared library",
    };
    let sdk = Sdk {
        include,
        archives,
        flags: format!("{} {}, {flags}", library.package, package_version(library.package)),
    };
    shim(library.shim, &sdk, &[]);
    if library.linking == Linking::Shared {
        for name in library.libraries {
            println!("cargo:rustc-link-lib=dylib={name}");
        }
    }
    link(&sdk);
}

/// Where the compiler finds an archive.
fn archive(name: &str, library: &SystemLibrary<'_>) -> PathBuf {
    let file = format!("lib{name}.a");
    let output = tool("cc", &out_dir()).arg(format!("-print-file-name={file}")).output();
    let output = output.unwrap_or_else(|error| panic!("cc could not be started: {error}"));
    let found = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    assert!(
        found.is_absolute() && found.exists(),
        "{file} is not there; hint: install the package {}",
        library.development
    );
    found
}

/// The version that the package manager tells, or nothing where there is another one.
fn package_version(package: &str) -> String {
    let output = tool("dpkg-query", &out_dir())
        .args(["--show", "--showformat=${Version}", package])
        .output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
