//! What always holds of sessions in a folder, whoever writes there.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use stdio::{Emit, Filter};
use testkit::Scratch;
use toolpipe_store::{Change, FolderStore, SessionId, SessionScan, Store, StoreError};

const ID: &str = "3fa90000000000000000000000000001";
const FIRST: &[u8] = b"{\"type\":\"session\",\"v\":1}\n";

fn try_open(scratch: &Scratch) -> anyhow::Result<FolderStore> {
    let options = Filter {
        command: "test",
        files: vec![],
        no_time: true,
        strict: false,
        max_line: 1 << 20,
        emit: Emit::default(),
        stop_when_settled: false,
        ignore_interrupts: false,
    };
    FolderStore::open(&scratch.path("sessions"), options)
}

fn open(scratch: &Scratch) -> FolderStore {
    try_open(scratch).unwrap()
}

fn id() -> SessionId {
    SessionId::of(ID).unwrap()
}

fn path(scratch: &Scratch) -> PathBuf {
    scratch
        .path("sessions")
        .join("3f")
        .join(format!("{ID}.ndjson"))
}

#[test]
fn an_id_is_32_hexadecimal_digits_and_nothing_else() {
    assert_eq!(id().to_string(), ID);
    for wrong in [
        "",
        "3f",
        "3FA90000000000000000000000000001",
        "+fa90000000000000000000000000001",
        "../../../../../../../etc/passwd0",
        "3fa9000000000000000000000000000\0",
        "3fa900000000000000000000000000011",
        "3fa9%2f%2e%2e%2f0000000000000000",
    ] {
        assert_eq!(SessionId::of(wrong), None, "{wrong:?}");
    }
}

#[test]
fn asking_whether_a_session_is_leased_changes_nothing_in_its_file() {
    let scratch = Scratch::new();
    let (store, other) = (open(&scratch), open(&scratch));
    assert!(!store.is_leased(id()), "there is no such session");
    let lease = store.create(id(), FIRST).unwrap();
    assert!(store.is_leased(id()) && other.is_leased(id()));
    drop(lease);
    // A line that was cut stays as it is until somebody writes.
    let torn = [FIRST, b"{\"type\":\"a"].concat();
    std::fs::write(path(&scratch), &torn).unwrap();
    assert!(!other.is_leased(id()));
    assert_eq!(std::fs::read(path(&scratch)).unwrap(), torn);
}

#[test]
fn a_session_whose_folder_cannot_be_used_is_not_taken_for_a_missing_one() {
    let scratch = Scratch::new();
    drop(open(&scratch).create(id(), FIRST).unwrap());
    // The folder was changed after the store was opened, which refuses such a folder.
    fs::remove_dir_all(scratch.path("sessions/3f")).unwrap();
    let store = open(&scratch);
    let scan = SessionScan::open(&scratch.path("sessions")).unwrap();
    let unknown = |result| matches!(result, Err(StoreError::Unknown));
    assert!(unknown(store.end(id())) && !store.is_leased(id()));
    assert!(unknown(scan.remove(id()).map(|()| 0)) && !scan.is_leased(id()));
    fs::create_dir(scratch.path("sessions/3f")).unwrap();
    let writable = fs::Permissions::from_mode(0o777);
    fs::set_permissions(scratch.path("sessions/3f"), writable).unwrap();
    fs::write(path(&scratch), FIRST).unwrap();
    let failed = |result| matches!(result, Err(StoreError::Io(_)));
    assert!(failed(store.end(id())) && failed(scan.remove(id()).map(|()| 0)));
    assert!(store.is_leased(id()) && scan.is_leased(id()));
}

#[test]
fn a_session_is_a_private_file_that_is_read_as_it_was_written() {
    let scratch = Scratch::new();
    let store = open(&scratch);
    assert!(matches!(store.end(id()), Err(StoreError::Unknown)));
    let mut lease = store.create(id(), FIRST).unwrap();
    assert!(matches!(store.create(id(), FIRST), Err(StoreError::Exists)));
    let end = store
        .append(&mut lease, 25, b"{\"type\":\"a\"}\n{\"type\":\"b\"}\n")
        .unwrap();
    assert_eq!(end, 51);
    assert_eq!(store.end(id()).unwrap(), 51);
    assert_eq!(store.read(id(), 0, 4).unwrap(), FIRST, "at least a line");
    assert_eq!(
        store.read(id(), 25, 100).unwrap(),
        b"{\"type\":\"a\"}\n{\"type\":\"b\"}\n"
    );
    assert_eq!(
        store.read(id(), 25, 20).unwrap(),
        b"{\"type\":\"a\"}\n",
        "whole lines"
    );
    assert_eq!(
        store.read(id(), 30, 8).unwrap(),
        b"e\":\"a\"}\n",
        "from within a line"
    );
    assert_eq!(store.read(id(), 51, 8).unwrap(), b"");
    assert!(matches!(
        store.read(id(), 52, 8),
        Err(StoreError::Moved(51))
    ));
    for (path, mode) in [
        (path(&scratch), 0o600),
        (scratch.path("sessions/3f"), 0o700),
    ] {
        assert_eq!(
            fs::metadata(path).unwrap().permissions().mode() & 0o777,
            mode
        );
    }
    let listed = store.list().unwrap();
    assert_eq!((listed.len(), listed[0].id, listed[0].bytes), (1, id(), 51));
}

#[test]
fn one_writer_at_a_time_and_at_the_offset_that_it_knows() {
    let scratch = Scratch::new();
    let (one, other) = (open(&scratch), open(&scratch));
    let mut lease = one.create(id(), FIRST).unwrap();
    assert!(matches!(one.lease(id()), Err(StoreError::Busy)));
    assert!(matches!(other.lease(id()), Err(StoreError::Busy)));
    assert!(matches!(other.remove(id()), Err(StoreError::Busy)));
    let moved = one.append(&mut lease, 7, b"x\n");
    assert!(matches!(moved, Err(StoreError::Moved(25))));
    drop(lease);
    let (mut lease, end) = other.lease(id()).unwrap();
    assert_eq!(end, 25);
    other.append(&mut lease, end, b"x\n").unwrap();
    drop(lease);
    one.remove(id()).unwrap();
    assert!(matches!(other.read(id(), 0, 9), Err(StoreError::Unknown)));
    assert!(matches!(one.remove(id()), Err(StoreError::Unknown)));
}

#[test]
fn a_line_that_was_cut_at_any_byte_is_not_seen_and_then_healed() {
    let last = b"{\"type\":\"content_delta\",\"text\":\"caf\xc3\xa9\"}";
    for cut in 0..=last.len() {
        let scratch = Scratch::new();
        let store = open(&scratch);
        drop(store.create(id(), FIRST).unwrap());
        let file = path(&scratch);
        fs::write(&file, [FIRST, &last[..cut]].concat()).unwrap();
        assert_eq!(store.end(id()).unwrap(), 25, "{cut}");
        assert_eq!(store.read(id(), 0, 999).unwrap(), FIRST, "{cut}");
        let (mut lease, end) = store.lease(id()).unwrap();
        store
            .append(&mut lease, end, b"{\"type\":\"z\"}\n")
            .unwrap();
        let text = store.read(id(), 0, 9999).unwrap();
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let healed = &lines[1..lines.len() - 2];
        match cut {
            0 => assert!(healed.is_empty()),
            cut if cut == last.len() => assert_eq!(healed, [last]),
            cut => {
                let line = String::from_utf8_lossy(healed[0]);
                assert!(
                    line.contains("\"warning\"") && line.contains("it was cut"),
                    "{cut}: {line}"
                );
            }
        }
        assert_eq!(lines[lines.len() - 2], b"{\"type\":\"z\"}");
    }
}

#[test]
fn links_pipes_and_files_of_others_are_no_sessions() {
    let scratch = Scratch::new();
    let secret = scratch.write("secret", "{\"type\":\"session\"}\n");
    let store = open(&scratch);
    drop(store.create(id(), FIRST).unwrap());
    let file = path(&scratch);
    for plant in ["link", "dangling", "pipe", "folder", "open to others"] {
        let _ = fs::remove_file(&file);
        match plant {
            "link" => symlink(&secret, &file).unwrap(),
            "dangling" => symlink("/nowhere", &file).unwrap(),
            "pipe" => rustix::fs::mknodat(
                rustix::fs::CWD,
                &file,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RWXU,
                0,
            )
            .unwrap(),
            "folder" => fs::create_dir(&file).unwrap(),
            _ => {
                let _ = fs::remove_dir(&file);
                fs::write(&file, FIRST).unwrap();
                fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
            }
        }
        assert!(store.read(id(), 0, 9).is_err(), "{plant}");
        assert!(store.lease(id()).is_err(), "{plant}");
        assert!(store.create(id(), FIRST).is_err(), "{plant}");
        assert!(store.list().unwrap().is_empty(), "{plant}");
    }
    assert_eq!(fs::read(secret).unwrap(), b"{\"type\":\"session\"}\n");
    // A folder that is a link is not followed, either.
    fs::remove_dir_all(scratch.path("sessions/3f")).unwrap();
    symlink(scratch.path(""), scratch.path("sessions/3f")).unwrap();
    assert!(try_open(&scratch).is_err());
}

#[test]
fn whoever_writes_is_noticed() {
    let scratch = Scratch::new();
    let store = open(&scratch);
    let changes = store.follow().unwrap();
    let lease = store.create(id(), FIRST).unwrap();
    let seen = changes.take().unwrap();
    assert!(seen.contains(&Change::Of(id())), "{seen:?}");
    assert_eq!(changes.take().unwrap(), []);
    drop(lease);
    assert_eq!(
        changes.take().unwrap(),
        [Change::Of(id())],
        "its writer has gone"
    );
    use std::io::Write as _;
    let mut other = fs::OpenOptions::new()
        .append(true)
        .open(path(&scratch))
        .unwrap();
    other.write_all(b"{}\n").unwrap();
    assert_eq!(changes.take().unwrap(), [Change::Of(id())]);
    fs::write(scratch.path("sessions/3f/other"), "x").unwrap();
    assert_eq!(changes.take().unwrap(), []);
}
