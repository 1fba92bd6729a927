//! Facts that are read from the running system.

use std::fs;
use std::path::Path;

use super::Fact;

/// Clock sources that a program reads without a system call.
const FAST_CLOCKS: [&str; 4] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

/// Memory below which rings, samples and libraries may not fit, in KiB.
const ENOUGH_MEMORY: u64 = 1024 * 1024;

pub(super) fn facts(as_user: bool) -> Vec<Fact> {
    let mut facts = vec![kernel(), processors(), memory(), clock_source(), timers(), ipv6()];
    facts.push(temporary_folder(&std::env::temp_dir()));
    let app_armor = app_armor().filter(|_| as_user);
    facts.extend([frequency(), container(), app_armor].into_iter().flatten());
    facts
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn kernel() -> Fact {
    const NAME: &str = "kernel";
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    // PACKET_IGNORE_OUTGOING, which the link pump uses, came with 4.20.
    if version >= (4, 20) {
        Fact::good(NAME, format!("Linux {release}"))
    } else {
        Fact::bad(NAME, format!("Linux {release}"), "use Linux 4.20 or newer")
    }
}

fn processors() -> Fact {
    const NAME: &str = "processors";
    match packet::thread::allowed_cpus().len() {
        1 => Fact::bad(
            NAME,
            "1 may be used: nodes and links take turns on it",
            "give the machine or container two, or trust delays to some tens of microseconds only",
        ),
        count => Fact::good(NAME, format!("{count} may be used")),
    }
}

fn memory() -> Fact {
    const NAME: &str = "memory";
    let text = read("/proc/meminfo").unwrap_or_default();
    let available = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or(0);
    let detail = format!("{} MiB available", available / 1024);
    if available >= ENOUGH_MEMORY {
        Fact::good(NAME, detail)
    } else {
        Fact::bad(NAME, detail, "end other programs, or add memory: 1 GiB should be available")
    }
}

fn clock_source() -> Fact {
    const NAME: &str = "clock source";
    match read("/sys/devices/system/clocksource/clocksource0/current_clocksource") {
        Some(name) if FAST_CLOCKS.contains(&name.as_str()) => Fact::good(NAME, name),
        Some(name) => Fact::bad(
            NAME,
            format!("{name}: reading the time takes a system call"),
            "boot with `clocksource=tsc tsc=reliable` if the processor's counter is stable",
        ),
        None => Fact::good(NAME, "the kernel does not say"),
    }
}

fn timers() -> Fact {
    const NAME: &str = "timers";
    let resolution = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
    if resolution.tv_sec == 0 && resolution.tv_nsec <= 1_000 {
        Fact::good(NAME, format!("resolution {} ns", resolution.tv_nsec))
    } else {
        Fact::bad(
            NAME,
            format!("resolution {} ns", resolution.tv_nsec),
            "use a kernel with CONFIG_HIGH_RES_TIMERS, and boot without `highres=off`",
        )
    }
}

fn ipv6() -> Fact {
    const NAME: &str = "IPv6";
    if Path::new("/proc/sys/net/ipv6").exists() {
        Fact::good(NAME, "on")
    } else {
        Fact::bad(NAME, "off: links have IPv4 only", "boot without `ipv6.disable=1`")
    }
}

fn temporary_folder(folder: &Path) -> Fact {
    const NAME: &str = "temporary folder";
    let shown = folder.display();
    let remedy = "set TMPDIR to a folder that you may write to";
    let may = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    match rustix::fs::access(folder, may) {
        Ok(()) if folder.is_dir() => Fact::good(NAME, shown.to_string()),
        Ok(()) => Fact::bad(NAME, format!("{shown} is not a folder"), remedy),
        Err(errno) => Fact::bad(NAME, format!("{shown}: {}", std::io::Error::from(errno)), remedy),
    }
}

fn frequency() -> Option<Fact> {
    const NAME: &str = "processor frequency";
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")?;
    Some(if governor == "performance" {
        Fact::good(NAME, "fixed by the governor `performance`")
    } else {
        Fact::bad(
            NAME,
            format!("scaled by the governor `{governor}`: CPU times vary with it"),
            "`sudo cpupower frequency-set -g performance` for the time of the measurement",
        )
    })
}

fn container() -> Option<Fact> {
    let inside = Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists();
    inside.then(|| {
        Fact::good("container", "this is one; if namespaces are refused, see their remedy")
    })
}

fn app_armor() -> Option<Fact> {
    const NAME: &str = "AppArmor";
    let restricted = read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")?;
    Some(match restricted.as_str() {
        "0" => Fact::good(NAME, "lets ordinary users make user namespaces"),
        _ => Fact::bad(
            NAME,
            "keeps ordinary users from user namespaces",
            "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, a profile for this \
             program with the rule `userns,`, or run with sudo",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_that_cannot_be_used_is_said_with_the_variable() {
        let folder = tempfile::tempdir().unwrap();
        assert!(temporary_folder(folder.path()).ok);
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for unusable in [folder.path().join("missing"), file] {
            let fact = temporary_folder(&unusable);
            assert!(!fact.ok && fact.remedy.is_some_and(|text| text.contains("TMPDIR")));
        }
    }
}
