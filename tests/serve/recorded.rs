//! The recorded bodies: those of `fixtures/streams` and each response of `fixtures/tapes`.

use api::Api;
use std::path::Path;

/// One recorded response.
pub(crate) struct Recorded {
    pub name: String,
    pub api: Api,
    pub bytes: Vec<u8>,
}

/// All of them.
pub(crate) fn recorded() -> Vec<Recorded> {
    let mut all: Vec<Recorded> = testkit::bodies()
        .into_iter()
        .map(|body| Recorded {
            api: Api::from_name(&body.api)
                .unwrap_or_else(|| panic!("{}: the folder is not an API's name", body.name)),
            bytes: std::fs::read(&body.path).unwrap_or_else(|e| panic!("{}: {e}", body.name)),
            name: body.name,
        })
        .collect();
    for tape in ["huts", "huts-tag"] {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/tapes/{tape}.tape"));
        let text = std::fs::read_to_string(path).expect("a tape");
        let from = all.len();
        for line in text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        {
            let value: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
            if let Some(api) = value["api"].as_str() {
                let name = format!("{tape}.tape {}", all.len() - from);
                all.push(Recorded {
                    name,
                    api: Api::from_name(api).expect("an API"),
                    bytes: Vec::new(),
                });
            } else if value[1] == "text" {
                let text = value[2].as_str().expect("a text");
                all.last_mut()
                    .expect("a response has begun")
                    .bytes
                    .extend_from_slice(text.as_bytes());
            }
        }
        assert!(all.len() > from, "{tape} has no response");
    }
    all
}

/// Fails with what is wrong, if anything is; at most some of it.
#[track_caller]
pub(crate) fn nothing(wrong: &[String]) {
    let shown: Vec<&str> = wrong.iter().take(12).map(String::as_str).collect();
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        shown.join("\n")
    );
}
