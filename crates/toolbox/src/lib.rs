//! The tools that `--tools` names: tools files, programs that describe themselves, folders of
//! programs, and OpenAPI documents, mixed in any number. Their tools become the text of one tools
//! file, which every command reads as before.

mod clients;
mod lock_file;
mod merge;
mod notation;
mod openapi;
mod program;
pub mod trust;

pub use lock_file::{LockFile, show};

use anyhow::{Context, bail};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tool::mcp::LockedServer;

/// The tools of all sources.
#[derive(Clone, Debug, Default)]
pub struct Toolbox {
    /// The text of a tools file.
    pub text: String,
    /// The sources as they were typed, for messages.
    pub name: String,
    /// The sources as they were typed.
    pub sources: Vec<PathBuf>,
    /// The folder in which relative paths of the text begin.
    pub folder: PathBuf,
    /// The files and folders that the text was made of: they decide what runs.
    pub places: Vec<PathBuf>,
    /// The tools of the sources that describe themselves, as the lock file has them.
    pub described: Vec<LockedServer>,
    /// The source beside which the lock file is: the first tools file, else the first source.
    main: PathBuf,
    /// Operations of documents that are left out, and why.
    pub left_out: Vec<String>,
}

/// Gets the document at an address.
pub type Fetch = dyn Fn(&str) -> anyhow::Result<String>;

/// The entries of the tools of a program, and its file.
type ProgramTools = (PathBuf, Vec<Value>);

/// How sources may be read.
#[derive(Clone, Copy, Default)]
pub struct Access<'a> {
    /// Whether programs that other users can write are started to ask for their description.
    pub trust: bool,
    /// The option that forbids to start any program for that.
    pub asks_nobody: Option<&'a str>,
    /// Gets the document at an address; `None`: the command sends no requests.
    pub fetch: Option<&'a Fetch>,
    /// The lock file; `None`: that beside the sources.
    pub lock: Option<&'a Path>,
    /// Whether tools are only shown: they need not be as a person has accepted them.
    pub only_shows: bool,
}

/// What a source holds.
enum Source {
    /// A tools file.
    File(String),
    /// The entries of the tools of programs, by their files.
    Programs(Vec<ProgramTools>),
    /// The entries of the tools of an OpenAPI document, and why other operations are left out.
    Operations(Vec<Value>, Vec<String>),
}

impl Toolbox {
    /// Reads all sources. A single tools file stays as it is written.
    ///
    /// # Errors
    /// The first source that cannot be read, two tools of one name in several sources, or tools
    /// that are not as a person has accepted them, which are shown.
    pub fn read(sources: &[PathBuf], access: &Access<'_>) -> anyhow::Result<Toolbox> {
        Toolbox::make(sources, access, sources.len() == 1)
    }

    /// As [`Toolbox::read`], with absolute paths in place of those that begin in the folder of a
    /// tools file: the text means the same in any folder.
    ///
    /// # Errors
    /// As there.
    pub fn merged(sources: &[PathBuf], access: &Access<'_>) -> anyhow::Result<Toolbox> {
        Toolbox::make(sources, access, false)
    }

    fn make(sources: &[PathBuf], access: &Access<'_>, keeps_text: bool) -> anyhow::Result<Toolbox> {
        let mut toolbox = Toolbox {
            name: names(sources),
            sources: sources.to_vec(),
            ..Toolbox::default()
        };
        let mut merged = merge::Merge::default();
        let (mut file, mut described) = (None, Vec::new());
        for source in sources {
            let name = || source.display().to_string();
            let place = Place::of(source);
            if let Place::File(path, _) = &place {
                toolbox.places.push(path.clone());
            }
            if toolbox.main.as_os_str().is_empty() {
                toolbox.main = place.path().to_owned();
                toolbox.folder = folder_of(&toolbox.main);
            }
            let mut entries_of = Vec::new();
            match Source::read(&place, access)? {
                Source::File(text) => {
                    if keeps_text {
                        toolbox.text = text;
                        return Ok(toolbox);
                    }
                    file.get_or_insert_with(|| source.clone());
                    merged.add_file(&text, source).with_context(name)?;
                }
                Source::Programs(programs) => {
                    for (program, entries) in programs {
                        let name = || program.display().to_string();
                        entries_of.extend(entries.clone());
                        merged.add(entries, &program).with_context(name)?;
                        if !toolbox.places.contains(&program) {
                            toolbox.places.push(program);
                        }
                    }
                }
                Source::Operations(entries, left_out) => {
                    entries_of.extend(entries.clone());
                    merged.add(entries, source).with_context(name)?;
                    toolbox.left_out.extend(left_out);
                }
            }
            if !entries_of.is_empty() {
                described.push((place, entries_of));
            }
        }
        toolbox.main = file.unwrap_or(toolbox.main);
        toolbox.text = merged.text();
        let lock = LockFile::new(access.lock, &toolbox);
        for (place, entries) in described {
            toolbox.described.push(lock.described(&place, entries)?);
        }
        if !access.only_shows {
            lock.check(&toolbox, access.trust)?;
        }
        Ok(toolbox)
    }

    /// As [`Toolbox::read`]; `None` without any source.
    ///
    /// # Errors
    /// As there.
    pub fn read_if_any(
        sources: &[PathBuf],
        access: &Access<'_>,
    ) -> anyhow::Result<Option<Toolbox>> {
        (!sources.is_empty())
            .then(|| Toolbox::read(sources, access))
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

/// Where a source is, and the patterns of the names of its tools, after `#`.
#[derive(Clone, Debug)]
enum Place {
    /// A file or a folder.
    File(PathBuf, Vec<String>),
    /// An address.
    Url(String, Vec<String>),
}

impl Place {
    fn of(source: &Path) -> Place {
        let globs = |text: &str| text.split(',').map(str::to_owned).collect();
        let text = source.to_str().unwrap_or_default();
        if text.starts_with("http://") || text.starts_with("https://") {
            return match text.split_once('#') {
                Some((url, patterns)) => Place::Url(url.to_owned(), globs(patterns)),
                None => Place::Url(text.to_owned(), Vec::new()),
            };
        }
        match text.rsplit_once('#') {
            // A file may have such a name.
            Some((path, patterns)) if !source.exists() && Path::new(path).exists() => {
                Place::File(path.into(), globs(patterns))
            }
            _ => Place::File(source.to_owned(), Vec::new()),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Place::File(path, _) => path,
            Place::Url(url, _) => Path::new(url),
        }
    }
}

impl Source {
    fn read(place: &Place, access: &Access<'_>) -> anyhow::Result<Source> {
        let name = || place.path().display().to_string();
        let (text, url, globs) = match place {
            Place::File(path, globs) => {
                let programs = programs(path, access).with_context(name)?;
                if let Some(programs) = programs {
                    if !globs.is_empty() {
                        bail!(
                            "{}: patterns after # are for OpenAPI documents",
                            path.display()
                        );
                    }
                    return Ok(Source::Programs(programs));
                }
                (stdio::file_text(path).with_context(name)?, None, globs)
            }
            Place::Url(url, globs) => {
                let Some(fetch) = access.fetch else {
                    bail!(
                        "{url}: this command sends no requests; run: tool-exec --describe {url} \
                         >tools.json, and give tools.json"
                    );
                };
                let text = fetch(url).with_context(name)?;
                (text, Some(url.as_str()), globs)
            }
        };
        if text.starts_with("#!") {
            bail!("{0}: not executable, run: chmod +x {0}", name());
        }
        let first = text.trim_start_matches('\u{feff}').trim_start();
        let is_yaml = || {
            let mut words = ["openapi:", "swagger:"].iter();
            words.any(|word| first.starts_with(word) || first.contains(&format!("\n{word}")))
        };
        if !first.starts_with(['{', '[']) && is_yaml() {
            bail!(
                "{0}: YAML is not read, convert it: yq -o json {0} >api.json",
                name()
            );
        }
        let root =
            (url.is_some() || first.starts_with('{')).then(|| serde_json::from_str::<Value>(first));
        match root {
            Some(Ok(root)) if openapi::is_document(&root) => {
                let globs: Vec<&str> = globs.iter().map(String::as_str).collect();
                let (entries, left_out) = openapi::tools(&root, url, &globs).with_context(name)?;
                Ok(Source::Operations(entries, left_out))
            }
            Some(Err(e)) if url.is_some() => bail!("{}: not JSON: {e}", name()),
            _ if url.is_some() => bail!("{}: not an OpenAPI document", name()),
            _ if !globs.is_empty() => {
                bail!("{}: patterns after # are for OpenAPI documents", name())
            }
            _ => Ok(Source::File(
                clients::tools_file(&text).with_context(name)?.into_owned(),
            )),
        }
    }
}

/// The tools of the program at a path, or of the programs in the folder there; `None` if it is
/// neither.
fn programs(path: &Path, access: &Access<'_>) -> anyhow::Result<Option<Vec<ProgramTools>>> {
    if path.is_dir() {
        return program::folder(path, access).map(Some);
    }
    // On some file systems every file may be executed, so what the file holds decides.
    if is_program(path) && !program::holds_json(path)? {
        return Ok(Some(vec![(path.to_owned(), program::tools(path, access)?)]));
    }
    Ok(None)
}

/// Whether what `--tools` names is a file with servers of tools: a tools file with `mcpServers`, or
/// the configuration of another client.
pub fn names_servers(source: &Path) -> bool {
    let is_file = || !is_program(source) || program::holds_json(source).unwrap_or(false);
    source.is_file()
        && is_file()
        && stdio::file_text(source).is_ok_and(|text| clients::has_servers(&text))
}

/// Whether a path leads to a file that may be executed.
fn is_program(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
