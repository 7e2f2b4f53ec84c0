//! `toolpipe`: all commands in one binary.
//!
//! A link to this binary is the command that the link is named after, and `toolpipe NAME …` is the
//! same as `NAME …`. All commands share code, so that one binary takes less room than one each.

use anyhow::Context;
use clap::Parser;
use clap::builder::PossibleValuesParser;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitCode;
use stdio::Status;

/// A command of this binary.
struct Tool {
    name: &'static str,
    about: &'static str,
    main: fn() -> ExitCode,
}

/// A line for each command, in the order of a pipeline. Its name is that of its package.
macro_rules! tools {
    ($($package:ident = $name:literal),* $(,)?) => {
        [$(Tool { name: $name, about: $package::ABOUT, main: $package::main }),*]
    };
}

static TOOLS: [Tool; 9] = tools![
    llm_stream = "llm-stream",
    tag_parse = "tag-parse",
    tc_detect = "tc-detect",
    tc_accumulate = "tc-accumulate",
    tool_exec = "tool-exec",
    tc_view = "tc-view",
    tc_eval = "tc-eval",
    tc_serve = "tc-serve",
    react = "react",
];

/// All commands of toolpipe in one binary.
///
/// A link to it with the name of a command is that command, and `toolpipe NAME …` is the same as
/// `NAME …`.
#[derive(Debug, Parser)]
#[command(name = "toolpipe", version, max_term_width = 100, after_help = EXAMPLES,
    override_usage = "toolpipe [COMMAND [ARGUMENT]...]")]
struct Args {
    /// The command to run, with its arguments; without one the commands are listed
    #[arg(value_parser = PossibleValuesParser::new(TOOLS.each_ref().map(|tool| tool.name)), hide_possible_values = true)]
    command: Option<String>,
    // So that the word before them is what is refused.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<std::ffi::OsString>,
    /// Make a link for each command in this folder, which is made if it is not there
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    link: Option<std::path::PathBuf>,
    /// Print the man page or the completions of a shell, and stop
    #[arg(long, value_name = "DOCUMENT", value_enum, exclusive = true)]
    generate: Option<args::Document>,
}

const EXAMPLES: &str = "\
Examples:
  toolpipe
  toolpipe llm-stream -m gpt-5-mini 'Why is the sky blue?' | toolpipe tc-view
  toolpipe --link ~/.local/bin";

fn main() -> ExitCode {
    args::program::has_all_commands(|name| Some(find(name)?.main));
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    if let Some(tool) = Path::new(&name).file_name().and_then(find) {
        return (tool.main)();
    }
    if let Some(tool) = words.next().as_deref().and_then(find) {
        return start(tool, words);
    }
    args::run(|args: Args| match args.link {
        Some(folder) => link(&folder),
        None => list(),
    })
}

fn find(name: &OsStr) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Begins this process again under the name of the command: every part of a command reads the
/// arguments of its process, which must be those of the command alone.
fn start(tool: &Tool, arguments: std::env::ArgsOs) -> ExitCode {
    let error = std::process::Command::new("/proc/self/exe")
        .arg0(tool.name)
        .args(arguments)
        .exec();
    stdio::message(
        "toolpipe",
        &format!(
            "/proc/self/exe: {error}; mount /proc, or call this program by a link named {}",
            tool.name
        ),
    );
    ExitCode::from(Status::Error.code())
}

/// Prints a line for each command.
fn list() -> anyhow::Result<Status> {
    let mut out = stdio::Output::new();
    for tool in &TOOLS {
        out.put(format!("{:<14} {}\n", tool.name, tool.about).as_bytes())?;
    }
    out.flush()?;
    Ok(Status::Done)
}

/// Makes a link for each command in `folder`. A link of that name is replaced, other files are not.
fn link(folder: &Path) -> anyhow::Result<Status> {
    let own = std::env::current_exe().context("the file of this program is not known")?;
    std::fs::create_dir_all(folder).with_context(|| {
        format!(
            "{}: cannot be made, name a folder of yours",
            folder.display()
        )
    })?;
    let here = folder.canonicalize()?;
    // A link within one folder still works when the folder is moved.
    let target = if own.parent() == Some(&here) {
        Path::new(own.file_name().unwrap_or_default())
    } else {
        &own
    };
    for tool in &TOOLS {
        let path = folder.join(tool.name);
        if path.is_symlink() {
            std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
        std::os::unix::fs::symlink(target, &path)
            .with_context(|| format!("{}: cannot be linked", path.display()))?;
    }
    Ok(Status::Done)
}
