//! Where a test runs `tool-exec`: as this user or an ordinary one, on systems that allow more or
//! less.

use super::{Dir, needs};
use std::path::Path;
use std::process::{Command, Stdio};

/// An ordinary user, for tests that root runs.
const NOBODY: &str = "65534";

/// Runs the command in its arguments where the system calls of the first argument fail: `unshare`
/// is 1, `landlock_create_ruleset` is 2. A container refuses them the same way, by seccomp(2).
const REFUSE: &str = r#"
import ctypes, os, platform, struct, sys
unshare = {"x86_64": 272, "aarch64": 97}[platform.machine()]
calls = [number for bit, number in ((1, unshare), (2, 444)) if int(sys.argv[1]) & bit]
code = [struct.pack("HBBI", 0x20, 0, 0, 0)]
for number in calls:
    code += [struct.pack("HBBI", 0x15, 0, 1, number), struct.pack("HBBI", 0x06, 0, 0, 0x00050001)]
code += [struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000)]
text = ctypes.create_string_buffer(b"".join(code))
program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(text))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0
os.execvp(sys.argv[2], sys.argv[2:])
"#;

/// Where `tool-exec` runs.
#[derive(Clone)]
pub(crate) struct Place {
    /// For messages.
    pub name: &'static str,
    /// Whether the user there is not root.
    pub is_ordinary: bool,
    /// Whether the system has namespaces.
    pub has_namespaces: bool,
    /// Whether the system has Landlock's signal scope.
    pub has_scope: bool,
    before: Vec<String>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Place {
            name,
            is_ordinary,
            has_namespaces,
            has_scope,
            ..
        } = self;
        write!(
            f,
            "{name}, ordinary user: {is_ordinary}, namespaces: {has_namespaces}, signal scope: {has_scope}"
        )
    }
}

impl Place {
    /// The command `program` in this place.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut all = self.before.iter().map(String::as_str).chain([program]);
        let mut command = Command::new(all.next().unwrap());
        command.args(all);
        command
    }

    /// Whether what a tool starts cannot end or stop the process above it.
    pub(crate) fn is_contained(&self) -> bool {
        self.has_namespaces || self.has_scope
    }

    fn works(&self, program: &str, args: &[&str]) -> bool {
        let mut command = self.command(program);
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

/// The places that this machine has. Those that it lacks are reported as skipped.
pub(crate) fn places() -> Vec<Place> {
    // Without the first nobody knows what the machine has; tools run the second.
    if !needs::programs(&["unshare", "setsid"]) {
        return Vec::new();
    }
    let is_root = rustix::process::geteuid().is_root();
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let users = [
        (!is_root, vec![]),
        (
            true,
            words(&[
                "setpriv",
                "--reuid",
                NOBODY,
                "--regid",
                NOBODY,
                "--clear-groups",
            ]),
        ),
    ];
    let refusals = [
        ("free", 0),
        ("without namespaces", 1),
        ("without namespaces and Landlock", 3),
    ];
    // One that every user may run, where there is one.
    let python = if Path::new("/usr/bin/python3").exists() {
        "/usr/bin/python3"
    } else {
        "python3"
    };
    let mut all = Vec::new();
    for (is_ordinary, user) in users.into_iter().take(if is_root { 2 } else { 1 }) {
        if !user.is_empty() && !needs::programs(&["setpriv"]) {
            continue;
        }
        for (name, refused) in refusals {
            if refused > 0 && !needs::programs(&[python]) {
                continue;
            }
            let mut before = user.clone();
            if refused > 0 {
                before.extend(words(&[python, "-c", REFUSE, &refused.to_string()]));
            }
            if before.is_empty() {
                before = words(&["env"]);
            }
            let place = Place {
                name,
                is_ordinary,
                has_namespaces: refused == 0,
                has_scope: refused < 2,
                before,
            };
            if !place.works("test", &["-x", env!("CARGO_BIN_EXE_tool-exec")]) {
                needs::skip(&format!(
                    "{place:?}: an ordinary user cannot run tool-exec and python3 here"
                ));
                continue;
            }
            let unshare: &[&str] = if is_ordinary {
                &["-Urpf", "true"]
            } else {
                &["-pf", "true"]
            };
            let has_namespaces = place.has_namespaces && place.works("unshare", unshare);
            let has_scope = place.has_scope && has_signal_scope();
            all.push(Place {
                has_namespaces,
                has_scope,
                ..place
            });
        }
    }
    all
}

/// Whether the system has Landlock's signal scope.
fn has_signal_scope() -> bool {
    use landlock::{CompatLevel, Compatible, Ruleset, RulesetAttr, Scope};
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal);
    ruleset.and_then(Ruleset::create).is_ok()
}

/// Lets every user write into the folder of a test.
pub(crate) fn open_to_all(dir: &Dir) {
    use std::os::unix::fs::PermissionsExt;
    let path: &Path = &dir.path(".");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}
