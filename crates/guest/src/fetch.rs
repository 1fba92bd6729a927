//! Fetching: Debian packages, unpacked into the cache. No rights are needed for it, and nothing of the
//! system is changed.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use child::{Child, End, Kept};
use outfile::{OutFile, Scratch};

use crate::cache::on_this_machine;
use crate::{Cache, Error, Package, Part, modules};

/// How long one package may take to come.
const PATIENCE: Duration = Duration::from_secs(1800);
/// What is kept of a program's output, in bytes.
const OUTPUT: usize = 1 << 20;
/// What is said of why a program failed, in bytes.
const WORDS: usize = 600;
/// Modules that one call of `xz` expands.
const AT_ONCE: usize = 200;

/// Programs that jobs use in the guest or that start it, and the packages that have them.
const PROGRAMS: [(&str, &str); 4] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("wpa_supplicant", "wpasupplicant"),
];

/// Files of the daemons of networks, and the packages that have them.
const DAEMONS: [(&str, &str); 8] = [
    ("usr/sbin/hostapd", "hostapd"),
    ("sbin/wpa_supplicant", "wpasupplicant"),
    ("sbin/iw", "iw"),
    ("usr/sbin/dnsmasq", "dnsmasq-base"),
    ("sbin/dhcpcd", "dhcpcd-base"),
    ("usr/lib/ipsec/charon", "strongswan-charon"),
    ("usr/lib/ipsec/plugins/libstrongswan-openssl.so", "libstrongswan-standard-plugins"),
    ("usr/lib/ipsec/plugins/libstrongswan-vici.so", "strongswan-swanctl"),
];

/// How far fetching is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What is being done.
    pub what: String,
    /// Bytes of packages that are there.
    pub done: u64,
    /// Bytes of packages in all.
    pub total: u64,
}

/// A package to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    package: Package,
    /// Its file's name, as apt-get writes it.
    file: String,
    size: u64,
}

/// The caller who waits: whether it wants to stop, and where steps are reported.
struct Waiting<'a> {
    stop: &'a dyn Fn() -> bool,
    step: &'a mut dyn FnMut(Step),
}

impl Cache {
    /// Fetches a part, unless it is there and `again` is false. True if it was fetched now.
    ///
    /// Packages are fetched one by one, and those that came stay until the part is whole; the part takes
    /// its place at once. `stop` is asked all the time.
    ///
    /// # Errors
    /// This machine is no Debian, the network or the package lists fail, there is no room;
    /// [`Error::Interrupted`].
    pub fn fetch(
        &self,
        part: Part,
        again: bool,
        stop: &dyn Fn() -> bool,
        step: &mut dyn FnMut(Step),
    ) -> Result<bool, Error> {
        if self.packages(part).is_some() && !again {
            return Ok(false);
        }
        for program in ["apt-get", "apt-cache", "dpkg-deb"] {
            on_this_machine(program).ok_or(Error::NoProgram(program))?;
        }
        let mut waiting = Waiting { stop, step };
        waiting.say(format!("{part}: asking apt what is needed"), 0, 0);
        let wanted = wanted(part, &waiting)?;
        let downloads = self.folder().join("downloads");
        fs::create_dir_all(&downloads).map_err(Error::file("making the folder", &downloads))?;
        download(&wanted, &downloads, &mut waiting)?;
        self.install(part, &wanted, &downloads, &mut waiting)?;
        for package in &wanted {
            // One that stays is in nobody's way.
            let _ = fs::remove_file(downloads.join(&package.file));
        }
        Ok(true)
    }

    /// Unpacks packages beside where the part is to be, and puts the whole there.
    fn install(
        &self,
        part: Part,
        wanted: &[Wanted],
        downloads: &Path,
        waiting: &mut Waiting<'_>,
    ) -> Result<(), Error> {
        // Removed with all that is in it, unless it becomes the part.
        let new = Scratch::new_in(self.folder(), "new-");
        let new = new.map_err(Error::file("making a folder in", self.folder()))?;
        let root = new.path().join("root");
        fs::create_dir(&root).map_err(Error::file("making the folder", &root))?;
        for package in wanted {
            waiting.say(format!("unpacking {}", package.package.name), 1, 1);
            let mut unpack = tool("dpkg-deb")?;
            unpack.arg("-x").arg(downloads.join(&package.file)).arg(&root);
            waiting.run("dpkg-deb", &mut unpack, &format!("unpacking {}", package.package.name))?;
        }
        if matches!(part, Part::CloudKernel | Part::FullKernel) {
            waiting.say(format!("{part}: expanding modules"), 1, 1);
            expand(&root, waiting)?;
        }
        Cache::seal(&root, wanted.iter().map(|wanted| wanted.package.clone()).collect())?;
        let place = self.part(part);
        let before = new.path().join("before");
        if place.exists() {
            fs::rename(&place, &before).map_err(Error::file("replacing", &place))?;
        }
        fs::rename(&root, &place).map_err(Error::file("making the folder", &place))
    }
}

impl Waiting<'_> {
    fn say(&mut self, what: String, done: u64, total: u64) {
        (self.step)(Step { what, done, total });
    }

    /// Runs a program to its end; what it wrote to standard output.
    fn run(
        &self,
        program: &'static str,
        command: &mut Command,
        doing: &str,
    ) -> Result<String, Error> {
        let failed = |last_words: String| Error::Command {
            doing: doing.to_owned(),
            program,
            last_words: last_words.replace('\n', " "),
        };
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Child::spawn(command).map_err(|error| failed(error.to_string()))?;
        let stdout = child::keep_aside(child.stdout(), Kept::First(OUTPUT));
        let stdout = stdout.map_err(|error| failed(error.to_string()))?;
        let stderr = child::keep_aside(child.stderr(), Kept::Last(WORDS));
        let stderr = stderr.map_err(|error| failed(error.to_string()))?;
        let mut stop = || (self.stop)();
        let end = child.wait(Some(PATIENCE), &mut stop);
        let end = end.map_err(|error| failed(error.to_string()))?;
        // Killed if it runs on, with what it has started.
        drop(child);
        match end {
            End::Exited(status) if status.success() => {
                Ok(String::from_utf8_lossy(&stdout.recv().unwrap_or_default()).into_owned())
            }
            End::Exited(_) => {
                Err(failed(child::last_words(&stderr.recv().unwrap_or_default(), WORDS)))
            }
            End::Late => {
                Err(failed(format!("it was ended after {} minutes", PATIENCE.as_secs() / 60)))
            }
            End::Stopped => Err(Error::Interrupted(doing.to_owned())),
        }
    }
}

/// A program of this machine, from a folder that does not depend on the current one.
fn tool(name: &'static str) -> Result<Command, Error> {
    on_this_machine(name).map(Command::new).ok_or(Error::NoProgram(name))
}

/// The packages of a part.
fn wanted(part: Part, waiting: &Waiting<'_>) -> Result<Vec<Wanted>, Error> {
    let doing = format!("finding the packages of {part}");
    match part {
        Part::Programs => {
            let missing = PROGRAMS.iter().filter(|(program, _)| on_this_machine(program).is_none());
            missing_packages(missing.map(|(_, package)| *package).collect(), waiting, &doing)
        }
        Part::Daemons => {
            let missing = DAEMONS.iter().filter(|(file, _)| !Path::new("/").join(file).is_file());
            missing_packages(missing.map(|(_, package)| *package).collect(), waiting, &doing)
        }
        Part::CloudKernel | Part::FullKernel => {
            let meta = match part {
                Part::FullKernel => "linux-image-amd64",
                _ => "linux-image-cloud-amd64",
            };
            let show = |package: &str| {
                let mut apt = tool("apt-cache")?;
                apt.args(["show", "--no-all-versions", package]);
                waiting.run("apt-cache", &mut apt, &doing)
            };
            let unclear = || Error::Unclear {
                doing: doing.clone(),
                what: format!("apt does not say which kernel {meta} stands for"),
            };
            let image = depends(&show(meta)?).ok_or_else(unclear)?;
            let described = show(&image)?;
            Ok(vec![of_description(&described).ok_or_else(unclear)?])
        }
    }
}

/// These packages with what they need and this machine lacks, as if they were installed; nothing is.
fn missing_packages(
    mut packages: Vec<&str>,
    waiting: &Waiting<'_>,
    doing: &str,
) -> Result<Vec<Wanted>, Error> {
    packages.dedup();
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    let mut apt = tool("apt-get")?;
    apt.args(["install", "--print-uris", "-qq", "-y", "--no-install-recommends"]);
    of_uris(&waiting.run("apt-get", apt.args(packages), doing)?, doing)
}

/// Packages by what `apt-get --print-uris` prints: `'URI' FILE SIZE HASH`, a line each.
fn of_uris(text: &str, doing: &str) -> Result<Vec<Wanted>, Error> {
    let lines = text.lines().filter(|line| line.starts_with('\''));
    let wanted = lines.map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let file = words.next()?.to_owned();
        let size = words.next()?.parse().ok()?;
        let mut parts = file.split('_');
        let name = parts.next()?.to_owned();
        // A colon is no character of a file's name to apt.
        let version = parts.next()?.replace("%3a", ":");
        Some(Wanted { package: Package { name, version }, file, size })
    });
    let wanted: Option<Vec<Wanted>> = wanted.collect();
    wanted.filter(|wanted| !wanted.is_empty()).ok_or_else(|| Error::Unclear {
        doing: doing.to_owned(),
        what: "apt-get does not say what it would fetch".to_owned(),
    })
}

/// A field of the first package that `apt-cache show` describes.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let first = text.split("\n\n").next()?;
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':').map(str::trim);
    first.lines().find_map(value)
}

/// The first package that a package needs.
fn depends(text: &str) -> Option<String> {
    let first = field(text, "Depends")?.split([',', '|']).next()?;
    first.split_whitespace().next().map(str::to_owned)
}

/// The package that `apt-cache show` describes.
fn of_description(text: &str) -> Option<Wanted> {
    let name = field(text, "Package")?.to_owned();
    let version = field(text, "Version")?.to_owned();
    let architecture = field(text, "Architecture")?;
    let file = format!("{name}_{}_{architecture}.deb", version.replace(':', "%3a"));
    let size = field(text, "Size")?.parse().ok()?;
    Some(Wanted { package: Package { name, version }, file, size })
}

/// Fetches what is not there yet.
fn download(wanted: &[Wanted], downloads: &Path, waiting: &mut Waiting<'_>) -> Result<(), Error> {
    let total = wanted.iter().map(|package| package.size).sum();
    let mut done = 0;
    for Wanted { package, file, size } in wanted {
        waiting.say(format!("fetching {}", package.name), done, total);
        let place = downloads.join(file);
        // Not through a link: as root, what is fetched comes from another user's folder.
        let has = |path: &Path| {
            fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() == *size)
        };
        if !has(&place) {
            // apt-get checks what it fetched against the signed lists; only then it comes to its place.
            let (_scratch, new) = arrivals(downloads)?;
            let doing = format!("fetching {}", package.name);
            waiting.run("apt-get", &mut apt_download(package, &new)?, &doing)?;
            let came = fs::read_dir(&new).map_err(Error::file("reading", &new))?;
            let came = came.filter_map(Result::ok).map(|entry| entry.path()).find(|path| has(path));
            let came = came.ok_or_else(|| Error::Unclear {
                doing,
                what: format!("apt-get fetched no package of {size} bytes"),
            })?;
            bring(&came, &place).map_err(Error::file("writing", &place))?;
        }
        done += size;
    }
    Ok(())
}

/// `apt-get download` of a package into a folder.
fn apt_download(package: &Package, folder: &Path) -> Result<Command, Error> {
    let mut apt = tool("apt-get")?;
    apt.args(["download", "-qq"]).arg(format!("{}={}", package.name, package.version));
    apt.current_dir(folder);
    Ok(apt)
}

/// A folder into which apt-get fetches, and what removes it. As root apt-get changes to the user `_apt`, to whom the
/// folder is given then; it is not in the cache, which that user cannot reach below root's home.
fn arrivals(downloads: &Path) -> Result<(Scratch, PathBuf), Error> {
    let user = fs::read_to_string("/etc/passwd").ok().as_deref().and_then(sandbox_user);
    let Some(user) = user.filter(|_| rustix::process::geteuid().is_root()) else {
        let new = Scratch::new_in(downloads, "new-");
        let new = new.map_err(Error::file("making a folder in", downloads))?;
        let folder = new.path().to_owned();
        return Ok((new, folder));
    };
    let parent = std::env::temp_dir();
    let new = Scratch::new_in(&parent, "wiretax-apt-");
    let new = new.map_err(Error::file("making a folder in", &parent))?;
    // The folder around stays ours, so that a later run may remove it.
    let folder = new.path().join("packages");
    let give = || {
        fs::set_permissions(new.path(), fs::Permissions::from_mode(0o711))?;
        fs::create_dir(&folder)?;
        std::os::unix::fs::chown(&folder, Some(user), None)
    };
    give().map_err(Error::file("giving apt's user the folder", &folder))?;
    Ok((new, folder))
}

/// The number of apt's own user, in what passwd(5) has.
fn sandbox_user(passwd: &str) -> Option<u32> {
    passwd.lines().find_map(|line| line.strip_prefix("_apt:")?.split(':').nth(1)?.parse().ok())
}

/// Copies a file to its place, which has the whole of it or nothing: a rename keeps its owner, who may change it.
fn bring(from: &Path, to: &Path) -> io::Result<()> {
    let mut new = OutFile::create(to)?;
    io::copy(&mut fs::File::open(from)?, &mut new)?;
    new.finish()
}

/// Puts modules in place of compressed ones, so that the guest needs no way to expand them.
fn expand(root: &Path, waiting: &Waiting<'_>) -> Result<(), Error> {
    let folders = ["lib/modules", "usr/lib/modules"].map(|folder| root.join(folder));
    let mut files = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        files.extend(modules::module_files(folder)?);
    }
    let ends =
        |end: &'static str| move |file: &&PathBuf| file.extension().is_some_and(|is| is == end);
    let xz: Vec<&PathBuf> = files.iter().filter(ends("xz")).collect();
    for some in xz.chunks(AT_ONCE) {
        let mut command = tool("xz")?;
        waiting.run("xz", command.args(["-d", "-q", "--"]).args(some), "expanding modules")?;
    }
    for file in files.iter().filter(ends("zst")) {
        if (waiting.stop)() {
            return Err(Error::Interrupted("expanding modules".to_owned()));
        }
        let bytes = fs::read(file).map_err(Error::file("reading", file))?;
        let bytes = zstd::decode_all(bytes.as_slice()).map_err(Error::file("expanding", file))?;
        let plain = file.with_extension("");
        fs::write(&plain, bytes).map_err(Error::file("writing", &plain))?;
        fs::remove_file(file).map_err(Error::file("removing", file))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_from_what_apt_would_fetch() {
        let text = "Reading package lists...\n\
            'http://x/pool/libfdt1_1.6.1-4+b1_amd64.deb' libfdt1_1.6.1-4+b1_amd64.deb 20812 MD5Sum:0\n\
            'http://x/q.deb' qemu-system-x86_1%3a7.2+dfsg-7_amd64.deb 8650000 SHA256:1\n";
        let found = of_uris(text, "x").unwrap();
        let shown: Vec<_> = found
            .iter()
            .map(|w| format!("{} {} {}", w.package.name, w.package.version, w.size))
            .collect();
        assert_eq!(shown, ["libfdt1 1.6.1-4+b1 20812", "qemu-system-x86 1:7.2+dfsg-7 8650000"]);
        assert_eq!(found[1].file, "qemu-system-x86_1%3a7.2+dfsg-7_amd64.deb");
        for wrong in ["", "E: Unable to locate package", "'http://x' file many\n"] {
            assert!(matches!(of_uris(wrong, "x"), Err(Error::Unclear { .. })), "{wrong}");
        }
    }

    #[test]
    fn as_root_apt_keeps_its_own_user_who_is_given_the_folder() {
        use std::os::unix::fs::MetadataExt;
        let passwd = "root:x:0:0::/root:/bin/sh\n_apt:x:42:65534::/nonexistent:/bin/false\n";
        assert_eq!((sandbox_user(passwd), sandbox_user("_aptly:x:1:1::\n")), (Some(42), None));
        let downloads = tempfile::tempdir().unwrap();
        let (_scratch, new) = arrivals(downloads.path()).unwrap();
        let package = Package { name: "x".to_owned(), version: "1".to_owned() };
        if let Ok(apt) = apt_download(&package, &new) {
            assert!(apt.get_args().eq(["download", "-qq", "x=1"]), "{apt:?}");
            assert!(Path::new(apt.get_program()).is_absolute());
        }
        let here = fs::read_to_string("/etc/passwd").unwrap();
        let owner = fs::metadata(&new).unwrap().uid();
        match sandbox_user(&here).filter(|_| rustix::process::geteuid().is_root()) {
            Some(user) => assert_eq!(owner, user),
            None => assert!(new.starts_with(downloads.path())),
        }
        fs::write(new.join("x.deb"), "x").unwrap();
        let place = downloads.path().join("x.deb");
        bring(&new.join("x.deb"), &place).unwrap();
        assert_eq!(fs::metadata(&place).unwrap().uid(), rustix::process::geteuid().as_raw());
    }

    #[test]
    fn a_kernel_is_found_by_what_its_name_stands_for() {
        let meta = "Package: linux-image-cloud-amd64\nVersion: 6.1.176-1\nDepends: \
            linux-image-6.1.0-50-cloud-amd64 (= 6.1.176-1), other\n\nPackage: x\nDepends: y\n";
        assert_eq!(depends(meta).as_deref(), Some("linux-image-6.1.0-50-cloud-amd64"));
        let image = "Package: linux-image-6.1.0-50-cloud-amd64\nArchitecture: amd64\nVersion: \
            6.1.176-1\nInstalled-Size: 9\nSize: 27000000\n";
        let wanted = of_description(image).unwrap();
        assert_eq!(wanted.file, "linux-image-6.1.0-50-cloud-amd64_6.1.176-1_amd64.deb");
        assert_eq!(wanted.size, 27_000_000);
        assert_eq!((depends("Package: x\n"), of_description("Package: x\n")), (None, None));
    }

    #[test]
    fn compressed_modules_are_replaced() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("lib/modules/6/kernel");
        fs::create_dir_all(&folder).unwrap();
        let packed = zstd::encode_all(&b"module"[..], 1).unwrap();
        fs::write(folder.join("a.ko.zst"), packed).unwrap();
        fs::write(folder.join("b.ko"), "plain").unwrap();
        let (stop, mut step) = (|| false, |_: Step| {});
        expand(root.path(), &Waiting { stop: &stop, step: &mut step }).unwrap();
        assert_eq!(fs::read(folder.join("a.ko")).unwrap(), b"module");
        assert!(!folder.join("a.ko.zst").exists() && folder.join("b.ko").exists());
    }

    #[test]
    fn a_wish_to_stop_ends_a_program() {
        let (stop, mut step) = (|| true, |_: Step| {});
        let waiting = Waiting { stop: &stop, step: &mut step };
        let ended = waiting.run("sleep", Command::new("sleep").arg("1000"), "sleeping");
        assert!(matches!(ended, Err(Error::Interrupted(_))));
    }
}
