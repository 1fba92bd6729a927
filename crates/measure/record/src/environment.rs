//! The machine that measured.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Facts on the machine, each as far as it can be seen: a fact that cannot is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The kernel's release: `6.12.9-amd64`.
    pub kernel: Option<String>,
    /// The distribution, as it calls itself (os-release, PRETTY_NAME).
    pub os: Option<String>,
    /// The machine's architecture, as the program was built for it: `x86_64`.
    #[serde(default)]
    pub architecture: String,
    /// The processor's model.
    pub cpu_model: Option<String>,
    /// Processors online, as the kernel lists them: `0-1`.
    pub cpus_online: Option<String>,
    /// How many processors this process may use.
    pub cpus: Option<u32>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The frequency governor of the first processor; `None` where the kernel scales nothing, as in
    /// most virtual machines.
    pub governor: Option<String>,
    /// The hypervisor, when the processor says that there is one: its product name, or `unknown`.
    pub hypervisor: Option<String>,
    /// The load average over one minute when the run began.
    pub load_1min: Option<f64>,
    /// The host's name, unless it is withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Something that makes a result worse than it could be, with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// What was seen.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
    /// Which figures it is about.
    #[serde(default, skip_serializing_if = "Touches::is_times")]
    pub touches: Touches,
}

/// Which figures of a result a warning is about: it tells whether an answer could change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Touches {
    /// Times. Counts stand: round trips, bytes, frames.
    #[default]
    Times,
    /// All, counts included.
    All,
    /// None: something was not measured.
    Missing,
}

impl Touches {
    // By reference, as serde asks.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_times(&self) -> bool {
        *self == Self::Times
    }
}

impl Warning {
    /// A warning about times.
    #[must_use]
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into(), touches: Touches::Times }
    }

    /// The same about other figures.
    #[must_use]
    pub fn touching(self, touches: Touches) -> Self {
        Self { touches, ..self }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.remedy)
    }
}

/// More of a file under /proc or /sys is not read; /proc/cpuinfo of a large machine is cut, its
/// first processor stands in front.
const MAX_READ: u64 = 64 * 1024;

impl Environment {
    /// Reads /proc, /sys and /etc/os-release. The host's name is read only when `with_host`, for a
    /// result that is passed on tells it to everyone.
    #[must_use]
    pub fn read(with_host: bool) -> Self {
        Self::read_from(Path::new("/"), with_host)
    }

    /// As [`Environment::read`], below another root.
    #[must_use]
    pub fn read_from(root: &Path, with_host: bool) -> Self {
        let text = |path: &str| read(&root.join(path));
        let line = |path: &str| text(path).map(|text| text.trim().to_owned());
        let cpuinfo = text("proc/cpuinfo").unwrap_or_default();
        let cpu_field = |name: &str| field(&cpuinfo, name, ':');
        let virtual_machine = cpu_field("flags")
            .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
        let os_release = text("etc/os-release").or_else(|| text("usr/lib/os-release"));
        Self {
            kernel: line("proc/sys/kernel/osrelease"),
            os: os_release
                .and_then(|text| field(&text, "PRETTY_NAME", '='))
                .map(|name| name.trim_matches(['"', '\'']).to_owned()),
            architecture: std::env::consts::ARCH.to_owned(),
            cpu_model: cpu_field("model name").or_else(|| cpu_field("CPU implementer")),
            cpus_online: line("sys/devices/system/cpu/online"),
            cpus: std::thread::available_parallelism()
                .ok()
                .and_then(|cpus| u32::try_from(cpus.get()).ok()),
            memory_bytes: text("proc/meminfo")
                .and_then(|text| field(&text, "MemTotal", ':'))
                .and_then(|kib| kib.strip_suffix("kB")?.trim().parse::<u64>().ok())
                .and_then(|kib| kib.checked_mul(1024)),
            governor: line("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            hypervisor: virtual_machine.then(|| {
                line("sys/class/dmi/id/product_name")
                    .or_else(|| line("sys/hypervisor/type"))
                    .filter(|name| !name.is_empty())
                    .unwrap_or_else(|| "unknown".to_owned())
            }),
            load_1min: text("proc/loadavg")
                .and_then(|text| text.split_whitespace().next()?.parse().ok())
                .filter(|load: &f64| load.is_finite()),
            host: if with_host { line("proc/sys/kernel/hostname") } else { None },
        }
    }

    /// What in this machine's state makes times worse than they could be.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if let Some(governor) = self.governor.as_deref().filter(|name| *name != "performance") {
            warnings.push(Warning::new(
                format!("the CPU frequency is scaled (governor {governor})"),
                "CPU times vary with it; `cpupower frequency-set -g performance` holds it",
            ));
        }
        if let (Some(load), Some(cpus)) = (self.load_1min, self.cpus) {
            // Half the processors busy with something else leaves none to spare for two nodes
            // and the link on a small machine.
            if load > 0.5 * f64::from(cpus) {
                warnings.push(Warning::new(
                    format!("the load average was {load:.2} on {cpus} processors"),
                    "something else was running; stop it and measure again",
                ));
            }
        }
        if self.cpus.is_some_and(|cpus| cpus < 2) {
            warnings.push(Warning::new(
                "there is one processor",
                "client, server and link take turns on it; two or more give truer times",
            ));
        }
        if let Some(hypervisor) = &self.hypervisor {
            warnings.push(Warning::new(
                format!("this is a virtual machine ({hypervisor})"),
                "neighbours take time from it unseen; judge by medians, and repeat on real hardware",
            ));
        }
        warnings
    }
}

/// The text of a small file, fit for a terminal.
fn read(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_READ).read_to_end(&mut bytes).ok()?;
    Some(fault::plain(&String::from_utf8_lossy(&bytes)).into_owned())
}

/// The first value of `name` in lines such as `name : value`.
fn field(text: &str, name: &str, separator: char) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> (tempfile::TempDir, Environment) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/sys/kernel/osrelease", "6.12.9-amd64\n"),
            ("proc/sys/kernel/hostname", "secret\n"),
            ("etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian 13\"\n"),
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: CPU \x1b[31m X\nflags\t\t: fpu hypervisor\n",
            ),
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("proc/meminfo", "MemTotal:       1024 kB\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("proc/loadavg", "999.50 0.1 0.1 1/100 1\n"),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let environment = Environment::read_from(root.path(), false);
        (root, environment)
    }

    #[test]
    fn facts_are_read_and_made_harmless() {
        let (root, facts) = machine();
        assert_eq!(facts.kernel.as_deref(), Some("6.12.9-amd64"));
        assert_eq!(facts.os.as_deref(), Some("Debian 13"));
        assert_eq!(facts.cpu_model.as_deref(), Some("CPU \u{FFFD}[31m X"));
        assert_eq!(facts.cpus_online.as_deref(), Some("0-3"));
        assert_eq!(facts.memory_bytes, Some(1 << 20));
        assert_eq!(facts.hypervisor.as_deref(), Some("unknown"));
        assert_eq!((facts.load_1min, &facts.host), (Some(999.5), &None));
        assert_eq!(Environment::read_from(root.path(), true).host.as_deref(), Some("secret"));
    }

    #[test]
    fn every_warning_has_a_remedy() {
        let (_root, facts) = machine();
        let warnings = facts.warnings();
        for word in ["governor powersave", "load average was 999.50", "virtual machine"] {
            assert!(warnings.iter().any(|w| w.what.contains(word)), "{word}: {warnings:?}");
        }
        assert!(warnings.iter().all(|w| !w.remedy.is_empty()));
        let quiet = Environment { cpus: Some(4), ..Environment::default() };
        assert!(quiet.warnings().is_empty());
    }

    #[test]
    fn an_empty_root_has_no_facts_and_this_machine_some() {
        let root = tempfile::tempdir().unwrap();
        let none = Environment::read_from(root.path(), true);
        assert_eq!((none.kernel, none.memory_bytes, none.host), (None, None, None));
        assert!(Environment::read(false).kernel.is_some());
    }
}
