use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
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
    use std::os::fd::AsRawFd;
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
