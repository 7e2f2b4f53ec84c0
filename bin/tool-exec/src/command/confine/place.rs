//! A file or folder that a command may reach.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A file or folder that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its absolute path as the command knows it, maybe with symbolic links.
    pub name: PathBuf,
    /// Its path without symbolic links.
    pub real: PathBuf,
}

impl Place {
    /// The place of this absolute path.
    ///
    /// # Errors
    /// When there is nothing, or its path is not UTF-8.
    pub fn find(name: &Path) -> Result<Self, String> {
        let real = name.canonicalize().map_err(|e| e.to_string())?;
        match (name.to_str(), real.to_str()) {
            (Some(_), Some(_)) => Ok(Place {
                name: normal(name),
                real,
            }),
            _ => Err("its path is not UTF-8".to_owned()),
        }
    }

    /// Whether no part of its path has become a symbolic link since it was found.
    pub fn is_unchanged(&self) -> bool {
        self.real.canonicalize().is_ok_and(|now| now == self.real)
    }

    /// The place as JSON.
    pub fn to_json(&self) -> Value {
        json!([self.name, self.real])
    }

    /// Reads what [`Place::to_json`] returns. `None`: it is anything else.
    pub fn from_json(value: &Value) -> Option<Self> {
        Some(Place {
            name: value[0].as_str()?.into(),
            real: value[1].as_str()?.into(),
        })
    }
}

/// The path without `.`, which `Path::join` keeps. `..` stays: what it leads to depends on the
/// links before it.
fn normal(path: &Path) -> PathBuf {
    path.components()
        .filter(|part| !matches!(part, std::path::Component::CurDir))
        .collect()
}
