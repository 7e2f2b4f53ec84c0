//! Whether a file can be trusted: only this user or root could have written it.

use event::shell_word;
use rustix::fs::{FileType, Stat, lstat, stat};
use std::path::{Path, PathBuf};

/// The mode bit of a folder in which a user can replace only own files, such as /tmp.
const STICKY: u32 = 0o1000;

/// The attribute that holds the access control list of a place (acl(5)). It is there only if the
/// list says more than the mode.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Why a file is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distrust {
    /// What others could change, as the beginning of a sentence after the name of the file.
    pub why: String,
    /// What to do, as a command to a person.
    pub remedy: String,
}

/// What others could change of a file that must be this user's or root's; `None` if they can change
/// nothing. The file counts, and every folder and link on the way to it, from the root on: whoever
/// can write to one of these folders can put another file in the place of this one, at any time. A
/// sticky folder such as /tmp is accepted, since a user can replace only own files there. A pipe of
/// this user's shell is not checked, nor is what is missing, but for the folders on the way.
///
/// # Errors
/// The current folder cannot be found.
pub fn distrust(path: &Path) -> std::io::Result<Option<Distrust>> {
    let faults = walk(&std::path::absolute(path)?);
    let Some(Fault { place, kind, why }) = faults.first() else {
        return Ok(None);
    };
    let what = match kind {
        PlaceKind::File => "it".to_owned(),
        PlaceKind::Folder => format!("the folder {} on the way to it", place.display()),
        PlaceKind::Link => format!("the link {} on the way to it", place.display()),
    };
    // Absolute paths, of which none reads as an option. One that is no text cannot be typed.
    let words = faults.iter().map(|fault| {
        let place = fault.place.to_str().filter(|_| fault.why == WRITABLE);
        place.map(shell_word)
    });
    let remedy = match words.collect::<Option<Vec<_>>>() {
        Some(words) => format!("run chmod go-w {}", words.join(" ")),
        None => "copy it to a folder of yours".to_owned(),
    };
    Ok(Some(Distrust {
        why: format!("{what} {why}"),
        remedy,
    }))
}

/// What others could change, which a change of modes mends.
const WRITABLE: &str = "can be written by other users";

/// A place that others could change.
struct Fault {
    place: PathBuf,
    kind: PlaceKind,
    /// In words that follow its name.
    why: &'static str,
}

/// What is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceKind {
    /// The file itself.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
}

/// How many links the system follows in one path (path_resolution(7)). Nothing opens a path with
/// more.
const LINKS: usize = 40;

/// Goes the way that the system goes when it opens the absolute path `whole`; returns the places on
/// it that others could change.
fn walk(whole: &Path) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut check = |place: &Path, kind: PlaceKind, meta: &Stat| {
        if let Some(why) = fault(place, meta, kind) {
            let place = place.to_owned();
            faults.push(Fault { place, kind, why });
        }
    };
    // The parts that are to come, the next one last, and the place that is reached: a path without
    // links.
    let parts = |path: &Path| {
        path.components()
            .rev()
            .map(|part| part.as_os_str().to_owned())
            .collect::<Vec<_>>()
    };
    let mut rest = parts(whole);
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = rest.pop() {
        let place = match part.as_encoded_bytes() {
            b"." => continue,
            b".." => {
                at.pop();
                continue;
            }
            _ => at.join(&part), // the root is absolute: it replaces what was reached
        };
        let Ok(meta) = lstat(&place) else {
            return faults;
        }; // there is nothing
        match FileType::from_raw_mode(meta.st_mode) {
            FileType::Symlink => {
                check(&place, PlaceKind::Link, &meta);
                links += 1;
                let Some(to) = std::fs::read_link(&place).ok().filter(|_| links <= LINKS) else {
                    return faults;
                };
                if lstat(at.join(&to)).is_ok() {
                    rest.extend(parts(&to));
                    continue;
                }
                // The system has links to what has no name (`/dev/fd/3`, a pipe or a file that was
                // removed): it is what whoever started this process opened.
                match stat(&place) {
                    Ok(meta) if FileType::from_raw_mode(meta.st_mode) == FileType::RegularFile => {
                        check(&place, PlaceKind::File, &meta);
                    }
                    _ => return faults,
                }
                at = place;
            }
            FileType::Directory => {
                check(&place, PlaceKind::Folder, &meta);
                at = place;
            }
            FileType::CharacterDevice | FileType::BlockDevice => at = place, // /dev/null is for everybody
            _ => {
                check(&place, PlaceKind::File, &meta);
                at = place;
            }
        }
    }
    faults
}

/// Why somebody else could change the place that has that state, in words that follow its name.
fn fault(place: &Path, meta: &Stat, kind: PlaceKind) -> Option<&'static str> {
    let user = rustix::process::geteuid().as_raw();
    if meta.st_uid != user && meta.st_uid != 0 && Some(meta.st_uid) != nobody() {
        return Some("belongs to another user");
    }
    // The mode of a link says nothing.
    if kind == PlaceKind::Link || kind == PlaceKind::Folder && meta.st_mode & STICKY != 0 {
        return None;
    }
    // The private group of a user has the user's number; many systems make files that this group
    // may write. Where a place has an access control list, the group's permissions are those of all
    // users and groups in the list (acl(5)).
    let is_private = || {
        meta.st_gid == meta.st_uid
            && rustix::fs::getxattr(place, ACCESS_LIST, &mut [0u8; 0][..]).is_err()
    };
    (meta.st_mode & 0o002 != 0 || meta.st_mode & 0o020 != 0 && !is_private()).then_some(WRITABLE)
}

/// The number under which the files of root appear, where this process is in a user namespace that
/// has no root (user_namespaces(7)): a sandbox around the whole pipeline. The files of all users
/// that it lacks appear so, too.
fn nobody() -> Option<u32> {
    let read = |name: &str| std::fs::read_to_string(Path::new("/proc").join(name)).ok();
    let map = read("self/uid_map")?;
    let has_root = map
        .lines()
        .any(|line| line.split_whitespace().next() == Some("0"));
    if has_root {
        None
    } else {
        read("sys/kernel/overflowuid")?.trim().parse().ok()
    }
}
