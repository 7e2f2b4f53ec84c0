//! `bin/install-toolpipe` and `bin/manual`: which files they write, where, and that these agree with the
//! commands.

use std::path::Path;
use std::process::Output;
use testkit::needs;

/// Runs a script with `$to` as an empty folder and `$built` as the folder of the built commands.
fn run(script: &str, to: &Path) -> Output {
    let script = format!(
        "built=$(dirname \"$(command -v llm-stream)\") to='{}'\n{script}",
        to.display()
    );
    testkit::bash(&script, testkit::root())
        .output()
        .expect("bash runs")
}

/// An empty folder for one test.
fn folder(name: &str) -> std::path::PathBuf {
    let folder =
        std::env::temp_dir().join(format!("toolpipe-install-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    folder
}

/// The long options of a text.
fn options(text: &str) -> Vec<&str> {
    let letter = |c: char| c.is_ascii_lowercase() || c == '-';
    let mut options: Vec<_> = text
        .match_indices("--")
        .map(|(at, _)| text[at..].split(|c| !letter(c)).next().unwrap_or_default())
        .collect();
    options.retain(|option| option.len() > 3);
    options.sort_unstable();
    options.dedup();
    options
}

/// Completes `$name $typed` as bash would, by the completions under `$to`.
const COMPLETE: &str = r#"
. "$to/share/bash-completion/completions/$name"
spec=$(complete -p "$name")
case $spec in
*' -W '*) compgen -W "$(sed "s/.* -W '//; s/'.*//" <<<"$spec")" -- "$typed" ;;
*)
    COMP_WORDS=("$name" "$typed") COMP_CWORD=1
    "$(sed 's/.* -F \([^ ]*\) .*/\1/' <<<"$spec")" "$name" "$typed" "$name"
    echo "${COMPREPLY[@]}"
    ;;
esac"#;

#[test]
fn what_is_installed_runs_completes_and_has_a_man_page_and_is_removed_again() {
    if !needs::programs(&["find", "grep", "sed"]) {
        return;
    }
    let to = folder("all");
    let installed = run(
        "PATH=$PWD/bin:$PATH PREFIX=$to TOOLPIPE_BIN=$built bin/install-toolpipe",
        &to,
    );
    assert!(
        installed.status.success() && installed.stderr.is_empty(),
        "{installed:?}"
    );
    let names: Vec<String> = std::fs::read_dir(to.join("bin"))
        .expect("bin")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .collect();
    assert!(
        names.len() >= 7 && names.iter().any(|name| name == "react"),
        "{names:?}"
    );
    for name in &names {
        let help = run(&format!("PATH=$to/bin:$PATH; {name} --help"), &to);
        let help = String::from_utf8(help.stdout).expect("UTF-8");
        let page = std::fs::read_to_string(to.join(format!("share/man/man1/{name}.1")))
            .expect("a man page");
        assert!(
            page.lines().any(|line| line.starts_with(".TH ")),
            "{name}: no title"
        );
        let page = page.replace("\\-", "-");
        // In --help each option begins a line.
        let own = help
            .lines()
            .map(str::trim_start)
            .filter(|line| line.starts_with('-'))
            .collect::<Vec<_>>()
            .join("\n");
        for option in options(&own) {
            assert!(
                page.contains(option),
                "the man page of {name} lacks {option}"
            );
        }
        let (typed, option) = match name.as_str() {
            "toolpipe" => ("--li", "--link"),
            _ => ("--no-t", "--no-time"),
        };
        let completed = run(&format!("name={name} typed={typed}{COMPLETE}"), &to);
        assert_eq!(
            String::from_utf8_lossy(&completed.stdout).trim(),
            option,
            "{name}: {completed:?}"
        );
        for file in [
            format!("share/zsh/site-functions/_{name}"),
            format!("share/fish/vendor_completions.d/{name}.fish"),
        ] {
            let text = std::fs::read_to_string(to.join(&file)).expect("completions");
            assert!(text.contains(&option[2..]), "{file}");
        }
    }
    let removed = run(
        "PREFIX=$to bin/install-toolpipe --uninstall && find $to ! -type d",
        &to,
    );
    assert!(removed.status.success(), "{removed:?}");
    assert_eq!(
        String::from_utf8_lossy(&removed.stdout).lines().count(),
        1,
        "files are left: {removed:?}"
    );
    std::fs::remove_dir_all(&to).expect("removed");
}

/// With `bin/` in PATH, as the README has it, every program of the system is still found.
#[test]
fn no_script_hides_a_program_of_the_system() {
    let to = folder("hidden");
    let script = "for file in bin/*; do
        [ ! -f $file ] || ! PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin command -v ${file#bin/}
    done";
    let hidden = run(script, &to);
    assert_eq!(String::from_utf8_lossy(&hidden.stdout), "", "{hidden:?}");
    std::fs::remove_dir_all(&to).expect("removed");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    if !needs::programs(&["find", "grep", "sed"]) {
        return;
    }
    let to = folder("refused");
    for script in [
        "PREFIX=/dev/null/x TOOLPIPE_BIN=$built bin/install-toolpipe",
        "PREFIX=$to TOOLPIPE_BIN=$to bin/install-toolpipe",
        "bin/install-toolpipe --what",
    ] {
        let refused = run(script, &to);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{script}: {said}");
        assert!(
            said.lines()
                .last()
                .is_some_and(|line| line.starts_with("install-toolpipe: ")),
            "{script}: {said}"
        );
    }
    std::fs::remove_dir_all(&to).expect("removed");
}
