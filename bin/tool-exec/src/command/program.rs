//! Where the program of a command is, and what it gets of the environment.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The variable that names the socket of a hub of servers of tools. No command gets it: who reaches
/// the hub can call every tool.
pub const HUB: &str = "TOOLPIPE_HUB";

/// The search path where the environment has none.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Finds the program of a command: a plain name is looked up in `PATH`, and a relative path with a
/// slash starts at the folder of the tools file.
///
/// # Errors
/// What is missing, for the result of the call.
pub fn find(name: &str, folder: &Path) -> Result<PathBuf, String> {
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

/// The environment of a command, but for `TOOL_CALL_ID`, which differs for each call: five
/// variables, and those that its tool names, which replace `PATH`, `HOME`, `TMPDIR` and `LANG`
/// where they have the same name. `home` is the command's own folder, for `HOME` and `TMPDIR`.
/// `TOOL_ARGUMENTS` is left out where it would be longer than Linux takes (128 KiB, execve(2)); the
/// command has the arguments on its standard input too.
pub fn environment(names: &[String], home: &Path, arguments: &str) -> Vec<(OsString, OsString)> {
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

/// The variables of these names that are set.
pub fn named(names: &[String]) -> impl Iterator<Item = (&str, OsString)> {
    names
        .iter()
        .filter(|name| *name != HUB)
        .filter_map(|name| Some((name.as_str(), std::env::var_os(name)?)))
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
