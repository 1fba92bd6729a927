//! Names of network settings.

use std::path::PathBuf;

use crate::Error;

/// The file of a setting such as `net.ipv4.tcp_fastopen`. Nothing outside `/proc/sys/net` can be
/// named.
pub(crate) fn path(key: &str) -> Result<PathBuf, Error> {
    let wrong = || Error::SettingName { key: key.to_owned() };
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut path = PathBuf::from("/proc/sys");
    let mut parts = key.split('.').peekable();
    if parts.peek() != Some(&"net") || key.split('.').count() < 3 {
        return Err(wrong());
    }
    for part in parts {
        if part.is_empty() || !part.chars().all(allowed) {
            return Err(wrong());
        }
        path.push(part);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn names_become_files_below_net_only() {
        let file = path("net.ipv4.tcp_fastopen").unwrap();
        assert_eq!(file, Path::new("/proc/sys/net/ipv4/tcp_fastopen"));
        assert!(path("net.ipv6.conf.link-1.accept_ra").is_ok());
        for wrong in [
            "",
            "net",
            "net.ipv4",
            "kernel.core_pattern",
            "net..ipv4.x",
            "net.ipv4.x/../../../kernel/core_pattern",
            "net.ipv4./x",
            "net.ipv4.x\n",
            "net.ipv4.é",
        ] {
            assert!(matches!(path(wrong), Err(Error::SettingName { .. })), "{wrong}");
        }
    }
}
