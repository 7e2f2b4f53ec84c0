//! Whether a file that decides what runs can be trusted: only this user or root could have written
//! it.

use crate::Toolbox;
use anyhow::{Context, bail};
use std::path::Path;
use store::Distrust;
use tool::mcp::{ServerLink, Servers};
use tool::{RunnerKind, Tools};

/// Checks what the tools were read from, and the programs that they name by a path.
///
/// # Errors
/// What others could change, and what to do.
pub fn toolbox(toolbox: &Toolbox, tools: &Tools) -> anyhow::Result<()> {
    toolbox.places.iter().try_for_each(|place| file(place))?;
    let commands = tools
        .iter()
        .filter_map(|tool| match &tool.exec.as_ref()?.run {
            RunnerKind::Command(command) => command.template.program(),
            RunnerKind::Http(_) | RunnerKind::Mcp(_) => None,
        });
    programs(&toolbox.folder, commands)
}

/// Checks the lock file, and the programs of servers of tools that the tools file names by a path.
///
/// # Errors
/// What others could change, and what to do.
pub fn servers(folder: &Path, lock: &Path, servers: &Servers) -> anyhow::Result<()> {
    file(lock)?;
    let commands = servers.list.iter().filter_map(|server| match &server.link {
        ServerLink::Stdio(program) => program.command.first().map(String::as_str),
        ServerLink::Http(_) => None,
    });
    programs(folder, commands)
}

/// Checks those of the programs of tools that are named by a path, which begins in `folder`.
fn programs<'p>(folder: &Path, mut names: impl Iterator<Item = &'p str>) -> anyhow::Result<()> {
    names.try_for_each(|name| match name.contains('/') {
        true => file(&folder.join(name)),
        false => Ok(()),
    })
}

/// Checks a file that says what may run: see [`store::distrust`].
///
/// # Errors
/// What others could change, and what to do.
pub fn file(path: &Path) -> anyhow::Result<()> {
    let name = path.display();
    match store::distrust(path)
        .with_context(|| format!("{name}: the current folder cannot be found"))?
    {
        None => Ok(()),
        Some(Distrust { why, remedy }) => {
            bail!(
                "{name}: {why}, and it decides what runs; {remedy}, or use --trust if you trust \
                 them"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use testkit::Scratch;

    #[test]
    fn what_others_can_write_is_not_trusted() {
        let root = Scratch::new();
        // A name that a shell would take apart.
        let folder = root.join("its d");
        let path = folder.join("tools.json");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&path, "[]").unwrap();
        symlink(&path, root.join("link")).unwrap();
        let set = |path: &Path, mode: u32| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap()
        };
        let user = rustix::process::geteuid().as_raw();
        chown(&path, None, Some(rustix::process::getegid().as_raw())).unwrap();
        for (file_mode, folder_mode, want) in [
            (0o644, 0o755, None),
            (0o600, 0o1777, None),
            (0o666, 0o755, Some("it can be written")),
            (0o644, 0o777, Some("/its d on the way to it can be written")),
        ] {
            set(&path, file_mode);
            set(&folder, folder_mode);
            for path in [&path, &root.join("link")] {
                let said = file(path).err().map(|e| e.to_string()).unwrap_or_default();
                assert!(
                    said.contains(want.unwrap_or_default()) && said.is_empty() == want.is_none(),
                    "{said}"
                );
            }
        }
        set(&path, 0o666);
        let all = format!(
            "; run chmod go-w '{}' '{}', or",
            folder.display(),
            path.display()
        );
        let said = file(&path).unwrap_err().to_string();
        assert!(said.contains(&all), "{said}");
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
        assert!(
            file(&path)
                .unwrap_err()
                .to_string()
                .contains("belongs to another user")
        );
        chown(&path, Some(0), Some(0)).unwrap();
        chown(&folder, Some(7), Some(7)).unwrap();
        assert!(
            file(&path)
                .unwrap_err()
                .to_string()
                .contains("/its d on the way to it belongs to another user")
        );
    }

    #[test]
    fn a_private_group_does_not_cover_an_access_control_list() {
        let root = Scratch::new();
        let path = root.join("tools.json");
        std::fs::write(&path, "[]").unwrap();
        chown(&path, None, Some(rustix::process::geteuid().as_raw())).unwrap();
        // Version 2, then tag, permissions and user of each entry: owner, user 7, group, mask,
        // others (linux/posix_acl_xattr.h).
        let mut list = 2u32.to_le_bytes().to_vec();
        for (tag, permissions, user) in [
            (1u16, 6u16, !0u32),
            (2, 6, 7),
            (4, 4, !0),
            (0x10, 6, !0),
            (0x20, 4, !0),
        ] {
            list.extend(
                tag.to_le_bytes()
                    .into_iter()
                    .chain(permissions.to_le_bytes())
                    .chain(user.to_le_bytes()),
            );
        }
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o664)).unwrap();
        assert!(file(&path).is_ok());
        if rustix::fs::setxattr(
            &path,
            "system.posix_acl_access",
            &list,
            rustix::fs::XattrFlags::empty(),
        )
        .is_err()
        {
            eprintln!("skipped: the file system has no access control lists");
            return;
        }
        assert!(
            file(&path)
                .unwrap_err()
                .to_string()
                .contains("it can be written by other users")
        );
    }

    #[test]
    fn every_folder_and_link_on_the_way_counts() {
        let root = Scratch::new();
        let place = |name: &str| root.join(name);
        let set = |name: &str, mode| {
            std::fs::set_permissions(place(name), PermissionsExt::from_mode(mode)).unwrap()
        };
        std::fs::create_dir_all(place("open/own/deep")).unwrap();
        std::fs::create_dir_all(place("safe/own")).unwrap();
        for name in ["open/own/deep/f", "safe/own/f"] {
            std::fs::write(place(name), "").unwrap();
            set(name, 0o600);
        }
        set("open/own", 0o700);
        // Out of a safe folder into the open one and the other way round, by absolute and relative
        // links, in the middle and at the end.
        symlink(place("open/own/deep/f"), place("safe/own/to-file")).unwrap();
        symlink("../../open/own", place("safe/own/to-folder")).unwrap();
        symlink("to-folder", place("safe/own/twice")).unwrap();
        symlink("../safe/own", place("open/to-safe")).unwrap();
        symlink("round", place("safe/own/round")).unwrap();
        symlink("nowhere", place("safe/own/dangling")).unwrap();
        let unsafe_ones = [
            "open/own/deep/f",
            "open/own/deep/missing",
            "safe/../open/own/deep/f",
            "safe/own/to-file",
            "safe/own/to-folder/deep/f",
            "safe/own/twice/deep/f",
            "open/to-safe/f",
        ];
        let safe_ones = [
            "safe/own/f",
            "safe/own/missing",
            "safe/own/round",
            "safe/own/dangling",
            "safe/own/../own/./f",
        ];
        for (mode, is_open) in [
            (0o777, true),
            (0o1777, false),
            (0o755, false),
            (0o733, true),
        ] {
            set("open", mode);
            for name in unsafe_ones {
                let said = file(&place(name))
                    .err()
                    .map(|e| e.to_string())
                    .unwrap_or_default();
                assert_eq!(
                    said.contains("/open on the way to it can be written"),
                    is_open,
                    "{mode:o} {name}: {said}"
                );
            }
            for name in safe_ones {
                assert!(file(&place(name)).is_ok(), "{mode:o} {name}");
            }
        }
        // A pipe is a file that others could have put there.
        set("open", 0o777);
        rustix::fs::mkfifoat(rustix::fs::CWD, place("open/pipe"), 0o600.into()).unwrap();
        assert!(file(&place("open/pipe")).is_err());
        if rustix::process::geteuid().as_raw() != 0 {
            eprintln!("skipped: only root can make links of another user");
            return;
        }
        set("open", 0o1777);
        std::os::unix::fs::lchown(place("open/to-safe"), Some(7), Some(7)).unwrap();
        let said = file(&place("open/to-safe/f")).unwrap_err().to_string();
        assert!(
            said.contains("the link ") && said.contains("belongs to another user"),
            "{said}"
        );
    }

    #[test]
    fn what_is_not_a_file_is_not_checked() {
        use std::os::fd::AsRawFd;
        let (pipe, _other) = std::io::pipe().unwrap();
        let pipe = format!("/dev/fd/{}", pipe.as_raw_fd());
        for path in ["/dev/null", "/no/such/file", &pipe] {
            assert!(file(Path::new(path)).is_ok(), "{path}");
        }
    }
}
