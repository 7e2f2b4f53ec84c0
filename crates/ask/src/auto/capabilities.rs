//! A cache on disk of which models take tools.

use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A folder with a small file for each model at each server. It is a cache: a file that cannot be
/// read or written only costs a question to the server.
#[derive(Clone, Debug)]
pub(super) struct Capabilities {
    /// The folder of the cache; `None` turns it off.
    pub folder: Option<PathBuf>,
    /// How long an entry is valid.
    pub time_to_live: Duration,
}

/// What was learned about one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Capability {
    /// How it takes tools.
    pub mode: LearnedMode,
    /// How that was learned.
    pub source: LearnedFrom,
    /// The server's message that shows this.
    #[serde(default)]
    pub detail: String,
}

/// How a model takes tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LearnedMode {
    /// In the request.
    Native,
    /// In the prompt.
    Tag,
}

/// How it was learned whether a model takes tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LearnedFrom {
    /// The server refused tools.
    Refused,
    /// The server's own list of models.
    ModelList,
}

/// The file of one model. Its address, API and name are for people who read the file.
#[derive(Serialize, Deserialize)]
struct Entry {
    #[serde(default)]
    v: u32,
    #[serde(default)]
    base_url: String,
    #[serde(default)]
    api: String,
    #[serde(default)]
    model: String,
    #[serde(flatten)]
    known: Capability,
    /// When it was learned, in seconds since 1970.
    learned: u64,
}

/// How long an entry from a server's own list is valid: its models change.
const LISTED: Duration = Duration::from_secs(3600);

impl Capabilities {
    /// The entry under `key`, if it is not too old.
    pub(super) fn get(&self, key: &str) -> Option<Capability> {
        let path = self.folder.as_ref()?.join(file(key));
        // Reading a named pipe could wait for ever.
        let text = path
            .is_file()
            .then(|| std::fs::read_to_string(path).ok())??;
        let Entry { known, learned, .. } = serde_json::from_str(&text).ok()?;
        let age = now()?.checked_sub(learned)?;
        let most = match known.source {
            LearnedFrom::ModelList => self.time_to_live.min(LISTED),
            LearnedFrom::Refused => self.time_to_live,
        };
        (age <= most.as_secs()).then_some(known)
    }

    /// Keeps it under `key`. `of` is what the key is made of, for people who read the file: the
    /// address, the API and the model.
    pub(super) fn put(&self, key: &str, of: [&str; 3], known: &Capability) {
        let (Some(folder), Some(learned)) = (&self.folder, now()) else {
            return;
        };
        let [base_url, api, model] = of.map(str::to_owned);
        let entry = Entry {
            v: 1,
            base_url,
            api,
            model,
            known: known.clone(),
            learned,
        };
        let Ok(text) = serde_json::to_string(&entry) else {
            return;
        };
        let new = folder.join(format!("{}.{}", file(key), std::process::id()));
        // Another process sees the old file or the new one, never half of one.
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::File::create_new(&new))
            .and_then(|mut file| writeln!(file, "{text}"))
            .and_then(|()| std::fs::rename(&new, folder.join(file(key))));
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
    }
}

fn file(key: &str) -> String {
    format!("{key}.json")
}

/// Seconds since the epoch.
fn now() -> Option<u64> {
    Some(SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(name: &str, time_to_live: u64) -> (PathBuf, Capabilities) {
        let folder = std::env::temp_dir().join(format!("llm-stream-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let time_to_live = Duration::from_secs(time_to_live);
        (
            folder.clone(),
            Capabilities {
                folder: Some(folder),
                time_to_live,
            },
        )
    }

    fn known(is_native: bool, source: LearnedFrom) -> Capability {
        Capability {
            mode: if is_native {
                LearnedMode::Native
            } else {
                LearnedMode::Tag
            },
            source,
            detail: "HTTP 400: no \"tools\"".to_owned(),
        }
    }

    #[test]
    fn an_entry_is_valid_until_it_is_too_old() {
        let (folder, cache) = cache("ttl", 7 * 86400);
        cache.put(
            "k",
            ["http://h", "ollama", "m"],
            &known(false, LearnedFrom::Refused),
        );
        assert_eq!(cache.get("k"), Some(known(false, LearnedFrom::Refused)));
        assert_eq!(cache.get("other"), None);
        let path = folder.join("k.json");
        let text = std::fs::read_to_string(&path).unwrap();
        let learned = event::Raw::parse(&text)
            .unwrap()
            .get("learned")
            .unwrap()
            .i64()
            .unwrap();
        for (source, age, fresh) in [
            ("refused", 7 * 86400 - 60, true),
            ("refused", 7 * 86400 + 60, false),
            ("model-list", 3600 - 60, true),
            ("model-list", 3600 + 60, false),
            ("refused", -60, false),
        ] {
            let old = text
                .replace(&learned.to_string(), &(learned - age).to_string())
                .replace("refused", source);
            std::fs::write(&path, old).unwrap();
            assert_eq!(cache.get("k").is_some(), fresh, "{source} {age}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_read_or_written_is_not_an_error() {
        let (folder, cache) = cache("broken", 60);
        std::fs::create_dir_all(&folder).unwrap();
        for broken in [
            "",
            "nonsense",
            "{}",
            "{\"mode\":\"native\",\"source\":\"x\",\"learned\":\"soon\"}",
            "[1]",
        ] {
            std::fs::write(folder.join("k.json"), broken).unwrap();
            assert_eq!(cache.get("k"), None, "{broken}");
        }
        cache.put("k", ["", "", ""], &known(true, LearnedFrom::ModelList));
        assert_eq!(cache.get("k"), Some(known(true, LearnedFrom::ModelList)));
        assert_eq!(
            std::fs::read_dir(&folder).unwrap().count(),
            1,
            "nothing else is left there"
        );
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::write(&folder, "no folder").unwrap();
        cache.put("k", ["", "", ""], &known(true, LearnedFrom::ModelList));
        assert_eq!(cache.get("k"), None);
        std::fs::remove_file(&folder).unwrap();
    }
}
