//! The file: its tables, the keys in them, and the line of each.

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The most bytes of the file.
const LONGEST: u64 = 1 << 20;

/// The table of models.
const MODELS: &str = "models";

/// The table of agents.
const AGENTS: &str = "agents";

/// The commands whose options the file may have, each in a table of its name.
pub(crate) const SECTIONS: [&str; 3] = ["llm-stream", "react", "tc-serve"];

/// Keys of a model that are not options.
const OF_MODEL: [&str; 2] = ["aliases", "fallbacks"];

/// What people write for a key in clear, which does not belong into the file.
pub(crate) const KEYS: [&str; 4] = ["api_key", "key", "token", "secret"];

/// A key of the file with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The key, with `_` between its words.
    pub key: String,
    /// The value.
    pub value: Value,
    /// The line of the key.
    pub line: usize,
}

impl Entry {
    fn of(
        key: &Spanned<Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        line: impl Fn(usize) -> usize,
    ) -> Result<Entry, String> {
        let name = key.get_ref();
        Ok(Entry {
            key: name.replace('-', "_"),
            value: json(value.get_ref()).map_err(|what| format!("{name}: {what}"))?,
            line: line(key.span().start),
        })
    }
}

/// A table of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(Vec<Entry>);

impl Table {
    /// The entry of this key.
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    /// Whether it has no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.key.as_str())
    }

    fn take(&mut self, key: &str) -> Option<Entry> {
        let at = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.remove(at))
    }
}

/// A model of the file.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name in the file.
    pub name: String,
    /// Its other names.
    pub aliases: Vec<String>,
    /// The names of the models that are asked where its server fails.
    fallbacks: Vec<String>,
    /// The line of its table.
    line: usize,
    asked: Option<String>,
    pub(crate) options: Table,
}

impl Model {
    /// What its server calls it.
    pub fn asked(&self) -> &str {
        self.asked.as_deref().unwrap_or(&self.name)
    }

    /// Whether this is one of its names.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// An agent of the file: options by a name.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    /// Its name.
    pub name: String,
    /// The line of its table.
    line: usize,
    pub options: Table,
}

/// Whether this may be the name of an agent, which is typed as one word, `@NAME`.
pub fn is_agent_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !name.is_empty() && name.chars().all(is_part)
}

/// The configuration file.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// Its path, as messages show it.
    path: PathBuf,
    /// The keys outside all tables.
    pub(crate) top: Table,
    sections: Vec<(&'static str, Table)>,
    /// The models, in the order of the file.
    pub models: Vec<Model>,
    /// The agents, in the order of the file.
    pub(crate) agents: Vec<Agent>,
}

impl ConfigFile {
    /// Where the file is: `$XDG_CONFIG_HOME/toolpipe/config.toml`, else
    /// `~/.config/toolpipe/config.toml`. `None` where neither variable holds an absolute path.
    pub fn usual_path() -> Option<PathBuf> {
        let absolute = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let folder =
            absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
        Some(folder.join("toolpipe/config.toml"))
    }

    /// Reads the file at `path`. Returns `None` if no such file exists.
    ///
    /// # Errors
    /// One line for a file that others can write or that cannot be read, and for the first mistake
    /// in it.
    pub fn read(path: &Path) -> Result<Option<ConfigFile>> {
        let name = path.display();
        let meta = match path.metadata() {
            // `/dev/null` is a folder without files for whoever wants no configuration.
            Err(e)
                if matches!(
                    e.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            meta => meta.with_context(|| format!("{name}: cannot be read"))?,
        };
        if !meta.is_file() {
            bail!("{name}: not a file; remove it, or write the configuration there");
        }
        if let Some(store::Distrust { why, remedy }) = store::distrust(path)? {
            bail!("{name}: {why}, and it decides where keys are sent; {remedy}");
        }
        let mut text = String::new();
        let file = std::fs::File::open(path).with_context(|| format!("{name}: cannot be read"))?;
        file.take(LONGEST + 1)
            .read_to_string(&mut text)
            .map_err(|e| anyhow!("{name}: cannot be read: {e}"))?;
        if text.len() as u64 > LONGEST {
            bail!("{name}: longer than {LONGEST} bytes, shorten it");
        }
        ConfigFile::of_text(path, &text).map(Some)
    }

    /// The file of this text.
    ///
    /// # Errors
    /// The first mistake, with its line.
    fn of_text(path: &Path, text: &str) -> Result<ConfigFile> {
        let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        let fault = |at: usize, what: &str| anyhow!("{}:{}: {what}", path.display(), line(at));
        let root = DeTable::parse(text).map_err(|e| {
            let what = e.message().replace('\n', ", ");
            fault(
                e.span().map_or(0, |span| span.start),
                &format!("not TOML: {what}"),
            )
        })?;
        let table = |table: &DeTable<'_>| {
            let mut entries = vec![];
            for (key, value) in table {
                entries.push(
                    Entry::of(key, value, line).map_err(|what| fault(value.span().start, &what))?,
                );
            }
            anyhow::Ok(Table(entries))
        };
        let mut file = ConfigFile {
            path: path.to_owned(),
            top: Table::default(),
            sections: vec![],
            models: vec![],
            agents: vec![],
        };
        for (key, value) in root.get_ref() {
            let name = key.get_ref().as_ref();
            match value.get_ref() {
                DeValue::Table(tables) if [MODELS, AGENTS].contains(&name) => {
                    for (key, value) in tables {
                        let kind = name;
                        let name = key.get_ref().as_ref();
                        let at = key.span().start;
                        let DeValue::Table(options) = value.get_ref() else {
                            return Err(fault(
                                at,
                                &format!(
                                    "{kind}.{name} is not a table; write [{kind}.{name}] above \
                                     its keys"
                                ),
                            ));
                        };
                        match kind {
                            MODELS => file.add_model(name, line(at), table(options)?)?,
                            _ => file.add_agent(name, line(at), table(options)?)?,
                        }
                    }
                }
                DeValue::Table(options) => {
                    let Some(section) = SECTIONS.into_iter().find(|section| *section == name)
                    else {
                        let known = SECTIONS.into_iter().chain(["models.NAME", "agents.NAME"]);
                        return Err(fault(
                            key.span().start,
                            &format!("[{name}] is unknown{}", nearest(name, known)),
                        ));
                    };
                    file.sections.push((section, table(options)?));
                }
                _ => file.top.0.push(
                    Entry::of(key, value, line).map_err(|what| fault(value.span().start, &what))?,
                ),
            }
        }
        file.models.sort_by_key(|model| model.line);
        file.agents.sort_by_key(|agent| agent.line);
        file.check_models()?;
        Ok(file)
    }

    fn add_model(&mut self, name: &str, line: usize, mut options: Table) -> Result<()> {
        if name.is_empty() || name.chars().any(char::is_control) {
            bail!(
                "{}: a model needs a name that can be typed, such as [models.fast]",
                self.place(line)
            );
        }
        let mut names = |key: &str| match options.take(key) {
            None => Ok(vec![]),
            Some(entry) => texts(&entry.value).ok_or_else(|| {
                anyhow!(
                    "{}: {key}: not a list of names, such as {key} = [\"quick\"]",
                    self.place(entry.line)
                )
            }),
        };
        let [aliases, fallbacks] = OF_MODEL.map(&mut names);
        let (aliases, fallbacks) = (aliases?, fallbacks?);
        if let Some(pattern) = aliases.iter().find(|alias| alias.contains('*')) {
            bail!(
                "{}: aliases: {pattern:?} is a pattern, write each name that clients send",
                self.place(line)
            );
        }
        let asked = match options.take("model") {
            None => None,
            Some(Entry {
                value: Value::String(asked),
                ..
            }) if !asked.is_empty() => Some(asked),
            Some(entry) => bail!(
                "{}: model: not the name that the server has for the model",
                self.place(entry.line)
            ),
        };
        self.models.push(Model {
            name: name.to_owned(),
            aliases,
            fallbacks,
            line,
            asked,
            options,
        });
        Ok(())
    }

    fn add_agent(&mut self, name: &str, line: usize, options: Table) -> Result<()> {
        if !is_agent_name(name) {
            bail!(
                "{}: {name:?} is no name of an agent, which is typed as @NAME: use letters, \
                 digits, - and _",
                self.place(line)
            );
        }
        self.agents.push(Agent {
            name: name.to_owned(),
            line,
            options,
        });
        Ok(())
    }

    /// The agent of this name.
    ///
    /// # Errors
    /// There is none: the name that is most like it.
    pub(crate) fn agent(&self, name: &str) -> Result<&Agent> {
        let found = self.agents.iter().find(|agent| agent.name == name);
        found.ok_or_else(|| {
            let names = self.agents.iter().map(|agent| agent.name.as_str());
            let remedy = match most_similar(name, names, 0.7) {
                Some(best) => format!("did you mean @{best}?"),
                None => ConfigFile::without_agent(name),
            };
            anyhow!(
                "@{name}: {} has no such agent, {remedy}",
                self.path.display()
            )
        })
    }

    /// What to do where the agent `name` does not exist.
    pub(crate) fn without_agent(name: &str) -> String {
        format!("write [{AGENTS}.{name}] there, or put the question after --question")
    }

    /// Checks that each name is that of one model, and that no fallback leads back.
    fn check_models(&self) -> Result<()> {
        for model in &self.models {
            for name in std::iter::once(&model.name).chain(&model.aliases) {
                let others = self
                    .models
                    .iter()
                    .filter(|other| other.is_named(name))
                    .count();
                let own = model.aliases.iter().filter(|alias| *alias == name).count()
                    + usize::from(model.name == *name);
                if others > 1 || own > 1 {
                    bail!(
                        "{}: the name {name:?} is there twice, give each model names of its own",
                        self.place(model.line)
                    );
                }
            }
            let mut way = vec![model];
            self.follow(model, &mut way)?;
        }
        Ok(())
    }

    /// Follows the fallbacks behind the last model of `way`.
    fn follow<'f>(&'f self, first: &Model, way: &mut Vec<&'f Model>) -> Result<()> {
        let Some(last) = way.last().copied() else {
            return Ok(());
        };
        for name in &last.fallbacks {
            let Some(next) = self.model(name) else {
                let names = self.models.iter().map(|model| model.name.as_str());
                bail!(
                    "{}: fallbacks: no model has the name {name:?}{}",
                    self.place(last.line),
                    nearest(name, names)
                );
            };
            if way.iter().any(|model| model.name == next.name) {
                bail!(
                    "{}: fallbacks of {:?} lead back to {:?}, take one out",
                    self.place(last.line),
                    first.name,
                    next.name
                );
            }
            way.push(next);
            self.follow(first, way)?;
            way.pop();
        }
        Ok(())
    }

    /// The model of this name, which may be another name of it.
    pub fn model(&self, name: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.is_named(name))
    }

    /// The models that are asked where the server of `model` fails, in the order in which they are
    /// asked: its fallbacks, each followed by its own.
    pub fn fallbacks(&self, model: &Model) -> Vec<&Model> {
        let mut found: Vec<&Model> = vec![];
        let mut rest: Vec<&String> = model.fallbacks.iter().rev().collect();
        while let Some(next) = rest.pop().and_then(|name| self.model(name)) {
            if next.name != model.name && !found.iter().any(|known| known.name == next.name) {
                found.push(next);
                rest.extend(next.fallbacks.iter().rev());
            }
        }
        found
    }

    /// The table of a command.
    pub(crate) fn section(&self, name: &str) -> Option<&Table> {
        self.sections
            .iter()
            .find(|(section, _)| *section == name)
            .map(|(_, table)| table)
    }

    /// A line of the file, as messages name it.
    pub(crate) fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    /// The folder of the file, which relative paths in it begin at.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// The line of a model.
    pub(crate) fn place_of(&self, model: &Model) -> String {
        self.place(model.line)
    }

    /// The line of an agent.
    pub(crate) fn place_of_agent(&self, agent: &Agent) -> String {
        self.place(agent.line)
    }

    /// Checks that each key of `table`, whose name in messages is `name`, is one of `known`.
    ///
    /// # Errors
    /// The first that is not, with the known one that is most like it.
    pub(crate) fn check(&self, name: &str, table: &Table, known: &[String]) -> Result<()> {
        for Entry { key, line, .. } in &table.0 {
            if known.contains(key) {
                continue;
            }
            let place = self.place(*line);
            if KEYS.contains(&key.as_str()) {
                bail!(
                    "{place}: {key}: name the place of the key instead: api_key_env = \"NAME\" of \
                     a variable, api_key_file = \"FILE\" or api_key_command = \"COMMAND\""
                );
            }
            let of_model = OF_MODEL
                .into_iter()
                .filter(|_| name.starts_with("[models."));
            let near = nearest(key, known.iter().map(String::as_str).chain(of_model));
            bail!("{place}: {key} is unknown in {name}{near}");
        }
        Ok(())
    }
}

/// What to write in place of `name`, for the end of a message.
fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> String {
    match most_similar(name, known, 0.7) {
        Some(best) => format!(", did you mean {best:?}?"),
        None => ", see docs/config.md for the keys".to_owned(),
    }
}

/// Returns the name most similar to `name`, if its Jaro-Winkler similarity is above `least`.
pub(crate) fn most_similar<'k>(
    name: &str,
    known: impl Iterator<Item = &'k str>,
    least: f64,
) -> Option<&'k str> {
    let like = |known: &str| strsim::jaro_winkler(name, known);
    let best = known.max_by(|a, b| like(a).total_cmp(&like(b)))?;
    (like(best) > least).then_some(best)
}

/// A text, or a list of texts.
pub(crate) fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(list) => list
            .iter()
            .map(|text| text.as_str().map(str::to_owned))
            .collect(),
        _ => None,
    }
}

/// A value as JSON. A number keeps its digits.
fn json(value: &DeValue<'_>) -> Result<Value, &'static str> {
    Ok(match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_err(|_| "the number is too large")?
            .into(),
        DeValue::Float(number) => {
            serde_json::from_str(number.as_str()).map_err(|_| "not a number that JSON has")?
        }
        DeValue::Array(list) => {
            let list = list.iter().map(|value| json(value.get_ref()));
            Value::Array(list.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => {
            let members = table
                .iter()
                .map(|(key, value)| Ok((key.get_ref().to_string(), json(value.get_ref())?)));
            Value::Object(members.collect::<Result<Map<_, _>, &'static str>>()?)
        }
        DeValue::Datetime(_) => return Err("a date is not a value here, put it in quotes"),
    })
}
