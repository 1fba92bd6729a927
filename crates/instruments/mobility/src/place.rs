//! Where a bed stands.

use guest::{Cache, Guest, LINK_MODULES, Part, RADIO_MODULES};

/// Memory of the guest, in MiB: a dozen daemons beside the program.
const MEMORY: u32 = 768;

/// What the bed's nodes run.
const PROGRAMS: [&str; 9] =
    ["ip", "tc", "bridge", "iw", "hostapd", "wpa_supplicant", "dnsmasq", "dhcpcd", "charon"];

/// What hostapd and wpa_supplicant load of OpenSSL before they do any TLS.
const LEGACY: &str = "usr/lib/x86_64-linux-gnu/ossl-modules/legacy.so";

/// A guest with the kernel, the daemons and the memory that a bed needs.
///
/// # Errors
/// Something was not fetched: `wiretax guest fetch --with daemons` does it.
pub fn guest() -> Result<Guest, guest::Error> {
    let cache = Cache::find()?;
    if cache.packages(Part::Daemons).is_none() {
        return Err(guest::Error::NotFetched(Part::Daemons));
    }
    let guest = Guest::of(cache, Part::FullKernel)?.with_programs(&PROGRAMS)?;
    let plugins = daemons::charon::PLUGINS.iter().map(|name| daemons::charon::plugin(name));
    let plugins: Vec<String> = plugins.collect();
    let guest = guest.with_plugins(plugins.iter().map(String::as_str).chain([LEGACY]))?;
    // dhcpcd keeps leases there; its /run is its own.
    let guest = guest.with_link("var/lib/dhcpcd", "/run");
    Ok(guest.with_modules(LINK_MODULES).with_modules(RADIO_MODULES).with_memory(MEMORY))
}
