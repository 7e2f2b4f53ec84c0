//! Which value of an option counts: what was typed, else that of the agent that was typed, else a
//! variable of the environment, else the file.

use crate::file::{Agent, ConfigFile, KEYS, Model, Table, most_similar};
use crate::options::{KnownOption, Values};
use anyhow::{Result, anyhow, bail};
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
    /// The name of the agent that was typed, where the command has agents.
    pub agent: Option<fn(&ArgMatches) -> Option<String>>,
}

/// Where a value is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was typed as this option.
    Typed(String),
    /// A line of the agent that was typed.
    Agent(String),
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
            Origin::Typed(from)
            | Origin::Agent(from)
            | Origin::Variable(from)
            | Origin::File(from) => from,
            Origin::Usual => "default",
        })
    }
}

impl Origin {
    /// Its place among the words of a command line, the last of which counts.
    fn rank(&self) -> u8 {
        match self {
            Origin::Usual => 0,
            Origin::File(_) => 1,
            Origin::Variable(_) => 2,
            Origin::Agent(_) => 3,
            Origin::Typed(_) => 4,
        }
    }
}

/// An option with its value.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub option: KnownOption,
    /// Its values; those of an option with a default are empty where the default counts.
    pub values: Values,
    pub origin: Origin,
    /// What the file, and then the agent, add to what was typed.
    pub added: Vec<(Values, Origin)>,
}

impl Resolved {
    /// Its values by their origin, those that count last.
    fn sources(&self) -> impl Iterator<Item = (&Values, &Origin)> {
        let own = (self.origin != Origin::Usual).then_some((&self.values, &self.origin));
        let added = self.added.iter().map(|(values, origin)| (values, origin));
        added.chain(own)
    }

    /// The words of these of its values.
    fn words(&self, values: &Values, origin: &Origin) -> impl Iterator<Item = DefaultOption> {
        values.iter().map(|value| DefaultOption {
            option: format!("--{}", self.option.long),
            value: value.clone(),
            origin: origin.to_string(),
        })
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
    /// The agent that was typed.
    agent: Option<Agent>,
    /// The long names of the options that it has.
    of_agent: Vec<String>,
}

impl Configured {
    /// Reads the file, and checks the keys that the command knows.
    pub(crate) fn new(spec: Spec, command: &Command, matches: &ArgMatches) -> Result<Configured> {
        let is_recorded = |arg: &clap::Arg| {
            arg.get_long() == Some("replay")
                && matches.value_source(arg.get_id().as_str()).is_some()
        };
        let is_off = command.get_arguments().any(is_recorded);
        let agent = spec.agent.and_then(|agent| agent(matches));
        let path = ConfigFile::usual_path().filter(|_| !is_off || agent.is_some());
        let file = match &path {
            Some(path) => ConfigFile::read(path)?,
            None => None,
        };
        let agent = match (agent, &file) {
            (None, _) => None,
            (Some(name), Some(file)) => Some(file.agent(&name)?.clone()),
            (Some(name), None) => {
                let path = path.unwrap_or_else(|| "~/.config/toolpipe/config.toml".into());
                let remedy = ConfigFile::without_agent(&name);
                bail!("@{name}: {} does not exist, {remedy}", path.display());
            }
        };
        let of_agent = agent.iter().flat_map(|agent| {
            let is_there =
                |option: &KnownOption| option.keys().any(|key| agent.options.get(&key).is_some());
            KnownOption::all(command)
                .filter(is_there)
                .map(|option| option.long)
        });
        let of_agent = of_agent.collect();
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
            agent,
            of_agent,
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
        if self.spec.agent.is_some() {
            let (of_server, known): (Vec<_>, Vec<_>) =
                KnownOption::all(command).partition(KnownOption::is_server);
            let (of_server, known) = (keys(&of_server), keys(&known));
            for agent in &file.agents {
                let is_server =
                    |key: &&str| KEYS.contains(key) || of_server.iter().any(|own| own == key);
                if let Some(key) = agent.options.keys().find(is_server) {
                    bail!(
                        "{}: {key}: an agent has no server of its own, write it into a \
                         [models.NAME] and model = \"NAME\" here",
                        file.place_of_agent(agent)
                    );
                }
                file.check(&format!("[agents.{}]", agent.name), &agent.options, &known)?;
            }
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

    /// Whether this option was typed, or the agent that was typed has it.
    pub fn is_given(&self, long: &str) -> bool {
        self.is_typed(long) || self.of_agent.iter().any(|own| own == long)
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
        let in_agent = match &self.agent {
            Some(agent) => {
                self.in_table(option, &agent.options, &format!(" [agents.{}]", agent.name))?
            }
            None => None,
        };
        let in_agent = in_agent.map(|(values, place)| (values, Origin::Agent(place)));
        let (outside, mut added) = match typed {
            Some(values) => {
                let typed = (values.clone(), Origin::Typed(format!("--{}", option.long)));
                (Some(typed), in_agent.into_iter().collect())
            }
            None => (in_agent.or_else(in_environment), vec![]),
        };
        added.retain(|_| option.is_merged());
        let in_file = match &outside {
            Some((_, Origin::Typed(_) | Origin::Agent(_))) if option.is_merged() => {
                self.in_file(option, model, another)?
            }
            Some(_) => None,
            None => self.in_file(option, model, another)?,
        };
        let option = option.clone();
        let (values, origin) = match (outside, in_file) {
            (Some(outside), in_file) => {
                added.splice(0..0, in_file);
                outside
            }
            (None, Some(in_file)) => in_file,
            (None, None) => (vec![], Origin::Usual),
        };
        Ok(Resolved {
            option,
            values,
            origin,
            added,
        })
    }

    fn in_file(
        &self,
        option: &KnownOption,
        model: Option<&Model>,
        another: bool,
    ) -> Result<Option<(Values, Origin)>> {
        let Some(file) = self.file.as_ref().filter(|_| !self.is_off) else {
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
            let name = match (section, model) {
                (Some(""), _) | (None, None) => String::new(),
                (Some(section), _) => format!(" [{section}]"),
                (None, Some(model)) => format!(" [models.{}]", model.name),
            };
            if let Some((values, place)) = self.in_table(option, table, &name)? {
                return Ok(Some((values, Origin::File(place))));
            }
        }
        // Where no option and no variable has it, react leaves this to the stage that reads it.
        Ok(None)
    }

    /// The values in a table of the file, and their place, which ends with `name`.
    fn in_table(
        &self,
        option: &KnownOption,
        table: &Table,
        name: &str,
    ) -> Result<Option<(Values, String)>> {
        let entry = option.keys().find_map(|key| table.get(&key));
        let (Some(file), Some(entry)) = (&self.file, entry) else {
            return Ok(None);
        };
        let place = file.place(entry.line);
        let values = option
            .in_file(&entry.value, file.folder())
            .map_err(|what| anyhow!("{place}: {what}"))?;
        Ok(Some((values, format!("{place}{name}"))))
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
        let sources = all.iter().flat_map(|found| {
            found
                .sources()
                .map(move |(values, origin)| (found, values, origin))
        });
        let is_default = |origin: &Origin| match origin {
            Origin::Typed(_) => false,
            // The stage that reads the variable has it, too.
            Origin::Variable(name) => self.spec.model.is_some() || !name.starts_with(ASK),
            _ => true,
        };
        let mut sources: Vec<_> = sources
            .filter(|(_, _, origin)| is_default(origin))
            .collect();
        // Two options may set one thing, such as --plain and --format.
        sources.sort_by_key(|(_, _, origin)| origin.rank());
        let mut words = vec![];
        for (found, values, origin) in sources {
            words.extend(found.words(values, origin));
        }
        Ok(words)
    }

    /// The file, if there is one.
    pub(crate) fn file(&self) -> Option<&ConfigFile> {
        self.file.as_ref()
    }

    /// The agents of the file, where the command has agents.
    pub(crate) fn agents(&self) -> &[Agent] {
        let file = self.file.as_ref().filter(|_| self.spec.agent.is_some());
        file.map_or(&[], |file| &file.agents)
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
            let found = self.find(option, Some(model), true)?;
            for (values, origin) in found.sources() {
                words.extend(found.words(values, origin));
            }
        }
        Ok(words)
    }
}
