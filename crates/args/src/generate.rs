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
                man(command, &mut bytes)?;
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

    /// Prints the document for `command` on standard output; returns the status to end with. A
    /// reader that leaves is not an error.
    pub(crate) fn print(self, command: Command) -> Status {
        let name = command.get_name().to_owned();
        let printed = self
            .of(command)
            .and_then(|bytes| stdio::stdout().write_all(&bytes));
        match printed {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                stdio::message(&name, &Failure::Write(e).to_string());
                Status::Error
            }
            _ => Status::Done,
        }
    }
}

/// The man page. A command within the command gets a section of this page, which a page of its own
/// would separate from it.
fn man(command: Command, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    let parts: Vec<_> = command
        .get_subcommands()
        .filter(|part| !part.is_hide_set())
        .cloned()
        .collect();
    let name = command.get_name().to_owned();
    let page = clap_mangen::Man::new(command);
    if parts.is_empty() {
        return page.render(bytes);
    }
    page.render_title(bytes)?;
    page.render_name_section(bytes)?;
    page.render_synopsis_section(bytes)?;
    page.render_description_section(bytes)?;
    page.render_options_section(bytes)?;
    page.render_extra_section(bytes)?;
    for part in parts {
        let full = format!("{name} {}", part.get_name());
        writeln!(bytes, ".SH \"{full}\"")?;
        let part = part.bin_name(full).disable_help_flag(true);
        let mut section = Vec::new();
        let page = clap_mangen::Man::new(part);
        page.render_synopsis_section(&mut section)?;
        page.render_description_section(&mut section)?;
        page.render_options_section(&mut section)?;
        page.render_extra_section(&mut section)?;
        // A title within the section.
        bytes.extend(
            String::from_utf8_lossy(&section)
                .replace("\n.SH ", "\n.SS ")
                .trim_start_matches(".SH SYNOPSIS\n")
                .bytes(),
        );
    }
    page.render_version_section(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    #[test]
    fn each_document_names_every_option() {
        let command = || {
            Command::new("sample")
                .version("1")
                .arg(Arg::new("tools").long("tools").help("The tools"))
        };
        for document in Document::value_variants() {
            let text =
                String::from_utf8(document.of(command()).expect("a document")).expect("UTF-8");
            assert!(text.contains("tools"), "{document:?}: {text}");
        }
    }

    #[test]
    fn the_man_page_has_a_section_for_each_command_within_the_command() {
        let part = Command::new("part")
            .about("A part")
            .arg(Arg::new("deep").long("deep").help("In depth"));
        let command = Command::new("sample").version("1").subcommand(part);
        let text = String::from_utf8(Document::Man.of(command).expect("a page")).expect("UTF-8");
        let (_, section) = text.split_once(".SH \"sample part\"\n").expect("a section");
        assert!(
            section.contains("A part")
                && section.contains(".SS OPTIONS")
                && section.contains("deep"),
            "{text}"
        );
        assert_eq!(text.matches(".TH ").count(), 1, "{text}");
    }
}
