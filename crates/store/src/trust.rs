//! Whether a file can be trusted: only this user or root could have written it.

use event::shell_word;
use rustix::fs::{FileType, Stat, lstat, stat};
use std::path::{Path, PathBuf};

/// The mode bit of a folder such as /tmp, in which users can replace only their own files.
const STICKY: u32 = 0o1000;

/// The attribute that holds a file's access control list (acl(5)). It exists only if the list
/// grants more than the mode does.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Why a file is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distrust {
    /// What others could change. The text continues a sentence that starts with the file's name.
    pub why: String,
    /// What to do about it, as an imperative.
    pub remedy: String,
}

/// Returns why other users could change a file that only this user or root should be able to
/// change, or `None` if they cannot. Checks the file, and every folder and link on its path from
/// the root on, since anyone who can write to one of those folders can replace the file at any
/// time. A sticky folder such as /tmp is accepted, because users can replace only their own files
/// in it. A pipe from the user's shell is not checked. A missing file is not checked either, but
/// the folders on its path are.
///
/// # Errors
/// If the current folder cannot be determined.
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
    // Absolute paths never look like options. A path that is not UTF-8 cannot be typed.
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

/// The fault that `chmod` can fix.
const WRITABLE: &str = "can be written by other users";

/// A file, folder or link that others could change.
struct Fault {
    place: PathBuf,
    kind: PlaceKind,
    /// The fault, worded to follow the place's name.
    why: &'static str,
}

/// The kind of a place on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceKind {
    /// The file itself.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
}

/// How many links the system follows in one path (path_resolution(7)). A path with more links
/// cannot be opened.
const LINKS: usize = 40;

/// Resolves the absolute path `whole` as the system does when it opens it. Returns the places on it
/// that others could change.
fn walk(whole: &Path) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut check = |place: &Path, kind: PlaceKind, meta: &Stat| {
        if let Some(why) = fault(place, meta, kind) {
            let place = place.to_owned();
            faults.push(Fault { place, kind, why });
        }
    };
    // `rest` holds the remaining parts, the next one last. `at` is the link-free path reached so
    // far.
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
                // Some system links have targets without a name (`/dev/fd/3`, for a pipe or a
                // removed file). The process that started this one opened that file.
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

/// Returns why another user could change the place with metadata `meta`, worded to follow its name,
/// or `None` if no other user could.
fn fault(place: &Path, meta: &Stat, kind: PlaceKind) -> Option<&'static str> {
    let user = rustix::process::geteuid().as_raw();
    if meta.st_uid != user && meta.st_uid != 0 && Some(meta.st_uid) != nobody() {
        return Some("belongs to another user");
    }
    // The mode of a link has no effect.
    if kind == PlaceKind::Link || kind == PlaceKind::Folder && meta.st_mode & STICKY != 0 {
        return None;
    }
    // A user's private group has the same number as the user, and many systems create files that
    // this group can write. If the file has an access control list, its group bits are the
    // permissions of all users and groups in the list (acl(5)).
    let is_private = || {
        meta.st_gid == meta.st_uid
            && rustix::fs::getxattr(place, ACCESS_LIST, &mut [0u8; 0][..]).is_err()
    };
    (meta.st_mode & 0o002 != 0 || meta.st_mode & 0o020 != 0 && !is_private()).then_some(WRITABLE)
}

/// Returns the user id under which root's files appear if this process runs in a user namespace
/// without root (user_namespaces(7)), such as a sandbox around the whole pipeline. Files of all
/// other unmapped users appear under it too.
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
