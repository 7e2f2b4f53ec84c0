//! The memory of a run does not grow with the number of its streams.

use crate::run::Folder;
use std::path::Path;
use std::process::Command;
use testkit::needs;
use testkit::places::count;

/// Prints the largest memory, in KiB, that a command took.
const PEAK: &str = "import resource, subprocess, sys\n\
    subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)\n\
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";

/// The labels of our fixtures, `times` times with other ids, sources and models.
fn corpus(folder: &Folder, times: usize) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let labels = std::fs::read_to_string(root.join("index.ndjson")).expect("the labels");
    let mut index = String::new();
    for copy in 0..times {
        for (line, label) in labels.lines().enumerate() {
            let mut label: serde_json::Value = serde_json::from_str(label).expect("a label");
            let file = root.join(label["file"].as_str().unwrap_or_default());
            label["file"] = file.to_string_lossy().as_ref().into();
            label["id"] = format!("{copy}-{line}-{}", "long".repeat(50)).into();
            label["source"] = format!("source {copy}/{line}").into();
            label["model"] = format!("model {copy}/{line}").into();
            index += &format!("{label}\n");
        }
    }
    let name = format!("{times}.ndjson");
    folder.write(&name, index);
    name
}

#[test]
fn many_times_the_streams_take_no_more_memory() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let folder = Folder::new();
    let peak = |times: usize| {
        let index = corpus(&folder, times);
        let baseline = format!("{index}.baseline");
        let out = Command::new("python3")
            .args([
                "-c",
                PEAK,
                env!("CARGO_BIN_EXE_tc-eval"),
                &index,
                "--jobs",
                "2",
                "--save-baseline",
                &baseline,
            ])
            .current_dir(folder.path("."))
            .output()
            .expect("python3 runs");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        text.trim()
            .parse::<u64>()
            .unwrap_or_else(|_| panic!("{out:?}"))
    };
    // Groups, sources and wrong streams are bounded, and are full after the first thousands of
    // streams.
    let few = peak(2);
    let many = peak(count(12, 40));
    assert!(
        many < few + 12 * 1024 && many < 64 * 1024,
        "{few} KiB, then {many} KiB"
    );
}
