//! A program as a tool: its description, and how its arguments reach it.

use crate::notation::Header;
use crate::{Access, ProgramTools, trust};
use anyhow::{Context, anyhow, bail};
use group::StrictGroup;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// How much of a program is searched for its comment block, in bytes.
const HEAD: u64 = 64 << 10;

/// The option to which a program answers with its description.
const SCHEMA: &str = "--toolpipe-schema";

/// How long a program may take to print its description.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest description, in bytes.
const LONGEST: u64 = 1 << 20;

/// The first bytes of a file.
fn head(path: &Path, length: u64) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(length).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether a file holds a JSON list or object, by its first character.
pub(crate) fn holds_json(path: &Path) -> std::io::Result<bool> {
    let head = head(path, 512)?;
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&head);
    Ok(head
        .trim_ascii_start()
        .first()
        .is_some_and(|first| b"[{".contains(first)))
}

/// The entries of the tools of the program at `path`.
///
/// # Errors
/// A program that has no description, or a mistake in it.
pub(crate) fn tools(path: &Path, access: &Access<'_>) -> anyhow::Result<Vec<Value>> {
    let head = head(path, HEAD)?;
    let is_text = !head.contains(&0);
    let text = String::from_utf8_lossy(&head);
    let header = if is_text {
        Header::read(&text).map_err(|e| anyhow!("{e}"))?
    } else {
        Header::default()
    };
    let program = std::path::absolute(path)?;
    let program = program
        .to_str()
        .context("its path is not UTF-8, rename it")?;
    let option = match &header.schema {
        Some(option) => Some(option.as_str()),
        None => contains(path, SCHEMA.as_bytes())?.then_some(SCHEMA),
    };
    if let Some(option) = option {
        if let Some(why) = access.asks_nobody {
            bail!(
                "it would be asked for its description, which {why} does not confine; run: \
                 tool-exec --describe {} >tools.json, and give tools.json",
                path.display()
            );
        }
        if !access.trust {
            trust::file(path)?;
        }
        let printed = ask(program, option)
            .map_err(|e| anyhow!("{e}; run {} {option} to see why", path.display()))?;
        return described(&printed, path, program).with_context(|| format!("what {option} prints"));
    }
    let Some(description) = &header.description else {
        return Err(undescribed(path, &text, is_text));
    };
    let name = match &header.name {
        Some(name) => name.clone(),
        None => name_of(path)?,
    };
    Ok(vec![json!({
        "name": name,
        "description": description,
        "parameters": header.schema(),
        "exec": header.exec(program),
    })])
}

/// The name of the tool of a program that has no other: that of its file, without its ending.
fn name_of(path: &Path) -> anyhow::Result<String> {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
    let name = stem.filter(|stem| stem.bytes().all(is_plain));
    name.map(str::to_owned).context(
        "the file's name is not one for a tool (A-Z a-z 0-9 _ -), write # @meta name NAME in its \
         comment block",
    )
}

/// How much of a program is searched for its option, in bytes: a file may be endless.
const LONGEST_PROGRAM: u64 = 1 << 30;

/// Whether a file holds these bytes.
fn contains(path: &Path, wanted: &[u8]) -> std::io::Result<bool> {
    let mut file = File::open(path)?.take(LONGEST_PROGRAM);
    let finder = memchr::memmem::Finder::new(wanted);
    let (mut block, mut kept) = (vec![0; 1 << 16], 0);
    loop {
        let count = file.read(&mut block[kept..])?;
        let end = kept + count;
        if count == 0 || finder.find(&block[..end]).is_some() {
            return Ok(count > 0);
        }
        // They may begin at the end of this block.
        let begin = end.saturating_sub(wanted.len() - 1);
        block.copy_within(begin..end, 0);
        kept = end - begin;
    }
}

/// What a program prints for its option. It gets no argument of a model, and nothing of the
/// environment but what every command of a tool gets.
fn ask(program: &str, option: &str) -> Result<String, String> {
    let failed = |e: std::io::Error| format!("it cannot be started: {e}");
    let group = StrictGroup::start().map_err(failed)?;
    let kept = ["PATH", "LANG"].into_iter();
    let mut command = Command::new(program);
    command
        .arg(option)
        .env_clear()
        .envs(kept.filter_map(|name| Some((name, std::env::var_os(name)?))))
        .process_group(group.number())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    let output = child.stdout.take().ok_or("it has no output")?;
    let (send, printed) = channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.take(LONGEST + 1).read_to_end(&mut text);
        let ended = read.and_then(|_| child.wait());
        // Nobody listens where the time has passed.
        let _ = send.send(ended.map(|status| (text, status)));
    });
    let printed = printed.recv_timeout(PATIENCE);
    // Ends the program, and all that it has started, however that has left it.
    drop(group);
    match printed {
        Err(_) => Err(format!("it did not end within {PATIENCE:?}")),
        Ok(Err(e)) => Err(format!("it cannot be read: {e}")),
        Ok(Ok((text, _))) if text.len() as u64 > LONGEST => {
            Err("it prints more than 1 MiB".to_owned())
        }
        Ok(Ok((_, status))) if !status.success() => Err(format!("it ended with {status}")),
        Ok(Ok((text, _))) => {
            String::from_utf8(text).map_err(|_| "it prints what is not UTF-8".to_owned())
        }
    }
}

/// The entries of the tools that a program describes: one, or a list, of which the program gets the
/// name as its first argument. Arguments reach it on its standard input.
fn described(printed: &str, path: &Path, program: &str) -> anyhow::Result<Vec<Value>> {
    let value: Value = serde_json::from_str(printed)?;
    let (list, is_list) = match value {
        Value::Array(list) => (list, true),
        mut root => match root.get_mut("tools").map(Value::take) {
            Some(Value::Array(list)) => (list, true),
            _ => (vec![root], false),
        },
    };
    let entry = |mut entry: Value| {
        let Value::Object(members) = &mut entry else {
            bail!("not a tool, print {{\"name\":…,\"description\":…,\"parameters\":{{…}}}}");
        };
        let inner = members.get("function").and_then(|inner| inner.get("name"));
        let name = match inner.or(members.get("name")).and_then(Value::as_str) {
            Some(name) => name.to_owned(),
            None if is_list => bail!("a tool of the list has no name"),
            None => {
                let name = name_of(path)?;
                members.insert("name".to_owned(), name.clone().into());
                name
            }
        };
        let mut exec = match members.remove("exec") {
            None => Map::new(),
            Some(Value::Object(exec)) => exec,
            Some(_) => bail!("exec of {name:?} is not an object"),
        };
        if let Some(member) = ["command", "http"]
            .into_iter()
            .find(|name| exec.contains_key(*name))
        {
            bail!("exec.{member} of {name:?}: the tool is the program itself, leave it out");
        }
        let words = [program.to_owned()]
            .into_iter()
            .chain(is_list.then_some(name));
        exec.insert("command".to_owned(), words.collect::<Vec<_>>().into());
        members.insert("exec".to_owned(), Value::Object(exec));
        Ok(entry)
    };
    list.into_iter().map(entry).collect()
}

/// The error for a program that does not describe itself, after a block for it that a person can
/// paste.
fn undescribed(path: &Path, text: &str, is_text: bool) -> anyhow::Error {
    let name = path.display();
    if !is_text {
        return anyhow!(
            "no description; let it print one for {SCHEMA}: \
             {{\"name\":…,\"description\":…,\"parameters\":{{…}}}}, or write a script that starts \
             it"
        );
    }
    let first = text.lines().next().unwrap_or_default();
    let has_name = |names: &[&str]| names.iter().any(|name| first.contains(name));
    let comment = match () {
        () if has_name(&["node", "deno", "bun"]) => "//",
        () if has_name(&["lua"]) => "--",
        () => "#",
    };
    stdio::block(&format!(
        "{comment} @describe What the tool does, in words for the model.\n\
         {comment} @option --text! What this argument is\n\
         {comment} @meta class write\n\
         {comment} @meta timeout 30s\n"
    ));
    anyhow!(
        "no description; paste the lines above into {name}, after its first line, and edit them"
    )
}

/// The entries of the tools of all programs in a folder, by their names, and the programs.
///
/// # Errors
/// The first program that cannot be a tool, or a folder without any.
pub(crate) fn folder(path: &Path, access: &Access<'_>) -> anyhow::Result<Vec<ProgramTools>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let file = entry?.path();
        let is_hidden = file
            .file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && crate::is_program(&file) && !holds_json(&file)? {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        bail!("no program in this folder; name its files, or run chmod +x on those that are tools");
    }
    files
        .into_iter()
        .map(|file| {
            let entries = tools(&file, access).with_context(|| file.display().to_string())?;
            Ok((file, entries))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use testkit::{Scratch, runs, wait_until};

    #[test]
    fn nothing_that_a_program_starts_outlives_its_description() {
        let folder = Scratch::new();
        // Each leaves in its way: its group, its parent, and what its environment has.
        for (name, leave) in [
            ("session", "setsid"),
            ("clean", "env -i setsid"),
            ("orphan", "env -i setsid sh -c '\"$@\" &' -"),
        ] {
            let script = format!(
                "#!/bin/sh\ncd \"${{0%/*}}\"\n{leave} sh -c 'echo $$ >left.{name}; exec sleep 1000' </dev/null >/dev/null 2>&1 &\nuntil [ -s left.{name} ]; do :; done\necho '{{}}'\n"
            );
            let program = folder.write(name, &script);
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
            assert_eq!(ask(program.to_str().unwrap(), SCHEMA).unwrap(), "{}\n");
            let left = folder.read(&format!("left.{name}"));
            wait_until("the end of what it has started", || !runs(left.trim()));
        }
    }
}
