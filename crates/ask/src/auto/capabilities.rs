//! A cache on disk of which models take tools.

use event::{Object, Raw};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A folder with a small file for each model at each server. It is a cache: a file that cannot be
/// read or written only costs a question to the server.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// The folder of the cache; `None` turns it off.
    pub folder: Option<PathBuf>,
    /// How long an entry is valid.
    pub time_to_live: Duration,
}

/// What was learned about one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Whether it takes tools in the request.
    pub is_native: bool,
    /// How that was learned.
    pub source: LearnedFrom,
    /// The server's message that shows this.
    pub detail: String,
}

/// How it was learned whether a model takes tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnedFrom {
    /// The server refused tools.
    Refused,
    /// The server's own list of models.
    ModelList,
}

impl LearnedFrom {
    fn name(self) -> &'static str {
        match self {
            LearnedFrom::Refused => "refused",
            LearnedFrom::ModelList => "model-list",
        }
    }
}

/// How long an entry from a server's own list is valid: its models change.
const LISTED: Duration = Duration::from_secs(3600);

impl Capabilities {
    /// The entry under `key`, if it is not too old.
    pub fn get(&self, key: &str) -> Option<Capability> {
        let path = self.folder.as_ref()?.join(file(key));
        // Reading a named pipe could wait for ever.
        let text = path
            .is_file()
            .then(|| std::fs::read_to_string(path).ok())??;
        let entry = Raw::parse(&text).ok()?;
        let text = |member: &str| entry.get_str(member).map(|text| text.into_owned());
        let is_native = match entry.get_str("mode")?.as_ref() {
            "native" => true,
            "tag" => false,
            _ => return None,
        };
        let source = text("source")?;
        let source = [LearnedFrom::Refused, LearnedFrom::ModelList]
            .into_iter()
            .find(|known| known.name() == source)?;
        let learned = u64::try_from(entry.get("learned")?.i64()?).ok()?;
        let age = now()?.checked_sub(learned)?;
        let most = if source == LearnedFrom::ModelList {
            self.time_to_live.min(LISTED)
        } else {
            self.time_to_live
        };
        let fresh = age <= most.as_secs();
        fresh.then(|| Capability {
            is_native,
            source,
            detail: text("detail").unwrap_or_default(),
        })
    }

    /// Keeps it under `key`. `of` is what the key is made of, for people who read the file: the
    /// address, the API and the model.
    pub fn put(&self, key: &str, of: [&str; 3], known: &Capability) {
        let (Some(folder), Some(now)) = (&self.folder, now()) else {
            return;
        };
        let mut text = Vec::new();
        let mut o = Object::open(&mut text);
        o.int("v", 1)
            .str("base_url", of[0])
            .str("api", of[1])
            .str("model", of[2]);
        o.str("mode", if known.is_native { "native" } else { "tag" })
            .str("source", known.source.name());
        o.str("detail", &known.detail).int("learned", now);
        o.close();
        text.push(b'\n');
        let new = folder.join(format!("{}.{}", file(key), std::process::id()));
        // Another process sees the old file or the new one, never half of one.
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::File::create_new(&new))
            .and_then(|mut file| file.write_all(&text))
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
            is_native,
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
        let learned = Raw::parse(&text)
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
