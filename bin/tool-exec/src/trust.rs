//! Whether a file that decides what runs can be trusted: only this user or root could have written it.

use crate::command::folder_of;
use anyhow::bail;
use rustix::fs::{FileType, Stat, stat};
use std::path::Path;
use tool::mcp::{Link, Servers};
use tool::{Run, Tools};

/// The mode bit of a folder in which a user can replace only own files, such as /tmp.
const STICKY: u32 = 0o1000;

/// Checks the tools file, and the programs that it names by a path.
///
/// # Errors
/// What others could change, and what to do.
pub fn tools_file(path: &Path, tools: &Tools) -> anyhow::Result<()> {
    file(path)?;
    let folder = folder_of(path);
    for tool in tools.iter() {
        let Some(Run::Command(command)) = tool.exec.as_ref().map(|exec| &exec.run) else { continue };
        if let Some(program) = command.template.program().filter(|program| program.contains('/')) {
            file(&folder.join(program))?;
        }
    }
    Ok(())
}

/// Checks the lock file, and the programs of servers of tools that the tools file names by a path.
///
/// # Errors
/// What others could change, and what to do.
pub fn servers(tools: &Path, lock: &Path, servers: &Servers) -> anyhow::Result<()> {
    file(lock)?;
    let folder = folder_of(tools);
    for server in &servers.list {
        if let Link::Stdio(program) = &server.link
            && let Some(program) = program.command.first().filter(|program| program.contains('/'))
        {
            file(&folder.join(program))?;
        }
    }
    Ok(())
}

/// Checks a file that says what may run, and its folder; where the path is a link, what it leads to as well. What is not a file, such as a pipe of this user's
/// shell, is not checked, nor is what is missing.
///
/// # Errors
/// What others could change, and what to do.
pub fn file(path: &Path) -> anyhow::Result<()> {
    if stat(path).is_ok_and(|meta| FileType::from_raw_mode(meta.st_mode) != FileType::RegularFile) {
        return Ok(());
    }
    let real = path.canonicalize();
    let paths = [Some(path), real.as_deref().ok().filter(|real| *real != path)];
    for path in paths.into_iter().flatten() {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        for (place, is_folder) in [(path, false), (folder, true)] {
            let Ok(meta) = stat(place) else { continue };
            if let Some(why) = distrust(&meta, is_folder) {
                let (what, name) = (if is_folder { "its folder " } else { "it " }, path.display());
                bail!("{name}: {what}{why}, and it decides what runs; change that, or use --trust if you trust them");
            }
        }
    }
    Ok(())
}

/// Why somebody else could change what has that state, in words that follow its name.
fn distrust(meta: &Stat, is_folder: bool) -> Option<&'static str> {
    let user = rustix::process::geteuid().as_raw();
    if meta.st_uid != user && meta.st_uid != 0 && Some(meta.st_uid) != nobody() {
        return Some("belongs to another user");
    }
    if is_folder && meta.st_mode & STICKY != 0 {
        return None;
    }
    // The private group of a user has the user's number; many systems make files that this group may write.
    let is_private = meta.st_gid == meta.st_uid;
    (meta.st_mode & 0o002 != 0 || meta.st_mode & 0o020 != 0 && !is_private).then_some("can be written by other users")
}

/// The number under which the files of root appear, where this process is in a user namespace that has no root (user_namespaces(7)): a
/// sandbox around the whole pipeline. The files of all users that it lacks appear so, too.
fn nobody() -> Option<u32> {
    let read = |name: &str| std::fs::read_to_string(Path::new("/proc").join(name)).ok();
    let map = read("self/uid_map")?;
    let has_root = map.lines().any(|line| line.split_whitespace().next() == Some("0"));
    if has_root { None } else { read("sys/kernel/overflowuid")?.trim().parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::scratch::{HomeNames, Scratch};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn what_others_can_write_is_not_trusted() {
        let root = HomeNames::new().next().unwrap();
        let _dir = Scratch::make(&root).unwrap();
        let (folder, path) = (root.join("d"), root.join("d/tools.json"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&path, "[]").unwrap();
        symlink(&path, root.join("link")).unwrap();
        let set = |path: &Path, mode: u32| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        let user = rustix::process::geteuid().as_raw();
        chown(&path, None, Some(rustix::process::getegid().as_raw())).unwrap();
        for (file_mode, folder_mode, want) in [
            (0o644, 0o755, None),
            (0o600, 0o1777, None),
            (0o666, 0o755, Some("it can be written")),
            (0o644, 0o777, Some("its folder can be written")),
        ] {
            set(&path, file_mode);
            set(&folder, folder_mode);
            for path in [&path, &root.join("link")] {
                let said = file(path).err().map(|e| e.to_string()).unwrap_or_default();
                assert!(said.contains(want.unwrap_or_default()) && said.is_empty() == want.is_none(), "{said}");
            }
        }
        set(&folder, 0o755);
        if user != 0 {
            eprintln!("skipped: only root can make files of another user and group");
            return;
        }
        chown(&path, None, Some(7)).unwrap();
        set(&path, 0o664);
        assert!(file(&path).is_err(), "a group of several users");
        chown(&path, Some(7), Some(7)).unwrap();
        set(&path, 0o600);
        assert!(file(&path).unwrap_err().to_string().contains("belongs to another user"));
        chown(&path, Some(0), Some(0)).unwrap();
        chown(&folder, Some(7), Some(7)).unwrap();
        assert!(file(&path).unwrap_err().to_string().contains("its folder belongs to another user"));
    }

    #[test]
    fn what_is_not_a_file_is_not_checked() {
        assert!(file(Path::new("/dev/null")).is_ok() && file(Path::new("/no/such/file")).is_ok());
    }
}
