//! Finds the program of a command, and builds its environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// The variable that names the socket of a hub of MCP servers. Commands never get it, because a
/// process that can connect to the hub can call every tool.
pub(crate) const HUB: &str = "TOOLPIPE_HUB";

/// The search path if the environment has none.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Finds the program of a command. A name without a slash is looked up in `PATH`; a relative path
/// with a slash is relative to the folder of the tools file.
///
/// # Errors
/// What is missing, for the result of the call.
pub(crate) fn find(name: &str, folder: &Path) -> Result<PathBuf, String> {
    if name.contains('/') {
        let path = folder.join(name);
        return if runs(&path) {
            Ok(path)
        } else {
            Err(format!("{} is not an executable file", path.display()))
        };
    }
    std::env::split_paths(&search_path())
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|path| runs(path))
        .ok_or_else(|| format!("{name} is not found in PATH"))
}

fn runs(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn search_path() -> OsString {
    std::env::var_os("PATH")
        .filter(|path| !path.is_empty())
        .unwrap_or_else(|| PATH.into())
}

/// Returns the environment of a command, without `TOOL_CALL_ID` and the trace variables, which
/// differ for each call. It has five variables, and those that the tool names, which replace
/// `PATH`, `HOME`, `TMPDIR` and `LANG` if they have the same name. `home` is the command's own
/// folder, for `HOME` and `TMPDIR`. `TOOL_ARGUMENTS` is omitted if it would be longer than Linux
/// accepts (128 KiB, execve(2)); the command also gets the arguments on its standard input.
pub(crate) fn environment(
    names: &[String],
    home: &Path,
    arguments: &str,
) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), search_path()),
        ("HOME".into(), home.into()),
        ("TMPDIR".into(), home.into()),
        (
            "LANG".into(),
            std::env::var_os("LANG").unwrap_or_else(|| "C.UTF-8".into()),
        ),
    ];
    for (name, value) in named(names) {
        env.retain(|(other, _)| *other != *name);
        env.push((name.into(), value));
    }
    if "TOOL_ARGUMENTS=".len() + arguments.len() <= tool::MAX_ITEM {
        env.push(("TOOL_ARGUMENTS".into(), arguments.into()));
    }
    env
}

/// Returns the variables with these names that are set.
pub(crate) fn named(names: &[String]) -> impl Iterator<Item = (&str, OsString)> {
    names
        .iter()
        .filter(|name| *name != HUB)
        .filter_map(|name| Some((name.as_str(), std::env::var_os(name)?)))
}

// The working folders of commands and servers.

/// Resolves the working folder `cwd` of a tools file in `folder`. Done once before anything runs,
/// so that the rules of a policy apply to the resolved path. If the folder does not exist yet, the
/// part that exists is resolved and the rest is kept as written.
///
/// # Errors
/// If the path is not UTF-8.
pub(crate) fn settled(folder: &Path, cwd: &str) -> Result<String, String> {
    let whole = folder.join(cwd);
    let found = whole
        .ancestors()
        .find_map(|above| Some((above, above.canonicalize().ok()?)));
    let (above, mut real) = found.unwrap_or_else(|| (Path::new(""), PathBuf::new()));
    for part in whole.strip_prefix(above).unwrap_or(&whole).components() {
        match part {
            Component::ParentDir => {
                real.pop();
            }
            Component::CurDir => {}
            part => real.push(part),
        }
    }
    real.into_os_string()
        .into_string()
        .map_err(|real| format!("{} is not UTF-8", real.display()))
}

/// Checks that a folder returned by [`settled`] exists and that no part of its path has been
/// replaced by a link since.
///
/// # Errors
/// What is wrong with the folder, for the result of a call.
pub(crate) fn check(folder: &Path) -> Result<(), String> {
    if !folder.is_dir() {
        return Err(format!("the folder {} does not exist", folder.display()));
    }
    if folder.canonicalize().is_ok_and(|real| real != folder) {
        return Err(format!(
            "the folder {} has become a link since the tools file was read",
            folder.display()
        ));
    }
    Ok(())
}

// The identity of a command, for the cache key of its result: the files that actually run, and
// their environment. A cached result is used only if all of this is unchanged.

/// A program up to this size, in bytes, is identified by its content; a larger one only by its
/// metadata, such as its size and times.
const HASHED: u64 = 1 << 20;

/// Returns the identity of a command: the program, the files on its command line, its working
/// folder, and its environment without the variables that differ from call to call. `names` are the
/// variables that its tool passes on.
pub(crate) fn identity(
    program: &Path,
    argv: &[String],
    folder: &Path,
    names: &[String],
) -> Vec<Vec<u8>> {
    let mut all = vec![
        folder
            .canonicalize()
            .unwrap_or_else(|_| folder.to_owned())
            .as_os_str()
            .as_bytes()
            .to_vec(),
    ];
    all.push(file(program, HASHED).unwrap_or_default());
    // An item may name a script for an interpreter, or an input file.
    for item in argv.iter().skip(1) {
        let after = item.split_once('=').map(|(_, value)| value); // of `--file=NAME`
        all.extend(
            [Some(item.as_str()), after]
                .map(|name| file(&folder.join(name?), 0))
                .map(Option::unwrap_or_default),
        );
    }
    let own = [OsStr::new("HOME"), OsStr::new("TMPDIR")]; // a new folder for each call
    for (name, value) in environment(names, Path::new(""), "") {
        let is_own = own.contains(&&*name) && value.is_empty();
        if !is_own && name != "TOOL_ARGUMENTS" {
            all.extend([name.as_bytes().to_vec(), value.as_bytes().to_vec()]);
        }
    }
    all
}

/// Returns the resolved path of a file, its metadata, and the digest of its content if it has at
/// most `hashed` bytes. Returns `None` if the path is not a file.
fn file(path: &Path, hashed: u64) -> Option<Vec<u8>> {
    let real = path.canonicalize().ok()?;
    let meta = real.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut all = real.as_os_str().as_bytes().to_vec();
    let times = [
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec(),
    ];
    all.extend(format!("\0{} {} {} {times:?}", meta.dev(), meta.ino(), meta.size()).into_bytes());
    if meta.size() <= hashed
        && let Ok(content) = std::fs::read(&real)
    {
        all.extend(tool::sha256(&content));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_and_paths_are_seen_from_the_tools_file() {
        assert!(find("sh", Path::new("/nowhere")).unwrap().is_absolute());
        assert_eq!(
            find("./sh", Path::new("/bin")).unwrap(),
            Path::new("/bin/./sh")
        );
        assert_eq!(
            find("no-such-program", Path::new("/")).unwrap_err(),
            "no-such-program is not found in PATH"
        );
        assert!(find("./etc", Path::new("/")).is_err());
    }

    #[test]
    fn the_environment_is_small_and_the_arguments_fit_into_it() {
        let names = |arguments: &str| {
            environment(&["HOME".to_owned()], Path::new("/h"), arguments)
                .into_iter()
                .map(|(n, _)| n.into_string().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("{}").len(), 5);
        assert!(!names(&"x".repeat(131_072 - 15)).contains(&"TOOL_ARGUMENTS".to_owned()));
        assert!(names(&"x".repeat(131_071 - 15)).contains(&"TOOL_ARGUMENTS".to_owned()));
    }
}

#[cfg(test)]
mod folder_tests {
    use super::*;
    use crate::command::scratch::{ScratchFolder, unused_name};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_is_where_its_links_lead_when_it_is_settled() {
        let root = unused_name();
        let _dir = ScratchFolder::make(&root).unwrap();
        let root = root.canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/sub")).unwrap();
        symlink("real/sub", root.join("link")).unwrap();
        let real = |cwd: &str| settled(&root, cwd).unwrap();
        let path = |name: &str| root.join(name).into_os_string().into_string().unwrap();
        for (cwd, want) in [
            ("real/sub", "real/sub"),
            ("./link", "real/sub"),
            ("link/..", "real"),
            ("link/later/./x", "real/sub/later/x"),
            ("link/later/../y", "real/sub/y"),
            (&path("link"), "real/sub"),
        ] {
            assert_eq!(real(cwd), path(want), "{cwd}");
        }
        let settled = PathBuf::from(real("real/sub"));
        assert!(
            check(&settled).is_ok()
                && check(&root.join("none"))
                    .unwrap_err()
                    .contains("does not exist")
        );
        std::fs::rename(root.join("real/sub"), root.join("other")).unwrap();
        symlink("../other", root.join("real/sub")).unwrap();
        assert!(check(&settled).unwrap_err().contains("has become a link"));
    }
}
