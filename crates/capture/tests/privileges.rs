//! Rights are given up for good, in a process of its own.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use capture::{Error, Keeper, Live, LiveOptions, drop_privileges, heir};
use lab_test::{Need, Scenario, Test, TestResult, judge, skip};
use rustix::io::Errno;

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("rights_are_given_up", given_up),
        Test::helper("give_up", give_up),
        Test::new("rights_are_kept_for_one_piece_of_work", kept),
        Test::helper("keep", keep),
    ]
}

fn given_up() -> TestResult {
    for sudo in [None, Some(("1234", "4321"))] {
        let mut scenario = Scenario::new("give_up");
        scenario.command.env_remove("SUDO_UID").env_remove("SUDO_GID");
        if let Some((user, group)) = sudo {
            scenario.command.env("SUDO_UID", user).env("SUDO_GID", group);
        }
        judge(scenario.run()?)?;
    }
    Ok(())
}

fn kept() -> TestResult {
    judge(Scenario::new("keep").run()?)?;
    Ok(())
}

/// Two keepers at once: the work of one is done with rights that are gone here, that of the other is dropped.
fn keep() -> TestResult {
    struct Says(io::PipeWriter);
    impl Drop for Says {
        fn drop(&mut self) {
            let _ = self.0.write_all(b"dropped");
        }
    }
    let (mut said, says) = io::pipe()?;
    let (mut user, tells) = io::pipe()?;
    let says = Says(says);
    let idle = Keeper::begin(move || {
        let _says = &says;
        Ok(())
    })?;
    let working = Keeper::begin(move || {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let uids = status.lines().find(|line| line.starts_with("Uid:")).unwrap_or_default();
        (&tells).write_all(uids.as_bytes())?;
        Err(Errno::XDEV.into())
    })?;
    let before = std::fs::read_to_string("/proc/self/status")?;
    if let Err(error) = drop_privileges() {
        return skip(Need::Host, error.to_string());
    }
    let error = working.finish().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::XDEV.raw_os_error()));
    drop(idle);
    let (mut uids, mut text) = ([0; 64], [0; 7]);
    let length = user.read(&mut uids)?;
    let uids = String::from_utf8_lossy(&uids[..length]).into_owned();
    assert!(before.contains(&uids) && uids.starts_with("Uid:"), "{uids}");
    said.read_exact(&mut text)?;
    assert_eq!(&text, b"dropped");
    Ok(())
}

fn give_up() -> TestResult {
    let root = std::fs::metadata("/proc/self")
        .is_ok_and(|data| std::os::unix::fs::MetadataExt::uid(&data) == 0);
    let mut live = match Live::open(&["lo"], &LiveOptions::default()) {
        Ok(live) => Some(live),
        Err(Error::NotPermitted { .. }) => None,
        Err(error) => panic!("{error}"),
    };
    let heir = heir();
    let dropped = match drop_privileges() {
        Ok(dropped) => dropped,
        // A root that may not become another, as in a container with one user.
        Err(packet::Error::System { source, .. })
            if matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) =>
        {
            return skip(Need::Host, source.to_string());
        }
        Err(error) => panic!("{error}"),
    };
    // Root stays where there is no other user.
    let users = std::fs::read_to_string("/proc/self/uid_map").unwrap();
    let one = users.split_whitespace().last() == Some("1");
    assert_eq!(dropped.identity.is_some(), root && !one);
    // Nobody inherits from a root that was called.
    let is_called = std::env::var_os("SUDO_UID").is_some();
    assert_eq!(heir, dropped.identity.filter(|_| !is_called));
    if let (Ok(user), Some(identity)) = (std::env::var("SUDO_UID"), dropped.identity) {
        assert_eq!((identity.user.to_string(), identity.group), (user, 4321));
    }
    // No second socket can be had, not even by a program started for it.
    let error = Live::open(&["lo"], &LiveOptions::default()).unwrap_err();
    assert!(matches!(error, Error::NotPermitted { .. }), "{error}");
    assert!(fault::Explain::in_one_text(&error).contains("setcap"), "{error}");
    // Again is no error.
    assert_eq!(drop_privileges().unwrap().identity, None);
    // What was opened before goes on.
    if let Some(live) = &mut live {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let seen = (0..100).any(|_| {
            live.wait(Duration::from_millis(100)).unwrap();
            live.next().is_some()
        });
        assert!(seen, "no frame after rights were given up");
    }
    Ok(())
}
