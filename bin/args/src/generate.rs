//! Man pages and shell completions, made from the same definitions as `--help`.

use clap::{Command, ValueEnum};
use clap_complete::Shell;
use std::io::Write;
use stdio::{Failure, Status};

/// What `--generate` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Document {
    /// The man page, in roff
    Man,
    /// Completions for bash
    Bash,
    /// Completions for zsh
    Zsh,
    /// Completions for fish
    Fish,
}

impl Document {
    /// The document for `command`, as bytes.
    ///
    /// # Errors
    /// Those of the generator.
    pub fn of(self, mut command: Command) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let shell = match self {
            Document::Man => {
                clap_mangen::Man::new(command).render(&mut bytes)?;
                return Ok(bytes);
            }
            Document::Bash => Shell::Bash,
            Document::Zsh => Shell::Zsh,
            Document::Fish => Shell::Fish,
        };
        let name = command.get_name().to_owned();
        clap_complete::generate(shell, &mut command, name, &mut bytes);
        Ok(bytes)
    }

    /// Prints the document for `command` on standard output; returns the status to end with. A reader that leaves is not an error.
    pub(crate) fn print(self, command: Command) -> Status {
        let name = command.get_name().to_owned();
        let printed = self.of(command).and_then(|bytes| {
            let mut out = std::io::stdout().lock();
            out.write_all(&bytes).and_then(|()| out.flush())
        });
        match printed {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                stdio::message(&name, &Failure::Write(e).to_string());
                Status::Error
            }
            _ => Status::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    #[test]
    fn each_document_names_every_option() {
        let command = || Command::new("sample").version("1").arg(Arg::new("tools").long("tools").help("The tools"));
        for document in Document::value_variants() {
            let text = String::from_utf8(document.of(command()).expect("a document")).expect("UTF-8");
            assert!(text.contains("tools"), "{document:?}: {text}");
        }
    }
}
