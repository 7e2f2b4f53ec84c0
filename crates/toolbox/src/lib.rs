//! The tools that `--tools` names: tools files and programs that describe themselves, mixed in any
//! number. Their tools become the text of one tools file, which every command reads as before.

mod merge;
mod notation;
mod program;

pub use notation::Header;

use anyhow::{Context, bail};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The tools of all sources.
#[derive(Clone, Debug, Default)]
pub struct Toolbox {
    /// The text of a tools file.
    pub text: String,
    /// The sources as they were typed, for messages.
    pub name: String,
    /// The folder in which relative paths of the text begin.
    pub folder: PathBuf,
    /// The files that the text was made of: they decide what runs.
    pub places: Vec<PathBuf>,
    /// The file beside which the lock file is: the first tools file, else the first source.
    pub main: PathBuf,
}

/// What a source holds.
enum Source {
    /// A tools file.
    File(String),
    /// The entries of the tools of a program.
    Tools(Vec<Value>),
}

impl Toolbox {
    /// Reads all sources. A single tools file stays as it is written.
    ///
    /// # Errors
    /// The first source that cannot be read, or two tools of one name in several sources.
    pub fn read(sources: &[PathBuf]) -> anyhow::Result<Toolbox> {
        Toolbox::make(sources, sources.len() == 1)
    }

    /// As [`Toolbox::read`], with absolute paths in place of those that begin in the folder of a
    /// tools file: the text means the same in any folder.
    ///
    /// # Errors
    /// As there.
    pub fn merged(sources: &[PathBuf]) -> anyhow::Result<Toolbox> {
        Toolbox::make(sources, false)
    }

    fn make(sources: &[PathBuf], keeps_text: bool) -> anyhow::Result<Toolbox> {
        let main = |path: &PathBuf| path.clone();
        let mut toolbox = Toolbox {
            name: names(sources),
            folder: sources
                .first()
                .map(|path| folder_of(path))
                .unwrap_or_default(),
            places: sources.to_vec(),
            main: sources.first().map(main).unwrap_or_default(),
            ..Toolbox::default()
        };
        let mut merged = merge::Merge::default();
        let mut is_first_file = true;
        for path in sources {
            let name = || path.display().to_string();
            match Source::read(path)? {
                Source::File(text) if keeps_text => {
                    toolbox.text = text;
                    return Ok(toolbox);
                }
                Source::File(text) => {
                    if std::mem::replace(&mut is_first_file, false) {
                        toolbox.main = path.clone();
                    }
                    merged.add_file(&text, path).with_context(name)?;
                }
                Source::Tools(entries) => merged.add(entries, path).with_context(name)?,
            }
        }
        toolbox.text = merged.text();
        Ok(toolbox)
    }

    /// As [`Toolbox::read`]; `None` without any source.
    ///
    /// # Errors
    /// As there.
    pub fn read_if_any(sources: &[PathBuf]) -> anyhow::Result<Option<Toolbox>> {
        (!sources.is_empty())
            .then(|| Toolbox::read(sources))
            .transpose()
    }

    /// The text of the tools file for people.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn pretty(&self) -> anyhow::Result<String> {
        let file: Value = self.parse(|text| serde_json::from_str(text))?;
        Ok(serde_json::to_string_pretty(&file)?)
    }

    /// Returns the result of `read`, a reader of tools files.
    ///
    /// # Errors
    /// That of `read`, after the names of the sources.
    pub fn parse<T, E>(&self, read: impl FnOnce(&str) -> Result<T, E>) -> anyhow::Result<T>
    where
        Result<T, E>: Context<T, E>,
    {
        read(&self.text).with_context(|| self.name.clone())
    }
}

/// The names of sources, for messages.
fn names(sources: &[PathBuf]) -> String {
    let names: Vec<String> = sources
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}

/// The folder of a tools file, in which its relative paths begin.
pub fn folder_of(tools: &Path) -> PathBuf {
    let folder = tools
        .parent()
        .filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

impl Source {
    fn read(path: &Path) -> anyhow::Result<Source> {
        let name = || path.display().to_string();
        let meta = std::fs::metadata(path);
        let is_program =
            |meta: &std::fs::Metadata| meta.is_file() && meta.permissions().mode() & 0o111 != 0;
        // On some file systems every file may be executed, so what the file holds decides.
        if meta.is_ok_and(|meta| is_program(&meta))
            && !program::holds_json(path).with_context(name)?
        {
            return Ok(Source::Tools(program::tools(path).with_context(name)?));
        }
        let text = text(path).with_context(name)?;
        if text.starts_with("#!") {
            bail!("{0}: not executable, run: chmod +x {0}", path.display());
        }
        Ok(Source::File(text))
    }
}

/// The text of a file.
fn text(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(path).context("check the path and its permissions")?;
    String::from_utf8(bytes)
        .ok()
        .context("not UTF-8, write the file as UTF-8")
}
