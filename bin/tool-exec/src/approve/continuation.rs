//! The command that continues this run, made of the words that started it.

use crate::args::Args;
use tool::{Continuation, shell_word};

/// The options that carry answers of a person, which belong to one run.
const ANSWERS: [&str; 3] = ["--approve-call", "--deny-call", "--answer-call"];

/// The command that continues a run of these arguments after a person's answer.
pub fn continuation(args: &Args) -> Continuation {
    if let Some(command) = &args.permissions.continue_with {
        return Continuation {
            command: command.clone(),
            redirections: String::new(),
        };
    }
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut command = String::from("tool-exec");
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        if ANSWERS.contains(&word.as_str()) {
            rest.next();
        } else if !ANSWERS.iter().any(|option| {
            word.strip_prefix(option)
                .is_some_and(|rest| rest.starts_with('='))
        }) {
            command.push(' ');
            command.push_str(&shell_word(word));
        }
    }
    let input = if args.files.is_empty() {
        " </dev/null"
    } else {
        ""
    };
    if args.keeping.log.is_some() {
        return Continuation {
            command,
            redirections: input.to_owned(),
        };
    }
    // The user replaces LOG with the file that holds this output: tool-exec does not know its name.
    if args.keeping.resume.is_empty() {
        command.push_str(" --resume LOG");
    }
    Continuation {
        command,
        redirections: format!("{input} >>LOG"),
    }
}
