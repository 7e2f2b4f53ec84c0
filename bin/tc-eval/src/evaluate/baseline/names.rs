//! Which corpora of two runs are the same.

/// By which names the corpora of two runs are the same: the path without what one run may write and
/// another may not. Where both runs have a single corpus these are the same whatever their names.
#[derive(Clone, Debug, Default)]
pub struct CorpusNames {
    single: Option<String>,
}

impl CorpusNames {
    /// The names for a run over the corpora `now`, and an earlier one over `then`.
    pub fn of(then: &[String], now: &[String]) -> Self {
        let single = match (then, now) {
            ([_], [now]) => Some(plain(now).to_owned()),
            _ => None,
        };
        CorpusNames { single }
    }

    /// Replaces the name of a corpus of either run by the one that both share.
    pub fn unify(&self, name: &mut String) {
        let shared = self.single.as_deref().unwrap_or_else(|| plain(name));
        if shared != name {
            *name = shared.to_owned();
        }
    }
}

/// The folder that a corpus is: `./fixtures/index.ndjson` is `fixtures`.
fn plain(name: &str) -> &str {
    let folder = name.strip_suffix("/index.ndjson").unwrap_or(name);
    let folder = folder.strip_prefix("./").unwrap_or(folder);
    match folder.trim_end_matches('/') {
        "" => folder,
        trimmed => trimmed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corpus_is_the_same_however_its_path_is_written() {
        for name in [
            "fixtures",
            "fixtures/",
            "./fixtures",
            "./fixtures/index.ndjson",
        ] {
            assert_eq!(plain(name), "fixtures", "{name}");
        }
        assert_eq!(
            (plain("-"), plain("/"), plain("a/b.ndjson")),
            ("-", "/", "a/b.ndjson")
        );
        let names = |then: &[&str], now: &[&str]| {
            let [then, now] = [then, now].map(|names| {
                names
                    .iter()
                    .map(|&name| name.to_owned())
                    .collect::<Vec<_>>()
            });
            CorpusNames::of(&then, &now)
        };
        let unified = |names: &CorpusNames, name: &str| {
            let mut name = name.to_owned();
            names.unify(&mut name);
            name
        };
        assert_eq!(
            unified(&names(&["/old/place"], &["new"]), "/old/place"),
            "new"
        );
        assert_eq!(unified(&names(&["a", "b"], &["a"]), "./b/"), "b");
    }
}
