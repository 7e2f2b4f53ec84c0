//! Where the key comes from.

use anyhow::{Context, Result, anyhow, bail};
use api::Api;
use std::env;
use std::path::PathBuf;

/// Where the key is; without either, in the API's usual variable.
#[derive(Clone, Debug, Default)]
pub struct KeySource {
    /// A file that holds the key alone.
    pub file: Option<PathBuf>,
    /// A variable of the environment.
    pub variable: Option<String>,
}

impl KeySource {
    /// The key; `None` if the source holds no key and `is_needed` is false.
    ///
    /// # Errors
    /// One line that names the variable or the file: a key that is missing, or that cannot be the
    /// value of a header.
    pub fn key(&self, api: Api, is_needed: bool) -> Result<Option<String>> {
        let (key, origin) = match (&self.file, &self.variable) {
            (Some(file), _) => {
                let text = std::fs::read_to_string(file);
                let text = text.with_context(|| {
                    format!("{}: the key cannot be read, check the path", file.display())
                })?;
                (text, file.display().to_string())
            }
            (None, Some(name)) => {
                let text = env::var(name).map_err(|_| {
                    anyhow!("the environment has no {name}: export the key under that name")
                })?;
                (text, name.clone())
            }
            (None, None) => (
                env::var(api.key_env()).unwrap_or_default(),
                api.key_env().to_owned(),
            ),
        };
        let key = key.trim();
        if key.is_empty() && is_needed {
            bail!(
                "no key for {}: export {} (or name another place with --api-key-env or --api-key-file)",
                api.name(),
                api.key_env()
            );
        }
        if !key.bytes().all(|b| b.is_ascii_graphic()) {
            bail!(
                "the key in {origin} holds spaces or control characters, put the key alone there"
            );
        }
        Ok(Some(key.to_owned()).filter(|key| !key.is_empty()))
    }
}
