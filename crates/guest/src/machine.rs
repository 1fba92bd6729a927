//! A guest as it is started: QEMU's command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use child::Kept;
use host::Launch;

use crate::cache::{Kernel, on_this_machine};
use crate::image::{self, Image, Parts};
use crate::inside::ports::{ANSWERS, FAILED, JOB, WORDS};
use crate::inside::{FIRST, ROLE};
use crate::{Cache, Error, Part};

/// The program that emulates the machine.
const QEMU: &str = "qemu-system-x86_64";
/// How long it may take to say its version, and what is read of that, in bytes.
const PATIENCE: Duration = Duration::from_secs(30);
const SAID: usize = 64 << 10;
/// Memory of a guest, in MiB, unless it is given more.
const MEMORY: u32 = 512;
/// All that QEMU's processor can, less the promise that a copy byte by byte is fast (ERMS): each byte would
/// count as an instruction, and with them a kernel that believes it would take eight times as long to copy.
const CPU: &str = "max,-erms";
/// The guest's time of day when it starts, whatever it is here.
const BEGIN: &str = "2026-01-01T00:00:00";

/// Kernel modules of a lab: links, devices, queues. Names that a kernel does not have are left out.
#[rustfmt::skip] // a list of words
pub const LAB_MODULES: &[&str] = &[
    "af_packet", "ipv6", "veth", "tun", "dummy", "bridge", "8021q", "sch_netem", "sch_tbf", "sch_fq",
    "sch_ingress", "tcp_bbr",
];

/// Kernel modules of secured links over a pseudowire, beside [`LAB_MODULES`]: protocols, the ciphers that
/// the kernel asks for by name when a key is set, traffic control.
#[rustfmt::skip] // a list of words
pub const LINK_MODULES: &[&str] = &[
    "macsec", "wireguard", "vxlan", "esp4", "esp6", "xfrm_user", "xfrm_interface", "l2tp_core",
    "l2tp_netlink", "l2tp_eth", "l2tp_ip", "udp_tunnel", "ip6_udp_tunnel", "mpls_router", "mpls_iptunnel",
    "mpls_gso", "act_mpls", "act_vlan", "act_mirred", "act_police", "act_csum", "act_pedit", "act_skbedit",
    "cls_flower", "cls_matchall", "cls_u32", "sch_prio", "sch_htb", "aesni_intel", "ghash_clmulni_intel",
    "sha1_ssse3", "sha256_ssse3", "sha1_generic", "sha256_generic", "aes_generic", "gcm", "ccm", "ctr", "cbc",
    "cmac", "hmac", "authenc", "authencesn", "echainiv", "seqiv", "crypto_null", "ghash_generic", "gf128mul",
    "cryptd", "chacha_x86_64", "chacha_generic", "chacha20poly1305", "poly1305_x86_64", "poly1305_generic",
    "curve25519_x86_64", "sha512_generic", "drbg", "af_alg", "algif_aead", "algif_skcipher",
];

/// Kernel modules of Wi-Fi whose radios are simulated, beside [`LAB_MODULES`].
pub const RADIO_MODULES: &[&str] = &["mac80211_hwsim", "bonding"];

/// What a guest consists of, for a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// The kernel's release.
    pub kernel: String,
    /// The version that QEMU says it has.
    pub qemu: String,
}

/// A machine of one processor in which jobs are done.
#[derive(Debug, Clone)]
pub struct Guest {
    cache: Cache,
    part: Part,
    kernel: Kernel,
    qemu: PathBuf,
    program: PathBuf,
    others: Vec<(String, PathBuf)>,
    plugins: Vec<(String, PathBuf)>,
    links: Vec<(&'static str, &'static str)>,
    modules: Vec<&'static str>,
    memory: u32,
    seed: u64,
}

impl Guest {
    /// A guest from the user's cache, with Debian's kernel for virtual machines, the modules of a lab and 512
    /// MiB. It runs this program, whose `main` begins with [`crate::init_if_guest`].
    ///
    /// # Errors
    /// Something was not fetched; [`Error::Architecture`].
    pub fn find() -> Result<Guest, Error> {
        Guest::of(Cache::find()?, Part::CloudKernel)
    }

    /// A guest with the kernel of one of the cache's parts.
    ///
    /// # Errors
    /// As [`Guest::find`].
    pub fn of(cache: Cache, part: Part) -> Result<Guest, Error> {
        if !cfg!(target_arch = "x86_64") {
            return Err(Error::Architecture);
        }
        let kernel = cache.kernel(part)?;
        let qemu = cache.program(QEMU).ok_or(Error::NotFetched(Part::Programs))?;
        let program = std::env::current_exe();
        let program = program.map_err(Error::file("finding", "this program".as_ref()))?;
        let modules = LAB_MODULES.to_vec();
        Ok(Guest {
            cache,
            part,
            kernel,
            qemu,
            program,
            others: Vec::new(),
            plugins: Vec::new(),
            links: Vec::new(),
            modules,
            memory: MEMORY,
            seed: 1,
        })
    }

    /// The same with more programs: `ip`, `tc`, `wpa_supplicant`, of this machine or fetched.
    ///
    /// # Errors
    /// [`Error::NoGuestProgram`].
    pub fn with_programs(mut self, names: &[&str]) -> Result<Guest, Error> {
        for name in names {
            let path = self.cache.program(name);
            let path = path.ok_or_else(|| Error::NoGuestProgram((*name).to_owned()))?;
            self.others.push(((*name).to_owned(), path));
        }
        Ok(self)
    }

    /// The same with what programs load at run time, at the paths where packages put it: without the slash in front.
    ///
    /// # Errors
    /// [`Error::NoGuestProgram`].
    pub fn with_plugins<'a>(
        mut self,
        paths: impl IntoIterator<Item = &'a str>,
    ) -> Result<Guest, Error> {
        for path in paths {
            let file = self.cache.file(path);
            let file = file.ok_or_else(|| Error::NoGuestProgram(path.to_owned()))?;
            // The guest has one folder of libraries, by all the names that systems have for it.
            self.plugins.push((path.replacen("lib/x86_64-linux-gnu/", "lib/", 1), file));
        }
        Ok(self)
    }

    /// The same with a symbolic link: for a program that keeps its files where the guest has no folder.
    #[must_use]
    pub fn with_link(mut self, path: &'static str, target: &'static str) -> Guest {
        self.links.push((path, target));
        self
    }

    /// The same with more kernel modules, loaded in this order with what they need.
    #[must_use]
    pub fn with_modules(mut self, names: &[&'static str]) -> Guest {
        self.modules.extend(names);
        self
    }

    /// The same with other memory, in MiB: it holds the program, too, twice while it starts.
    #[must_use]
    pub fn with_memory(self, mib: u32) -> Guest {
        Guest { memory: mib, ..self }
    }

    /// The same with another seed of all random numbers in the guest.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Guest {
        Guest { seed, ..self }
    }

    /// Runs another program than this one in the guest.
    #[must_use]
    pub fn running(self, program: impl Into<PathBuf>) -> Guest {
        Guest { program: program.into(), ..self }
    }

    /// What it consists of.
    ///
    /// # Errors
    /// QEMU does not say its version.
    pub fn versions(&self) -> Result<Versions, Error> {
        let mut command = Command::new(&self.qemu);
        command.arg("--version").env_clear().envs(self.environment());
        let failed = |last_words| Error::Command {
            doing: "asking for its version".to_owned(),
            program: QEMU,
            last_words,
        };
        let kept = [Kept::First(SAID); 2];
        let said = child::run(&mut command, Vec::new(), PATIENCE, kept);
        let said = said.map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        // `QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`
        let version = text.lines().next().and_then(|line| line.split("version ").nth(1));
        let version = version.filter(|_| said.succeeded());
        let error = || failed(child::last_words(&said.stderr, 400));
        let qemu = version.ok_or_else(error)?.to_owned();
        Ok(Versions { kernel: self.kernel.release.clone(), qemu })
    }

    /// Modules that were asked for and are not in this kernel, nor built into it. Makes the image if need be.
    ///
    /// # Errors
    /// As [`Guest::launch`].
    pub fn absent_modules(&self) -> Result<Vec<String>, Error> {
        Ok(self.image()?.absent)
    }

    /// How it is started for one job: for `Place::Process` of the crate `host`. What the job gives comes at
    /// once; a job that fails or panics is an error there, with the end of what the guest said. No second
    /// job can be asked of a running guest: the first is read whole before the machine starts.
    ///
    /// # Errors
    /// A program or library cannot be read, or the image not be written.
    pub fn launch(&self) -> Result<Launch, Error> {
        let image = self.image()?;
        let arguments = self.arguments(&image);
        Ok(Launch { program: self.qemu.clone(), arguments, environment: self.environment() })
    }

    fn image(&self) -> Result<Image, Error> {
        let parts = Parts {
            program: &self.program,
            others: &self.others,
            plugins: &self.plugins,
            links: &self.links,
            kernel: &self.kernel,
            part: self.part,
            modules: &self.modules,
        };
        image::image(&self.cache, &parts)
    }

    fn arguments(&self, image: &Image) -> Vec<OsString> {
        // The kernel: quiet, on the serial line, ends after a panic, does not test its ciphers; what it does
        // not know becomes a variable of the first process.
        let kernel = format!(
            "console=ttyS0 quiet panic=-1 tsc=reliable nokaslr random.trust_cpu=on \
             cryptomgr.notests {ROLE}={FIRST}"
        );
        #[rustfmt::skip] // options beside their values
        let text = [
            // Nothing that was not asked for.
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-machine", "pc,usb=off,vmport=off,hpet=off", "-accel", "tcg", "-cpu", CPU, "-smp", "1",
            "-m", &self.memory.to_string(),
            // Virtual time: an instruction is a nanosecond, idle time is skipped; the clock of the day is
            // of it, too.
            "-icount", "shift=0,sleep=off",
            "-rtc", &format!("base={BEGIN},clock=vm"),
            "-seed", &self.seed.to_string(),
            // The console and the words go to standard error, the answers to standard output.
            "-chardev", "file,id=console,path=/dev/fd/2",
            "-serial", "chardev:console",
            "-chardev", "file,id=words,path=/dev/fd/2",
            "-device", &format!("isa-debugcon,iobase={WORDS:#x},chardev=words"),
            "-chardev", "file,id=answers,path=/dev/fd/1",
            "-device", &format!("isa-debugcon,iobase={ANSWERS:#x},chardev=answers"),
            "-device", &format!("isa-debug-exit,iobase={FAILED:#x},iosize=0x4"),
            // Read to its end before the machine starts.
            "-fw_cfg", &format!("name={JOB},file=/dev/stdin"),
            "-append", &kernel,
        ]
        .map(OsString::from);
        let mut arguments: Vec<OsString> = text.into_iter().collect();
        arguments.extend(["-kernel".into(), self.kernel.image.clone().into()]);
        arguments.extend(["-initrd".into(), image.file.clone().into()]);
        if self.is_fetched() {
            for folder in ["usr/share/qemu", "usr/share/seabios"] {
                let folder = self.cache.part(Part::Programs).join(folder);
                arguments.extend(["-L".into(), folder.into()]);
            }
        }
        arguments
    }

    /// Whether QEMU is of the cache, and not of this machine.
    fn is_fetched(&self) -> bool {
        on_this_machine(QEMU).as_ref() != Some(&self.qemu)
    }

    /// Where a fetched QEMU finds its libraries and modules.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        if !self.is_fetched() {
            return Vec::new();
        }
        let folders = self.cache.library_folders(Part::Programs);
        let modules =
            folders.iter().map(|folder| folder.join("qemu")).find(|folder| folder.is_dir());
        let libraries = std::env::join_paths(&folders).unwrap_or_default();
        let mut environment = vec![("LD_LIBRARY_PATH".into(), libraries)];
        environment.extend(modules.map(|folder| ("QEMU_MODULE_DIR".into(), folder.into())));
        environment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_kernel_there_is_no_guest() {
        let folder = tempfile::tempdir().unwrap();
        let found = Guest::of(Cache::at(folder.path()), Part::CloudKernel);
        assert!(matches!(found, Err(Error::NotFetched(Part::CloudKernel) | Error::Architecture)));
    }

    #[test]
    fn no_module_is_asked_for_twice() {
        let mut names: Vec<_> = LAB_MODULES.iter().chain(LINK_MODULES).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
