use std::fs;
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, chown, lchown, symlink};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn a_file_is_replaced_whole_and_keeps_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let mut file = OutFile::create(&path).unwrap();
    assert!(!file.is_in_place());
    file.write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    let flags = rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR;
    if rustix::fs::open(folder.path(), flags, Mode::from(0o600)).is_ok() {
        assert_eq!(names(folder.path()), ["out"], "a kill leaves nothing");
    }
    file.finish().unwrap();
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"new".to_vec(), 0o640));
    drop(OutFile::create(&path).unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["out"]);
}

/// As where the file system has no files without names, or a link is forbidden.
#[test]
fn a_file_with_a_name_of_its_own_is_as_good() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    for text in ["new", "newer"] {
        let named = tempfile::Builder::new().prefix("out.").tempfile_in(&folder).unwrap();
        let file = Kind::Beside { new: New::Named(named), target: path.clone() };
        let mut file = OutFile(file);
        file.write_all(text.as_bytes()).unwrap();
        file.finish_synced().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(names(folder.path()), ["out"]);
    }
    // A file that cannot be linked is copied.
    let elsewhere = tempfile::tempfile().unwrap();
    (&elsewhere).write_all(b"copied").unwrap();
    elsewhere.set_permissions(Permissions::from_mode(0o604)).unwrap();
    fs::remove_file(&path).unwrap();
    new::copy(elsewhere, &path).unwrap();
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"copied".to_vec(), 0o604));
    assert_eq!(names(folder.path()), ["out"]);
}

#[test]
fn a_new_file_has_the_mode_that_the_umask_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("plain"), "").unwrap();
    write(&at("out"), b"new").unwrap();
    assert_eq!(mode(&at("out")), mode(&at("plain")));
    let long = "x".repeat(255);
    write(&at(&long), b"new").unwrap();
    assert_eq!(fs::read(at(&long)).unwrap(), b"new");
}

#[test]
fn a_fifo_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::from(0o600), 0).unwrap();
    symlink("fifo", folder.path().join("link")).unwrap();
    for name in ["fifo", "link"] {
        let (from, name) = (path.clone(), folder.path().join(name));
        let reader = thread::spawn(move || {
            let mut text = String::new();
            File::open(from).and_then(|mut file| file.read_to_string(&mut text)).map(|_| text)
        });
        let mut file = OutFile::create(&name).unwrap();
        assert!(file.is_in_place());
        file.write_all(b"what is read").unwrap();
        file.finish().unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), "what is read");
    }
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    assert_eq!(names(folder.path()), ["fifo", "link"]);
}

/// Needs root, and a file system that lets devices be opened.
#[test]
fn a_device_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("null");
    // Of its own: the machine's is left alone.
    let device = rustix::fs::makedev(1, 3);
    if mknodat(CWD, &path, FileType::CharacterDevice, Mode::from(0o600), device).is_err() {
        return;
    }
    match write(&path, b"nothing") {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
        written => written.unwrap(),
    }
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_char_device());
    assert_eq!(names(folder.path()), ["null"]);
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("deep")).unwrap();
    fs::write(at("deep/old"), "old").unwrap();
    symlink("deep/../deep/old", at("to-old")).unwrap();
    symlink("to-old", at("twice")).unwrap();
    symlink(at("deep/new"), at("to-nothing")).unwrap();
    write(&at("twice"), b"first").unwrap();
    write(&at("to-nothing"), b"second").unwrap();
    assert_eq!(fs::read(at("deep/old")).unwrap(), b"first");
    assert_eq!(fs::read(at("deep/new")).unwrap(), b"second");
    for link in ["to-old", "twice", "to-nothing"] {
        assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink(), "{link}");
    }
    symlink("round", at("round")).unwrap();
    assert!(write(&at("round"), b"").is_err());
    assert_eq!(names(&at("deep")), ["new", "old"]);
}

#[test]
fn a_link_of_proc_is_written_where_it_leads() {
    let folder = tempfile::tempdir().unwrap();
    let (mut reader, writer) = io::pipe().unwrap();
    let link = folder.path().join("stdout");
    symlink(format!("/proc/self/fd/{}", writer.as_raw_fd()), &link).unwrap();
    write(&link, b"through a pipe").unwrap();
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "through a pipe");
}

/// As `9>>log` and `9>log` of a shell, with lines of others before and behind.
#[test]
fn an_open_regular_file_is_written_at_the_end_behind_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    for is_appended in [true, false] {
        fs::write(&path, "").unwrap();
        let mut opened = File::options().append(is_appended).write(true).open(&path).unwrap();
        opened.write_all(b"kept\n").unwrap();
        for folder in ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"] {
            let name = Path::new(folder).join(opened.as_raw_fd().to_string());
            let mut dropped = OutFile::create(&name).unwrap();
            dropped.write_all(b"never finished").unwrap();
            dropped.flush().unwrap();
            drop(dropped);
            assert_eq!(fs::read_to_string(&path).unwrap(), "kept\n");
            write(&name, b"new\n").unwrap();
            opened.write_all(b"more\n").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "kept\nnew\nmore\n");
            let at = if is_appended { 0 } else { 5 };
            opened.set_len(5).unwrap();
            opened.seek(io::SeekFrom::Start(at)).unwrap();
        }
        let read = File::open(&path).unwrap();
        let name = format!("/proc/self/fd/{}", read.as_raw_fd());
        let refused = write(Path::new(&name), b"new").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept\n");
    }
    assert_eq!(names(folder.path()), ["log"]);
}

/// Holds for any `fs.protected_symlinks`. Needs root, to own files as another user.
#[test]
fn links_and_fifos_of_others_are_refused_where_all_may_write() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join("open").join(name);
    fs::create_dir(folder.path().join("open")).unwrap();
    fs::write(folder.path().join("victim"), "kept").unwrap();
    symlink("../victim", at("link")).unwrap();
    symlink("link", at("twice")).unwrap();
    symlink("../new", at("dangling")).unwrap();
    mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from(0o666), 0).unwrap();
    let other = Some(65534);
    for name in ["link", "dangling", "fifo"] {
        if lchown(at(name), other, other).is_err() {
            return;
        }
    }
    let set = |mode: u32| fs::set_permissions(at(""), Permissions::from_mode(mode)).unwrap();
    set(0o1777);
    for name in ["link", "twice", "dangling", "fifo"] {
        let refused = write(&at(name), b"new").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{name}");
    }
    assert_eq!(names(folder.path()), ["open", "victim"]);
    assert_eq!(fs::read_to_string(folder.path().join("victim")).unwrap(), "kept");
    // A folder's owner may lead on all who write to it, and other folders trust all who may write.
    for (mode, owner) in [(0o1777, other), (0o777, Some(0)), (0o1755, Some(0))] {
        set(mode);
        chown(at(""), owner, owner).unwrap();
        write(&at("twice"), b"new").unwrap();
        write(&at("dangling"), b"new").unwrap();
    }
    assert_eq!(names(folder.path()), ["new", "open", "victim"]);
}

/// It could be found only when the output gets its name.
#[test]
fn a_file_of_another_user_in_a_sticky_folder_is_not_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "").unwrap();
    let found = fs::metadata(&path).unwrap();
    let (owner, mut kept) = (found.uid(), Vec::new());
    for mode in [0o777, 0o1777] {
        fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        let folder = fs::metadata(folder.path()).unwrap();
        kept.push([0, owner, owner + 1].map(|user| place::is_kept(&found, &folder, user)));
    }
    assert_eq!(kept, [[false, false, false], [false, false, true]]);
}

#[test]
fn a_folder_is_no_name_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    symlink("new/", at("link")).unwrap();
    for name in ["new/", "new/.", "new/..", ".", "..", "", "link"] {
        let refused = OutFile::create(&at(name)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::IsADirectory, "{name}");
    }
    assert!(Held::create(&at("new/"), (0, 0)).is_err());
    assert_eq!(names(folder.path()), ["link"]);
}

#[test]
fn a_file_is_the_same_by_all_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("x")).unwrap();
    fs::write(at("old"), "").unwrap();
    fs::hard_link(at("old"), at("second")).unwrap();
    symlink("x", at("y")).unwrap();
    symlink("x/new", at("dangling")).unwrap();
    symlink("dangling", at("twice")).unwrap();
    let is_same = |one: &str, other: &str| is_same_file(&at(one), &at(other));
    for (one, other) in [
        ("old", "second"),
        ("new", "./new"),
        ("x/new", "y/new"),
        ("x/../new", "new"),
        ("twice", "y/new"),
        ("dangling", "twice"),
    ] {
        assert!(is_same(one, other) && is_same(other, one), "{one} {other}");
    }
    for (one, other) in [("new", "x/new"), ("old", "new"), ("x", "y"), ("nowhere/a", "new")] {
        assert!(!is_same(one, other), "{one} {other}");
    }
    assert!(!is_same("/dev/null", "/dev/null"));
}

#[test]
fn a_folder_replaces_planted_links_and_fifos_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("victim"), "kept").unwrap();
    symlink("victim", at("link")).unwrap();
    mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from(0o600), 0).unwrap();
    fs::create_dir(at("folder")).unwrap();
    let opened = Folder::open(folder.path()).unwrap();
    for name in ["link", "fifo", "new"] {
        opened.replace(name, b"new", 0o666).unwrap();
        assert!(fs::symlink_metadata(at(name)).unwrap().is_file(), "{name}");
        assert_eq!(fs::read_to_string(at(name)).unwrap(), "new");
    }
    assert!(opened.replace("folder", b"new", 0o666).is_err());
    assert_eq!(fs::read_to_string(at("victim")).unwrap(), "kept");
    assert_eq!(names(folder.path()), ["fifo", "folder", "link", "new", "victim"]);
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "").unwrap();
    let kind = |path: &Path| write(path, b"").unwrap_err().kind();
    assert_eq!(kind(folder.path()), ErrorKind::IsADirectory);
    assert_eq!(kind(&at("nowhere/out")), ErrorKind::NotFound);
    assert_eq!(kind(&at("file/out")), ErrorKind::NotADirectory);
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn a_held_output_follows_no_link_and_stays_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let own = fs::metadata(folder.path()).unwrap();
    // Giving a file to oneself needs no right.
    let hold = |name: &str| Held::create(&at(name), (own.uid(), own.gid()));
    fs::create_dir(at("deep")).unwrap();
    fs::write(at("deep/old"), "old").unwrap();
    fs::set_permissions(at("deep/old"), Permissions::from_mode(0o640)).unwrap();
    symlink("deep/old", at("link")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    for name in ["link", "dangling", "deep", "nowhere/new"] {
        assert!(hold(name).is_err(), "{name}");
    }
    for name in ["deep/old", "deep/new"] {
        let held = hold(name).unwrap();
        held.file().unwrap().write_all(b"new").unwrap();
        assert!(fs::read_to_string(at(name)).is_ok_and(|text| text == "old") || name == "deep/new");
        // The folder moves away, and another takes its name.
        fs::rename(at("deep"), at("moved")).unwrap();
        fs::create_dir(at("deep")).unwrap();
        held.publish().unwrap();
        assert_eq!(names(&at("deep")), [""; 0]);
        fs::remove_dir(at("deep")).unwrap();
        fs::rename(at("moved"), at("deep")).unwrap();
        assert_eq!(fs::read_to_string(at(name)).unwrap(), "new");
    }
    assert_eq!(mode(&at("deep/old")), 0o640);
    drop(hold("deep/old").unwrap());
    assert_eq!(
        (names(&at("deep")), names(folder.path()).len()),
        (vec!["new".into(), "old".into()], 3)
    );
}

#[test]
fn a_link_that_nobody_typed_is_replaced_itself() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("victim"), "kept").unwrap();
    for target in ["victim", "nowhere", "/dev/null"] {
        let _ = fs::remove_file(at("planted"));
        symlink(target, at("planted")).unwrap();
        let mut file = OutFile::create_in_place_of(&at("planted")).unwrap();
        file.write_all(b"new").unwrap();
        file.finish().unwrap();
        assert!(fs::symlink_metadata(at("planted")).unwrap().is_file(), "{target}");
    }
    assert_eq!(fs::read(at("victim")).unwrap(), b"kept");
    assert_eq!(names(folder.path()), ["planted", "victim"]);
}

#[test]
fn root_keeps_the_owner_of_a_file_that_it_replaces() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    // Others than root can give no file away.
    let owner = match std::os::unix::fs::chown(&path, Some(1234), Some(4321)) {
        Ok(()) => (1234, 4321),
        Err(_) => fs::metadata(&path).map(|own| (own.uid(), own.gid())).unwrap(),
    };
    write(&path, b"new").unwrap();
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.uid(), found.gid()), owner);
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"new".to_vec(), 0o600));
}

#[test]
fn a_folder_is_made_once_and_never_through_a_link() {
    let parent = tempfile::tempdir().unwrap();
    let at = |name: &str| parent.path().join(name);
    let (made, is_new) = Folder::make(at("a/b")).unwrap();
    assert!(is_new && made.path() == at("a/b"));
    assert_eq!(made.owner().unwrap(), fs::metadata(at("a")).unwrap().uid());
    assert!(!Folder::make(at("a/b")).unwrap().1);
    symlink("a", at("link")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    for name in ["link", "dangling"] {
        assert!(matches!(Folder::make(at(name)), Err(Refused::Irregular(_) | Refused::Io(_))));
    }
    assert_eq!(names(parent.path()), ["a", "dangling", "link"]);
}

#[test]
fn a_new_name_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let open = crate::Folder::open(folder.path()).unwrap();
    fs::write(at("from"), "new").unwrap();
    fs::write(at("taken"), "old").unwrap();
    std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
    for taken in ["taken", "link"] {
        let error = std::io::Error::from(open.rename_new("from", taken).unwrap_err());
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists, "{taken}");
    }
    assert_eq!(fs::read(at("taken")).unwrap(), b"old");
    assert!(at("link").is_symlink());
    open.rename_new("from", "free").unwrap();
    assert_eq!(fs::read(at("free")).unwrap(), b"new");
    assert!(!at("from").exists());
}
