//! Compiles AWS-LC's libssl and `src/ech.c` against the libcrypto of `aws-lc-sys`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What is put before libssl's names in C.
const PREFIX: &str = "wiretax_awslc_";
/// What names of `src/ech.c` begin with.
const OWN: &str = "wiretax_ech_";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/ech.c");
    let include = include();
    let mut library = cc::Build::new();
    library.include(&include).define("BORINGSSL_IMPLEMENTATION", None);
    library.cpp(true).cpp_link_stdlib(None).std("c++11").flag("-fno-exceptions").flag("-fno-rtti");
    // Another's code: what it is warned of is not for us to change.
    library.warnings(false).extra_warnings(false).files(sources());
    let mut shim = cc::Build::new();
    shim.include(&include).std("c11").warnings(true).extra_warnings(true).file("src/ech.c");
    let objects = [&library, &shim].map(cc::Build::compile_intermediates).concat();
    rename(&objects);
    cc::Build::new().objects(objects).compile("wiretax_awslc_ssl");
}

/// The folder of the headers that `aws-lc-sys` was built with: its build script says so to those that depend on it.
fn include() -> PathBuf {
    let told = env::vars_os().find(|(name, _)| {
        let name = name.to_string_lossy();
        name.starts_with("DEP_AWS_LC_") && name.ends_with("_INCLUDE")
    });
    PathBuf::from(told.expect("aws-lc-sys tells where its headers are").1)
}

/// The folder of AWS-LC's source: that of the package itself, by what cargo says of this workspace.
fn source() -> PathBuf {
    let cargo = env::var_os("CARGO").expect("cargo sets it");
    let target = env::var("TARGET").expect("cargo sets it");
    let metadata = |offline: bool| {
        let mut command = Command::new(&cargo);
        command.args(["metadata", "--format-version=1", "--locked", "--filter-platform", &target]);
        command.args(offline.then_some("--offline"));
        let output = command.output().expect("cargo runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let manifests = text.split("\"manifest_path\":\"").skip(1);
        let mut manifests = manifests.filter_map(|rest| rest.split('"').next().map(PathBuf::from));
        manifests.find(|manifest| {
            let folder = manifest.parent().and_then(Path::file_name).unwrap_or_default();
            folder.to_string_lossy().starts_with("aws-lc-sys")
        })
    };
    // What is not needed to build may not have been fetched yet.
    let manifest = metadata(true).or_else(|| metadata(false)).expect("cargo knows aws-lc-sys");
    manifest.parent().expect("a manifest is in a folder").join("aws-lc")
}

/// The files of libssl; beside them lie its tests.
fn sources() -> BTreeSet<PathBuf> {
    let folder = source().join("ssl");
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "cc"))
        .filter(|path| !stem(path).ends_with("_test"))
        .collect()
}

/// Puts the prefix before the names in C that these objects define, where they are defined and where they are used.
/// Those in C++ are in a namespace of their own.
fn rename(objects: &[PathBuf]) {
    let listed =
        run(Command::new("nm").args(["-g", "--defined-only", "--format=posix"]).args(objects));
    let names: BTreeSet<&str> = listed
        .lines()
        .filter_map(|line| line.split_once(' ').map(|(name, _)| name))
        .filter(|name| !name.starts_with("_Z") && !name.starts_with(OWN))
        .collect();
    assert!(names.contains("SSL_CTX_new"), "nm lists what libssl defines");
    let pairs: String = names.iter().map(|name| format!("{name} {PREFIX}{name}\n")).collect();
    let file = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("names.txt");
    fs::write(&file, pairs).expect("the folder of outputs can be written");
    for object in objects {
        run(Command::new("objcopy").arg("--redefine-syms").arg(&file).arg(object));
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
