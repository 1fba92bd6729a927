//! The guest's first file system, which is its only one: the program as `/init`, the libraries that it and
//! others need, kernel modules.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use outfile::OutFile;
use sha2::{Digest as _, Sha256};

use crate::cache::Kernel;
use crate::cpio::Archive;
use crate::inside::places;
use crate::modules::{List, Module, Modules, Taken};
use crate::{Cache, Error, Part, elf, libraries};

/// Images that are kept; older ones are removed.
const KEPT: usize = 12;
/// What an image looks like: another number, and none from before fits.
const FORM: u32 = 3;

/// What goes into an image.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    /// What the guest runs.
    pub(crate) program: &'a Path,
    /// Other programs, by name.
    pub(crate) others: &'a [(String, PathBuf)],
    /// What programs load at run time: where it is in the guest, and here.
    pub(crate) plugins: &'a [(String, PathBuf)],
    /// Symbolic links: where, and to what.
    pub(crate) links: &'a [(&'static str, &'static str)],
    pub(crate) kernel: &'a Kernel,
    /// Which part the kernel is.
    pub(crate) part: Part,
    /// Modules that are loaded before the job, by name.
    pub(crate) modules: &'a [&'static str],
}

/// An image, and which modules it lacks that were asked for.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) file: PathBuf,
    pub(crate) absent: Vec<String>,
}

/// Makes an image, or finds it where it was made before.
pub(crate) fn image(cache: &Cache, parts: &Parts<'_>) -> Result<Image, Error> {
    let modules = Modules::read(&parts.kernel.modules, parts.part)?;
    let Taken { modules: taken, absent } = modules.take(parts.modules)?;
    let programs: Vec<PathBuf> = std::iter::once(parts.program.to_owned())
        .chain(parts.others.iter().chain(parts.plugins).map(|(_, path)| path.clone()))
        .collect();
    let folders = [Part::Programs, Part::Daemons].map(|part| cache.library_folders(part)).concat();
    let libraries = libraries::closure(&programs, &folders)?;
    let folder = cache.folder().join("images");
    fs::create_dir_all(&folder).map_err(Error::file("making the folder", &folder))?;
    let key = key(parts, &libraries)?;
    let file = folder.join(format!("{key}.cpio"));
    if !file.is_file() {
        write(&file, parts, &libraries, &modules, taken)?;
        remove_old(&folder, &file);
    }
    Ok(Image { file, absent })
}

/// What an image is made of, in one word: who has the same needs no other.
fn key(parts: &Parts<'_>, libraries: &BTreeMap<String, PathBuf>) -> Result<String, Error> {
    let mut hash = Sha256::new();
    hash.update(FORM.to_le_bytes());
    hash.update(parts.kernel.modules.to_string_lossy().as_bytes());
    hash.update(parts.modules.join(","));
    hash.update(format!("{:?}", parts.links));
    let others = parts.others.iter().chain(parts.plugins);
    let others = others.map(|(name, path)| (name.as_str(), path.as_path()));
    let libraries = libraries.iter().map(|(name, path)| (name.as_str(), path.as_path()));
    // A kernel that was fetched anew is another one.
    let kernel = ("kernel", parts.kernel.image.as_path());
    for (name, path) in others.chain(libraries).chain([("init", parts.program), kernel]) {
        let file = fs::metadata(path).map_err(Error::file("reading", path))?;
        let modified = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        hash.update(format!("\n{name}\t{}\t{}", path.display(), file.len()));
        hash.update(format!("\t{modified:?}\t{}", file.ino()));
    }
    Ok(hash.finalize().iter().take(12).map(|byte| format!("{byte:02x}")).collect())
}

fn write(
    file: &Path,
    parts: &Parts<'_>,
    libraries: &BTreeMap<String, PathBuf>,
    modules: &Modules,
    taken: Vec<Module>,
) -> Result<(), Error> {
    let new = OutFile::create(file).map_err(Error::file("making", file))?;
    let out = BufWriter::with_capacity(1 << 20, new);
    let wrong = |error| Error::file("writing", file)(error);
    let mut archive = Archive::new(out);
    skeleton(&mut archive).map_err(wrong)?;
    // Not compressed: QEMU reads the file faster than the guest expands it.
    let program = elf::loaded_part(read(parts.program)?);
    archive.file(places::INIT, &program, true).map_err(wrong)?;
    for (name, path) in parts.others {
        let bytes = elf::loaded_part(read(path)?);
        archive.file(&format!("{}/{name}", places::PROGRAMS), &bytes, true).map_err(wrong)?;
    }
    for (name, path) in parts.plugins {
        archive.file(name, &elf::loaded_part(read(path)?), true).map_err(wrong)?;
    }
    for (name, target) in parts.links {
        archive.link(name, target).map_err(wrong)?;
    }
    for (name, path) in libraries {
        let bytes = elf::loaded_part(read(path)?);
        archive.file(&format!("{}/{name}", places::LIBRARIES), &bytes, true).map_err(wrong)?;
    }
    for Module { name, .. } in &taken {
        let Some(path) = modules.file(name) else { continue };
        let bytes = elf::unsigned(read(path)?);
        archive.file(&places::module(name), &bytes, false).map_err(wrong)?;
    }
    let list = List::new(taken).text();
    archive.file(places::LIST, list.as_bytes(), false).map_err(wrong)?;
    let new = archive.finish().and_then(|out| Ok(out.into_inner()?)).map_err(wrong)?;
    new.finish().map_err(wrong)
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    if child::stopping() {
        return Err(Error::Interrupted("making the image".to_owned()));
    }
    fs::read(path).map_err(Error::file("reading", path))
}

/// Folders, links and files that programs expect of any system.
fn skeleton(archive: &mut Archive<BufWriter<OutFile>>) -> io::Result<()> {
    for folder in ["proc", "sys", "dev", "tmp", "run", "root", "etc", "var"] {
        archive.folder(folder)?;
    }
    archive.folder(places::PROGRAMS)?;
    archive.folder(places::LIBRARIES)?;
    // One folder of programs and one of libraries, by all the names that systems have for them.
    for (link, target) in [
        ("bin", places::PROGRAMS),
        ("sbin", places::PROGRAMS),
        ("usr/sbin", "bin"),
        ("lib", places::LIBRARIES),
        ("lib64", places::LIBRARIES),
        ("usr/lib64", "lib"),
        ("usr/lib/x86_64-linux-gnu", "."),
        ("var/run", "/run"),
        ("usr/bin/modprobe", "/init"),
    ] {
        archive.link(link, target)?;
    }
    // Until the kernel has mounted its own: what it opens as the first program's standard streams.
    archive.device("dev/console", 5, 1)?;
    archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/false\n", false)?;
    archive.file("etc/group", b"root:x:0:\n", false)?;
    archive.file("etc/hosts", b"127.0.0.1 localhost\n::1 localhost\n", false)
}

/// Keeps the newest images, this one among them. One that is in use stays open to QEMU.
fn remove_old(folder: &Path, this: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut images: Vec<(SystemTime, PathBuf)> = entries
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "cpio"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .filter(|(_, path)| path != this)
        .collect();
    images.sort();
    let too_many = images.len().saturating_sub(KEPT - 1);
    for (_, path) in images.iter().take(too_many) {
        // Another may have removed it.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'a>(kernel: &'a Kernel, program: &'a Path, modules: &'a [&'static str]) -> Parts<'a> {
        Parts {
            program,
            others: &[],
            plugins: &[],
            links: &[],
            kernel,
            part: Part::CloudKernel,
            modules,
        }
    }

    #[test]
    fn an_image_is_made_once_and_anew_for_another_program() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let modules = folder.path().join("modules");
        fs::create_dir_all(&modules).unwrap();
        fs::write(modules.join("a.ko"), "").unwrap();
        fs::write(modules.join("modules.builtin"), "kernel/b.ko\n").unwrap();
        let image_file = folder.path().join("vmlinuz");
        fs::write(&image_file, "kernel").unwrap();
        let kernel = Kernel { image: image_file, modules, release: "6".to_owned() };
        let program = folder.path().join("program");
        fs::copy("/proc/self/exe", &program).unwrap();

        let made = image(&cache, &parts(&kernel, &program, &["b", "c"])).unwrap();
        assert_eq!(made.absent, ["c"]);
        let bytes = fs::read(&made.file).unwrap();
        for name in ["init", "usr/bin/modprobe", "usr/lib/ld-linux-x86-64.so.2"] {
            let name = format!("{name}\0");
            assert!(bytes.windows(name.len()).any(|part| part == name.as_bytes()), "{name}");
        }
        let times = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        let before = times(&made.file);
        let again = image(&cache, &parts(&kernel, &program, &["b", "c"])).unwrap();
        assert_eq!((&again.file, times(&again.file)), (&made.file, before));
        let other = folder.path().join("other");
        fs::copy(&program, &other).unwrap();
        let another = image(&cache, &parts(&kernel, &other, &["b", "c"])).unwrap();
        assert_ne!(another.file, made.file);
        assert!(image(&cache, &parts(&kernel, &other, &["a"])).is_err());
    }

    #[test]
    fn few_images_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..2 * KEPT {
            fs::write(folder.path().join(format!("{n}.cpio")), "").unwrap();
        }
        let this = folder.path().join("0.cpio");
        remove_old(folder.path(), &this);
        assert!(this.exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), KEPT);
    }
}
