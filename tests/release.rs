//! `bin/release`: the same files from the same source, and what is in them. The binary is a
//! stand-in, since what is packed does not depend on it.

use serde_json::Value;
use std::path::PathBuf;
use testkit::{Scratch, needs};

const TOOLPIPE: &str = "#!/bin/sh\necho \"${0##*/} $*\"";

/// Packs with the stand-in; returns the folder of the packages.
fn release(folder: &Scratch, to: &str, before: &str) -> PathBuf {
    let to = folder.path(to);
    let script = format!(
        "{before}
        export TOOLPIPE_BIN=$folder/built SOURCE_DATE_EPOCH=1700000000
        mkdir -p $TOOLPIPE_BIN && echo \"$binary\" >$TOOLPIPE_BIN/toolpipe && chmod 755 $TOOLPIPE_BIN/toolpipe &&
            bin/release $to"
    );
    let packed = testkit::bash(&script, testkit::root())
        .env("folder", folder.path(""))
        .env("to", &to)
        .env("binary", TOOLPIPE)
        .output()
        .expect("bash runs");
    assert!(packed.status.success(), "{packed:?}");
    to
}

fn printed(script: &str, folder: &std::path::Path) -> String {
    let ran = testkit::bash(script, folder).output().expect("bash runs");
    assert!(ran.status.success(), "{script}: {ran:?}");
    String::from_utf8(ran.stdout).expect("UTF-8")
}

fn has_tools() -> bool {
    let certificates = std::path::Path::new("/etc/ssl/certs/ca-certificates.crt").is_file();
    needs::programs(&["dpkg-deb", "jq"])
        && needs::installed(
            certificates,
            "/etc/ssl/certs/ca-certificates.crt",
            "install ca-certificates",
        )
}

#[test]
fn the_same_source_makes_the_same_bytes() {
    if !has_tools() {
        return;
    }
    let folder = Scratch::new();
    let first = release(&folder, "first", "umask 077; export LC_ALL=C");
    let second = release(&folder, "second", "umask 002; export TZ=Asia/Tokyo");
    let sums = "cat SHA256SUMS && sha256sum --check --quiet SHA256SUMS";
    let listed = printed(sums, &first);
    assert_eq!(listed, printed(sums, &second));
    let kinds = [
        ".tar.gz",
        ".deb",
        "-oci.tar",
        " toolpipe-x86_64-linux.tar.gz",
    ];
    assert!(kinds.iter().all(|kind| listed.contains(kind)), "{listed}");
}

#[test]
fn archive_and_package_have_commands_pages_completions_licences_and_the_unit() {
    if !has_tools() {
        return;
    }
    let folder = Scratch::new();
    let to = release(&folder, "to", "");
    let archive = printed("tar tzf toolpipe-x86_64-linux.tar.gz", &to);
    let package = printed("dpkg-deb --contents *.deb", &to);
    let both = [
        "bin/toolpipe",
        "bin/tc-view",
        "bin/react",
        "share/man/man1/tool-exec.1",
        "share/bash-completion/completions/tc-eval",
        "share/zsh/site-functions/_llm-stream",
        "share/fish/vendor_completions.d/tc-serve.fish",
        "tc-serve.service",
    ];
    for file in both {
        assert!(
            archive.contains(file) && package.contains(file),
            "{file}: {archive}{package}"
        );
    }
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "README.md"] {
        assert!(archive.contains(file), "{file}: {archive}");
    }
    let depth = |line: &str| line.starts_with("toolpipe-") && line.contains("-x86_64-linux/");
    assert!(archive.lines().all(depth), "{archive}");
    printed("tar xzf toolpipe-x86_64-linux.tar.gz", &to);
    let ran = printed("toolpipe-*/bin/tc-view --version", &to);
    assert_eq!(ran, "tc-view --version\n");
}

/// Every digest and size in the image is that of its file, down to what the layer holds.
#[test]
fn the_image_is_a_layout_whose_digests_hold() {
    if !has_tools() {
        return;
    }
    let folder = Scratch::new();
    let to = release(&folder, "to", "");
    printed("mkdir image && tar xf *-oci.tar -C image", &to);
    let image = to.join("image");
    let read = |part: &Value| -> String {
        let digest = part["digest"].as_str().expect("a digest");
        let (_, digest) = digest.split_once(':').expect("sha256:");
        let file = format!("blobs/sha256/{digest}");
        let found = printed(&format!("sha256sum <{file}; stat -c %s {file}"), &image);
        assert_eq!(found, format!("{digest}  -\n{}\n", part["size"]));
        file
    };
    let json = |file: &str| -> Value {
        let text = std::fs::read_to_string(image.join(file)).expect("a file");
        serde_json::from_str(&text).expect("JSON")
    };
    assert_eq!(json("oci-layout")["imageLayoutVersion"], "1.0.0");
    let index = json("index.json");
    assert_eq!(index["manifests"][0]["platform"]["architecture"], "amd64");
    let manifest = json(&read(&index["manifests"][0]));
    let config = json(&read(&manifest["config"]));
    let layer = read(&manifest["layers"][0]);
    let diff = printed(&format!("gzip -dc {layer} | sha256sum"), &image);
    let named = config["rootfs"]["diff_ids"][0].as_str().expect("a digest");
    assert_eq!(format!("{named}  -\n"), format!("sha256:{diff}"));
    let files = printed(&format!("tar tzvf {layer}"), &image);
    for file in [
        "usr/bin/tc-serve -> toolpipe",
        "etc/ssl/certs/ca-certificates.crt",
        "drwxrwxrwt",
    ] {
        assert!(files.contains(file), "{file}: {files}");
    }
    let program = config["config"]["Entrypoint"][0].as_str().expect("a path");
    assert!(files.contains(program.trim_start_matches('/')), "{files}");
}

/// The unit is read as systemd reads it, with the built service in the place of the installed one.
#[test]
fn systemd_accepts_the_unit() {
    if !needs::programs(&["systemd-analyze"]) {
        return;
    }
    let folder = Scratch::new();
    let unit = std::fs::read_to_string(testkit::root().join("packaging/tc-serve.service"));
    let built = testkit::program("tc-serve").display().to_string();
    let unit = unit.expect("the unit").replace("/usr/bin/tc-serve", &built);
    folder.write("tc-serve.service", unit);
    let verified = testkit::bash(
        "systemd-analyze verify --man=no ./tc-serve.service 2>&1",
        &folder.path("."),
    )
    .output()
    .expect("bash runs");
    let said = String::from_utf8_lossy(&verified.stdout);
    // What the units of this machine have wrong is not ours.
    let ours: Vec<_> = said
        .lines()
        .filter(|line| line.contains("tc-serve"))
        .collect();
    assert!(verified.status.success() && ours.is_empty(), "{said}");
}
