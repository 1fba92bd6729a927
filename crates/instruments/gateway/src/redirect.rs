//! One TCP port of an address that is the kernel's, given to the gateway.
//!
//! A rule at the interface's ingress hands the packets of that port to a TUN device, before the
//! kernel's own TCP, its connection tracking or its routing see them; they keep their addresses.
//! What the gateway sends comes in by the TUN device from an address that is the machine's own, and
//! the kernel routes it on, which needs two settings of that one device. No other setting is touched.
//!
//! Nothing outlives the process, `kill -9` included: the table has the flag `owner`, so that the
//! kernel removes it with the netlink socket of the `nft` that made it; that `nft` waits for commands
//! and ends when the pipe to it closes; the device goes with its descriptor, and its settings with it.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use child::{Child, Kept};

use crate::Error;

/// The longest that nft may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(20);
/// As much is read of the table, in bytes.
const LISTED: usize = 64 << 10;
/// Before whatever else is at the ingress with the usual priority.
const PRIORITY: i32 = -150;

/// Which packets are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packets {
    /// Those to our listener.
    To(SocketAddrV4),
    /// Those of the server at `from` to ports that we spoke to it from, for this long after we last
    /// did.
    Answers { from: SocketAddrV4, to: Ipv4Addr, remembered: Duration },
}

/// The redirect; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Redirect {
    nft: Child,
    /// nft ends when it is closed.
    commands: Option<ChildStdin>,
}

impl Redirect {
    /// Hands `packets` that come in by `interface` to the TUN device `tun`.
    pub(crate) fn start(interface: &str, tun: &str, packets: Packets) -> Result<Redirect, Error> {
        let rules = rules(&format!("wiretax_{}", std::process::id()), interface, tun, packets)?;
        let mut nft = with_nft(|command| {
            command.arg("-i").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
            // Ctrl-C is for us: the redirect stays while connections drain.
            Child::spawn(command)
        })?;
        let said = Arc::new(Mutex::new(String::new()));
        if let Some(stderr) = nft.stderr() {
            listen_to(stderr, Arc::clone(&said));
        }
        let commands = nft.stdin();
        let mut redirect = Redirect { nft, commands };
        redirect.command(&rules)?;
        redirect.wait_for_table(&format!("wiretax_{}", std::process::id()), &said)?;
        Ok(redirect)
    }

    /// Whether it still stands.
    pub(crate) fn stands(&self) -> bool {
        !self.nft.has_ended()
    }

    fn command(&mut self, rules: &str) -> Result<(), Error> {
        let Some(commands) = &mut self.commands else { return Err(Error::RedirectLost) };
        let written = commands.write_all(rules.as_bytes()).and_then(|()| commands.flush());
        written.map_err(|source| Error::System { doing: "telling nft the rules", source })
    }

    /// Waits until the rule can be seen, or nft says why not.
    fn wait_for_table(&mut self, table: &str, said: &Mutex<String>) -> Result<(), Error> {
        let deadline = Instant::now() + LIMIT;
        loop {
            if rule_is_there(table)? {
                return Ok(());
            }
            let ended = !self.stands();
            let words = said.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let words = first_error(&words);
            if let Some(said) = words {
                return Err(Error::Nft { said });
            }
            if ended || Instant::now() > deadline {
                return Err(Error::Nft { said: "it gave no reason".to_owned() });
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Redirect {
    fn drop(&mut self) {
        drop(self.commands.take());
        // It is killed if it does not end.
        let _ = self.nft.wait(Some(LIMIT), &mut || false);
    }
}

/// Runs nft, which is not in every user's PATH.
fn with_nft<T>(mut run: impl FnMut(&mut Command) -> io::Result<T>) -> Result<T, Error> {
    let ran = run(&mut Command::new("nft")).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => run(&mut Command::new("/usr/sbin/nft")),
        _ => Err(error),
    });
    ran.map_err(|source| Error::NoNft { source })
}

/// One line, since the interactive nft takes a command a line.
fn rules(table: &str, interface: &str, tun: &str, packets: Packets) -> Result<String, Error> {
    for name in [interface, tun] {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-@:".contains(c);
        if name.is_empty() || !name.chars().all(allowed) {
            return Err(Error::options(
                format!("the interface name {name:?} cannot be written in a packet filter rule"),
                "rename it to letters, digits, `.`, `_` and `-`",
            ));
        }
    }
    let chain = |name: &str, device: &str| {
        format!(
            "add chain netdev {table} {name} {{ type filter hook ingress device \"{device}\" \
             priority {PRIORITY}; policy accept; }}; "
        )
    };
    // To which neighbour is all the same on a TUN device, which has none; RFC 7600's dummy address.
    let handed = format!("fwd ip to 192.0.0.8 device \"{tun}\"");
    let mut text = format!("add table netdev {table} {{ flags owner; }}; ");
    text += &chain("ingress", interface);
    let matched = match packets {
        Packets::To(listener) => {
            format!("ip daddr {} tcp dport {}", listener.ip(), listener.port())
        }
        Packets::Answers { from, to, remembered } => {
            let (server, port) = (from.ip(), from.port());
            // The ports are learnt from what comes in by the TUN device: the answers to them are
            // ours, those to any other port the kernel's.
            text += &format!(
                "add set netdev {table} ports {{ type inet_service; flags dynamic,timeout; timeout \
                 {}s; size 65535; }}; ",
                remembered.as_secs()
            );
            text += &chain("egress", tun);
            text += &format!(
                "add rule netdev {table} egress ip daddr {server} tcp dport {port} \
                 update @ports {{ tcp sport }}; "
            );
            format!("ip saddr {server} tcp sport {port} ip daddr {to} tcp dport @ports")
        }
    };
    Ok(text + &format!("add rule netdev {table} ingress {matched} {handed}\n"))
}

/// Asks another nft, for the one that made it buffers what it prints.
fn rule_is_there(table: &str) -> Result<bool, Error> {
    let list = ["list", "table", "netdev", table];
    let kept = [Kept::First(LISTED); 2];
    let output = with_nft(|command| child::run(command.args(list), Vec::new(), LIMIT, kept))?;
    Ok(output.succeeded() && String::from_utf8_lossy(&output.stdout).contains("fwd ip to"))
}

/// Reads all that nft says, a bounded part of it kept.
fn listen_to(mut stderr: impl Read + Send + 'static, said: Arc<Mutex<String>>) {
    const KEPT: usize = 4 << 10;
    std::thread::spawn(move || {
        let mut chunk = [0; 512];
        while let Ok(len @ 1..) = stderr.read(&mut chunk) {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            if said.len() < KEPT {
                said.push_str(&String::from_utf8_lossy(chunk.get(..len).unwrap_or_default()));
            }
        }
    });
}

/// The first complaint in what nft printed, without its place in our one line.
fn first_error(said: &str) -> Option<String> {
    let line = said.lines().find(|line| line.contains("Error"))?;
    let (_, problem) = line.split_once("Error: ").unwrap_or(("", line));
    Some(problem.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_one_port_and_nothing_else() {
        let to = Packets::To("192.0.2.10:443".parse().unwrap());
        let text = rules("wiretax_7", "eth0", "wiretax0", to).unwrap();
        assert_eq!(
            text,
            "add table netdev wiretax_7 { flags owner; }; add chain netdev wiretax_7 ingress { type \
             filter hook ingress device \"eth0\" priority -150; policy accept; }; add rule netdev \
             wiretax_7 ingress ip daddr 192.0.2.10 tcp dport 443 fwd ip to 192.0.0.8 device \
             \"wiretax0\"\n"
        );
        let answers = Packets::Answers {
            from: "198.51.100.1:443".parse().unwrap(),
            to: "192.0.2.10".parse().unwrap(),
            remembered: Duration::from_secs(60),
        };
        let text = rules("t", "eth0", "wiretax0", answers).unwrap();
        for part in [
            "ip saddr 198.51.100.1 tcp sport 443 ip daddr 192.0.2.10 tcp dport @ports fwd",
            "add rule netdev t egress ip daddr 198.51.100.1 tcp dport 443 update @ports { tcp sport };",
            "timeout 60s;",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.matches('\n').count(), 1);
    }

    #[test]
    fn a_name_cannot_add_a_rule() {
        for name in ["", "eth0\"; flush ruleset; \"", "a b", "x\ny"] {
            let to = Packets::To("192.0.2.10:443".parse().unwrap());
            assert!(rules("t", name, "wiretax0", to).is_err(), "{name:?}");
        }
    }

    #[test]
    fn what_nft_says_becomes_one_line() {
        let said = "/dev/stdin:1:1-20: Error: Could not process rule: Operation not permitted\nadd";
        let words = "Could not process rule: Operation not permitted";
        assert_eq!(first_error(said).as_deref(), Some(words));
        assert_eq!(
            first_error("netlink: Error: cache initialization failed: Operation not permitted"),
            Some("cache initialization failed: Operation not permitted".to_owned())
        );
        assert_eq!(first_error(""), None);
    }
}
