//! Which value of an option counts: what was typed, else a variable of the environment, else the
//! file.

use crate::file::{ConfigFile, Model, Table, most_similar};
use crate::options::{KnownOption, Values};
use anyhow::{Result, anyhow};
use args::DefaultOption;
use clap::{ArgMatches, Command};

/// The variables of the options that say what to ask of a model begin so.
const ASK: &str = "LLM";

/// The Jaro-Winkler similarity above which one name may be a slip for another: `lrge` and `large`
/// have 0.94, `small` and `smart` 0.81. So may `qwen3-8b` be for `qwen3-14b`, with 0.93.
const SIMILAR: f64 = 0.9;

/// How a command uses the file.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its table in the file.
    pub section: &'static str,
    /// How the variables of its options begin.
    pub variables: &'static str,
    /// The options by which a model is asked, where the command asks itself.
    pub model: Option<Command>,
    /// Options that another command reads from the file and the environment, where this one is not
    /// given them.
    pub shared: Vec<&'static str>,
    /// Whether each request names its model, so that the file's default is not that of all.
    pub routes: bool,
}

/// Where a value is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was typed as this option.
    Typed(String),
    /// A variable of the environment.
    Variable(String),
    /// A line of the file.
    File(String),
    /// Nowhere: the option's own default.
    Usual,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Origin::Typed(from) | Origin::Variable(from) | Origin::File(from) => from,
            Origin::Usual => "default",
        })
    }
}

/// An option with its value.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub option: KnownOption,
    /// Its values; those of an option with a default are empty where the default counts.
    pub values: Values,
    pub origin: Origin,
    /// What the file adds to what was typed.
    pub added: Option<(Values, Origin)>,
}

impl Resolved {
    /// The words of what was not typed.
    fn defaults(&self) -> impl Iterator<Item = DefaultOption> {
        let found = match self.origin {
            Origin::Typed(_) | Origin::Usual => None,
            _ => Some((&self.values, &self.origin)),
        };
        let added = self.added.as_ref().map(|(values, origin)| (values, origin));
        added
            .into_iter()
            .chain(found)
            .flat_map(|(values, origin)| values.iter().map(|value| self.word(value, origin)))
    }

    fn word(&self, value: &Option<std::ffi::OsString>, origin: &Origin) -> DefaultOption {
        DefaultOption {
            option: format!("--{}", self.option.long),
            value: value.clone(),
            origin: origin.to_string(),
        }
    }

    /// The words of all its values.
    fn words(&self) -> impl Iterator<Item = DefaultOption> {
        let own = (self.origin != Origin::Usual).then_some((&self.values, &self.origin));
        let added = self.added.as_ref().map(|(values, origin)| (values, origin));
        added
            .into_iter()
            .chain(own)
            .flat_map(|(values, origin)| values.iter().map(|value| self.word(value, origin)))
    }
}

/// What a command finds in the file beside its options.
#[derive(Debug)]
pub struct Configured {
    spec: Spec,
    /// The options of `spec.model`.
    of_model: Vec<KnownOption>,
    /// What was typed, by the long name.
    typed: Vec<(String, Values)>,
    /// Whether recorded answers are played: then nothing but what was typed counts.
    is_off: bool,
    file: Option<ConfigFile>,
    model: Option<Model>,
}

impl Configured {
    /// Reads the file, and checks the keys that the command knows.
    pub(crate) fn new(spec: Spec, command: &Command, matches: &ArgMatches) -> Result<Configured> {
        let is_recorded = |arg: &clap::Arg| {
            arg.get_long() == Some("replay")
                && matches.value_source(arg.get_id().as_str()).is_some()
        };
        let is_off = command.get_arguments().any(is_recorded);
        let file = match ConfigFile::usual_path().filter(|_| !is_off) {
            Some(path) => ConfigFile::read(&path)?,
            None => None,
        };
        let typed = KnownOption::every(command)
            .filter_map(|option| Some((option.long.clone(), option.typed(matches)?)))
            .collect();
        let of_model = spec.model.iter().flat_map(KnownOption::all).collect();
        let mut configured = Configured {
            spec,
            of_model,
            typed,
            is_off,
            file,
            model: None,
        };
        configured.check(command)?;
        let name = configured.find_name(command)?;
        configured.model =
            name.and_then(|name| Some(configured.file.as_ref()?.model(&name)?.clone()));
        Ok(configured)
    }

    fn check(&self, command: &Command) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let keys = |options: &[KnownOption]| {
            options
                .iter()
                .flat_map(KnownOption::keys)
                .collect::<Vec<_>>()
        };
        if let Some(section) = file.section(self.spec.section) {
            let known: Vec<KnownOption> = KnownOption::all(command).collect();
            file.check(&format!("[{}]", self.spec.section), section, &keys(&known))?;
        }
        if self.spec.model.is_some() {
            let known = keys(&self.of_model);
            file.check("the file outside its tables", &file.top, &known)?;
            for model in &file.models {
                file.check(&format!("[models.{}]", model.name), &model.options, &known)?;
            }
        }
        Ok(())
    }

    /// The name of the model that is asked.
    fn find_name(&self, command: &Command) -> Result<Option<String>> {
        let Some(option) = KnownOption::all(command).find(|option| option.long == "model") else {
            return Ok(None);
        };
        let found = self.find(&option, None, false)?;
        Ok(found
            .values
            .first()
            .and_then(|name| name.as_ref()?.to_str().map(str::to_owned)))
    }

    fn typed(&self, long: &str) -> Option<&Values> {
        self.typed
            .iter()
            .find(|(name, _)| name == long)
            .map(|(_, values)| values)
    }

    /// Whether this option was typed.
    pub fn is_typed(&self, long: &str) -> bool {
        self.typed(long).is_some()
    }

    /// Whether another command reads the option from the variables and the file, if this one is not
    /// given it.
    fn is_shared(&self, option: &KnownOption) -> bool {
        match &self.spec.model {
            Some(_) => self.of_model.iter().any(|own| own.long == option.long),
            None => self.spec.shared.contains(&option.long.as_str()),
        }
    }

    /// The values of `option` where `model` is asked. For `another` model than the one that was
    /// typed, what was typed of the server does not count.
    fn find(&self, option: &KnownOption, model: Option<&Model>, another: bool) -> Result<Resolved> {
        let is_shared = self.is_shared(option);
        let typed = self
            .typed(&option.long)
            .filter(|_| !another || !(option.is_server() || option.long == "model"));
        let has_own_server = model.is_some() && option.is_server();
        let variable = |prefix: &str| {
            let name = format!("{prefix}_{}", option.key().to_uppercase());
            let text = std::env::var_os(&name).filter(|text| !text.is_empty())?;
            Some((option.in_variable(text)?, Origin::Variable(name)))
        };
        let in_environment = || {
            if has_own_server || self.is_off {
                return None;
            }
            variable(self.spec.variables).or_else(|| variable(ASK).filter(|_| is_shared))
        };
        let outside = match typed {
            Some(values) => Some((values.clone(), Origin::Typed(format!("--{}", option.long)))),
            None => in_environment(),
        };
        let in_file = match &outside {
            Some((_, Origin::Typed(_))) if option.is_merged() => {
                self.in_file(option, model, another)?
            }
            Some(_) => None,
            None => self.in_file(option, model, another)?,
        };
        let option = option.clone();
        Ok(match (outside, in_file) {
            (Some((values, origin)), added) => Resolved {
                option,
                values,
                origin,
                added,
            },
            (None, Some((values, origin))) => Resolved {
                option,
                values,
                origin,
                added: None,
            },
            (None, None) => Resolved {
                option,
                values: vec![],
                origin: Origin::Usual,
                added: None,
            },
        })
    }

    fn in_file(
        &self,
        option: &KnownOption,
        model: Option<&Model>,
        another: bool,
    ) -> Result<Option<(Values, Origin)>> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        // A key of the file goes to the server that the file names beside it, and to no other.
        if option.is_key() && self.has_other_server(option, model, another) {
            return Ok(None);
        }
        let is_asked = self.spec.model.is_some() && self.is_shared(option);
        let is_own = option.long == "model" && self.spec.routes;
        let server_of_model = option.is_server().then_some(()).and(model);
        let tables: [Option<(Option<&str>, &Table)>; 3] = [
            file.section(self.spec.section)
                .filter(|_| server_of_model.is_none())
                .map(|table| (Some(self.spec.section), table)),
            model
                .filter(|_| is_asked)
                .map(|model| (None, &model.options)),
            Some((Some(""), &file.top))
                .filter(|_| is_asked && !is_own && server_of_model.is_none()),
        ];
        let tables = tables
            .into_iter()
            .flatten()
            .filter(|(_, table)| !table.is_empty());
        for (section, table) in tables {
            let Some(entry) = option.keys().find_map(|key| table.get(&key)) else {
                continue;
            };
            let place = file.place(entry.line);
            let name = match (section, model) {
                (Some(""), _) | (None, None) => String::new(),
                (Some(section), _) => format!(" [{section}]"),
                (None, Some(model)) => format!(" [models.{}]", model.name),
            };
            // Where no option and no variable has it, react leaves this to the stage that reads it.
            let values = option
                .in_file(&entry.value, file.folder())
                .map_err(|what| anyhow!("{place}: {what}"))?;
            return Ok(Some((values, Origin::File(format!("{place}{name}")))));
        }
        Ok(None)
    }

    /// Whether the address, or another key, comes from outside the file.
    fn has_other_server(&self, option: &KnownOption, model: Option<&Model>, another: bool) -> bool {
        let is_set = |name: &str| {
            let in_environment = || {
                let name = format!("{ASK}_{}", name.replace('-', "_").to_uppercase());
                model.is_none() && std::env::var_os(name).is_some_and(|text| !text.is_empty())
            };
            (!another && self.is_typed(name)) || in_environment()
        };
        let keys = ["api-key-env", "api-key-file", "api-key-command"];
        let has_key = option.long != "header" && keys.into_iter().any(is_set);
        has_key || is_set("base-url") || is_set("api")
    }

    /// All options of `command` where `model` is asked.
    pub(crate) fn all(
        &self,
        command: &Command,
        model: Option<&Model>,
        another: bool,
    ) -> Result<Vec<Resolved>> {
        KnownOption::all(command)
            .map(|option| self.find(&option, model, another))
            .collect()
    }

    /// What was not typed of the options of the command.
    pub(crate) fn defaults(&self, command: &Command) -> Result<Vec<DefaultOption>> {
        let all = self.all(command, self.model.as_ref(), false)?;
        let all = all.iter().filter(|found| match &found.origin {
            // The stage that reads the variable has it, too.
            Origin::Variable(name) => self.spec.model.is_some() || !name.starts_with(ASK),
            _ => true,
        });
        Ok(all.flat_map(Resolved::defaults).collect())
    }

    /// The file, if there is one.
    pub(crate) fn file(&self) -> Option<&ConfigFile> {
        self.file.as_ref()
    }

    /// The name of the command.
    pub fn command(&self) -> &'static str {
        self.spec.section
    }

    /// The model of the file that is asked.
    pub fn model(&self) -> Option<&Model> {
        self.model.as_ref()
    }

    /// The model that the file names for a command without one.
    pub fn default_model(&self) -> Option<String> {
        let entry = self.file.as_ref()?.top.get("model")?;
        entry.value.as_str().map(str::to_owned)
    }

    /// The name or alias of a model of the file that is probably meant by `name`, which is not one.
    pub fn similar_model(&self, name: &str) -> Option<&str> {
        if self.model.is_some() {
            return None;
        }
        let names = self.models().iter().flat_map(|model| {
            let aliases = model.aliases.iter().map(String::as_str);
            std::iter::once(model.name.as_str()).chain(aliases)
        });
        most_similar(name, names, SIMILAR)
    }

    /// The models of the file.
    pub fn models(&self) -> &[Model] {
        self.file.as_ref().map_or(&[], |file| &file.models)
    }

    /// The models that are asked where the server of `model` fails.
    pub fn fallbacks(&self, model: &Model) -> Vec<&Model> {
        self.file
            .as_ref()
            .map_or(vec![], |file| file.fallbacks(model))
    }

    /// The options by which `model` is asked, as words of a command line.
    ///
    /// # Errors
    /// A value in the file that its option does not take.
    pub fn words_for(&self, model: &Model) -> Result<Vec<DefaultOption>> {
        let mut words = vec![];
        for option in self.of_model.iter().filter(|option| option.long != "model") {
            words.extend(self.find(option, Some(model), true)?.words());
        }
        Ok(words)
    }
}
