//! The folders that commands and servers run in.

use std::path::{Component, Path, PathBuf};

/// The folder of a tools file, in which its relative paths begin.
pub fn folder_of(tools: &Path) -> PathBuf {
    let folder = tools
        .parent()
        .filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// Where the working folder `cwd` of a tools file in `folder` really is, as it is found once,
/// before anything runs: the rules of a policy are about that place. Of a folder that does not
/// exist yet the part that exists is found, and the rest is as it is written.
///
/// # Errors
/// It is not UTF-8.
pub fn settled(folder: &Path, cwd: &str) -> Result<String, String> {
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

/// Checks that a folder which [`settled`] has found is there, and still the same: that no link has
/// taken the place of a part of its path since.
///
/// # Errors
/// What is wrong with it, for the result of a call.
pub fn check(folder: &Path) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::scratch::{HomeNames, Scratch};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_is_where_its_links_lead_when_it_is_settled() {
        let root = HomeNames::new().next().unwrap();
        let _dir = Scratch::make(&root).unwrap();
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
