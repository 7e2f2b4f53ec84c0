//! The rows of `--each`: their form, their order, and the file that holds them.

use anyhow::{Context, anyhow, bail};
use event::{Raw, quoted};
use rustix::fs::OFlags;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use store::{AppendedFile, FileId};

/// The first bytes of each row.
const START: &str = "{\"input\":";

/// The first bytes of each row that waits for an earlier one.
const EARLY: &str = "{\"turn\":";

/// The members of a row that a schema must not have.
const OWN: [&str; 3] = ["input", "error", "pending"];

/// A row, and what its line has come to.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    text: String,
    kind: RowKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowKind {
    Answer,
    Error,
    Pending,
}

impl Row {
    /// Returns the row with an answer in plain text. `input` is JSON, here and in the others.
    pub(crate) fn answer(input: String, answer: &str) -> Row {
        Row::of(
            input,
            RowKind::Answer,
            &format!("\"answer\":{}", quoted(answer)),
        )
    }

    /// Returns the row with an answer that fits a schema. The members of an object are members of
    /// the row.
    pub(crate) fn fields(input: String, json: &str) -> Row {
        let answer = Raw::parse(json);
        let members = match &answer {
            Ok(answer) if answer.is_object() => {
                let members = answer.entries();
                let members = members.map(|(name, value)| {
                    format!("{}:{}", quoted(&name), event::safe_json(value.text()))
                });
                members.collect::<Vec<_>>().join(",")
            }
            _ => format!("\"answer\":{}", event::safe_json(json)),
        };
        // A line feed between the tokens of JSON is white space.
        Row::of(input, RowKind::Answer, &members.replace(['\n', '\r'], " "))
    }

    /// Returns the row of a line without an answer.
    pub(crate) fn error(input: String, code: &str, message: &str) -> Row {
        let error = format!(
            "\"error\":{{\"code\":{},\"message\":{}}}",
            quoted(code),
            quoted(message)
        );
        Row::of(input, RowKind::Error, &error)
    }

    /// Returns the row of a line with calls that need approval: each with its id, its tool and its
    /// arguments.
    pub(crate) fn pending(input: String, calls: &[[String; 3]]) -> Row {
        let calls = calls.iter().map(|[id, name, arguments]| {
            format!(
                "{{\"id\":{},\"name\":{},\"arguments\":{}}}",
                quoted(id),
                quoted(name),
                quoted(arguments)
            )
        });
        let calls = calls.collect::<Vec<_>>().join(",");
        Row::of(input, RowKind::Pending, &format!("\"pending\":[{calls}]"))
    }

    fn of(input: String, kind: RowKind, members: &str) -> Row {
        let comma = if members.is_empty() { "" } else { "," };
        Row {
            text: format!("{START}{input}{comma}{members}}}\n"),
            kind,
        }
    }

    /// Refuses a schema whose members would be taken for those of a row.
    ///
    /// # Errors
    /// If one of `names` is a name of a row's own member.
    pub(crate) fn check_names(names: Vec<String>) -> anyhow::Result<()> {
        match names.iter().find(|name| OWN.contains(&name.as_str())) {
            Some(name) => bail!(
                "the schema has a member {name:?}, which is one of each row: give it another name"
            ),
            None => Ok(()),
        }
    }

    /// Reads a row and the identity of its input. Returns `None` if the line is not a row.
    fn read(line: &str) -> Option<(u128, Row)> {
        let row = Raw::parse(line).ok()?;
        let input = row.get("input")?;
        let has = |name: &str| row.get(name).is_some();
        let kind = match (has("error"), has("pending")) {
            (true, _) => RowKind::Error,
            (_, true) => RowKind::Pending,
            _ => RowKind::Answer,
        };
        let text = format!("{}\n", row.text());
        Some((identity(input), Row { text, kind }))
    }
}

/// Returns what identifies an input: its value, however it is spelt.
fn identity(input: Raw<'_>) -> u128 {
    fn write(value: Raw<'_>, into: &mut String) {
        if let Some(text) = value.str() {
            into.push_str(&quoted(&text));
        } else if value.is_object() {
            into.push('{');
            for (name, value) in value.entries() {
                into.push_str(&quoted(&name));
                write(value, into);
            }
            into.push('}');
        } else if value.is_array() {
            into.push('[');
            for item in value.items() {
                write(item, into);
                into.push(',');
            }
            into.push(']');
        } else {
            into.push_str(value.text());
        }
    }
    let mut text = String::new();
    write(input, &mut text);
    let hash = |part: u8| {
        let mut hasher = DefaultHasher::new();
        (part, &text).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    hash(0) << 64 | hash(1)
}

/// Where rows go: standard output or a file, in the order of their lines or as they come.
pub(crate) struct Rows {
    output: stdio::Output,
    file: Option<RowsFile>,
    is_unordered: bool,
    /// How many lines have got a number.
    number: u64,
    /// The number of the last line before which every line has its row.
    written: u64,
    /// The rows that wait for an earlier one, by the numbers of their lines.
    waiting: BTreeMap<u64, Row>,
    /// How many rows this run has, those that wait too.
    pub count: u64,
    /// How many of them are errors.
    pub errors: u64,
    /// How many of them wait for an approval.
    pub pending: u64,
}

/// The file of `--rows`. Equal inputs are numbered in the order of the lines: nothing else in a row
/// distinguishes them.
struct RowsFile {
    rows: AppendedFile,
    /// How many rows the file had for each input when the run began.
    there: HashMap<u128, u32>,
    /// How many lines of this run had each input.
    came: HashMap<u128, u32>,
    /// Which of its equal inputs a line has, by the numbers of the lines without a row.
    turns: HashMap<u64, u32>,
    early: EarlyRows,
}

/// The rows that wait for an earlier one, in a file beside that of the rows, so that no line is
/// asked about again after its answer, even if the run is killed.
struct EarlyRows {
    path: PathBuf,
    file: Option<AppendedFile>,
    /// The rows that a killed run has left, by their inputs and which of the equal inputs.
    left: HashMap<(u128, u32), Row>,
}

impl Rows {
    /// Opens the file of `--rows`, mends its last line, and reads which rows it has; without one
    /// the rows go to standard output.
    ///
    /// # Errors
    /// If the file cannot be used, does not contain rows, or is in use by another run.
    pub(crate) fn open(file: Option<&Path>, is_unordered: bool) -> anyhow::Result<Rows> {
        Ok(Rows {
            output: stdio::Output::new(),
            file: file.map(RowsFile::open).transpose()?,
            is_unordered,
            number: 0,
            written: 0,
            waiting: BTreeMap::new(),
            count: 0,
            errors: 0,
            pending: 0,
        })
    }

    /// Returns the number of a new line; `None` if the file has its row, or an earlier run has got
    /// it.
    ///
    /// # Errors
    /// As [`Rows::put`].
    pub(crate) fn begin(&mut self, input: &str) -> anyhow::Result<Option<u64>> {
        let Some(file) = &mut self.file else {
            self.number += 1;
            return Ok(Some(self.number));
        };
        let identity = identity(Raw::parse(input)?);
        let turn = file.came.entry(identity).or_default();
        *turn += 1;
        let turn = *turn;
        if file
            .there
            .get(&identity)
            .is_some_and(|there| turn <= *there)
        {
            return Ok(None);
        }
        self.number += 1;
        file.turns.insert(self.number, turn);
        match file.early.left.remove(&(identity, turn)) {
            Some(row) => {
                self.put(self.number, row)?;
                Ok(None)
            }
            None => Ok(Some(self.number)),
        }
    }

    /// Returns how many lines have a number, and an earlier line without a row or none of their
    /// own.
    pub(crate) fn ahead(&self) -> u64 {
        self.number - self.written
    }

    /// Writes the row of a line, once all earlier lines have theirs.
    ///
    /// # Errors
    /// If the row cannot be written.
    pub(crate) fn put(&mut self, number: u64, row: Row) -> anyhow::Result<()> {
        self.count += 1;
        match row.kind {
            RowKind::Answer => {}
            RowKind::Error => self.errors += 1,
            RowKind::Pending => self.pending += 1,
        }
        if self.is_unordered {
            self.written += 1;
            return self.write(number, &row);
        }
        if number != self.written + 1 {
            if let Some(file) = &mut self.file {
                let turn = file.turns.get(&number).copied().unwrap_or(1);
                file.early.append(turn, &row)?;
            }
            self.waiting.insert(number, row);
            return Ok(());
        }
        self.written = number;
        self.write(number, &row)?;
        while let Some(row) = self.waiting.remove(&(self.written + 1)) {
            self.written += 1;
            self.write(self.written, &row)?;
        }
        if let (Some(file), true) = (&mut self.file, self.waiting.is_empty()) {
            file.early.clear()?;
        }
        Ok(())
    }

    fn write(&mut self, number: u64, row: &Row) -> anyhow::Result<()> {
        match &mut self.file {
            Some(file) => {
                file.turns.remove(&number);
                append(&mut file.rows, &row.text)
            }
            None => {
                self.output.put(row.text.as_bytes())?;
                Ok(self.output.flush()?)
            }
        }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        if let Some(file) = &self.file
            && self.waiting.is_empty()
            && file.early.left.is_empty()
            && file.early.file.is_some()
        {
            // If that fails, the next run finds that its rows are all there.
            let _ = fs::remove_file(&file.early.path);
        }
    }
}

impl RowsFile {
    fn open(path: &Path) -> anyhow::Result<RowsFile> {
        let mut there: HashMap<u128, u32> = HashMap::new();
        let rows = open(path, &mut |line| {
            let Some((input, _)) = Row::read(line) else {
                return false;
            };
            *there.entry(input).or_default() += 1;
            true
        })?;
        let mut early_path = path.as_os_str().to_owned();
        early_path.push(".early");
        let mut early = EarlyRows {
            path: early_path.into(),
            file: None,
            left: HashMap::new(),
        };
        if early.path.exists() {
            let left = &mut early.left;
            early.file = Some(open(&early.path, &mut |line| {
                let Some((turn, (input, row))) = EarlyRows::read(line) else {
                    return false;
                };
                // A row that was moved before the run was killed is in both files.
                if there.get(&input).is_none_or(|there| turn > *there) {
                    left.insert((input, turn), row);
                }
                true
            })?);
        }
        Ok(RowsFile {
            rows,
            there,
            came: HashMap::new(),
            turns: HashMap::new(),
            early,
        })
    }
}

impl EarlyRows {
    fn read(line: &str) -> Option<(u32, (u128, Row))> {
        let line = Raw::parse(line).ok()?;
        let turn = u32::try_from(line.get("turn")?.i64()?).ok()?;
        Some((turn, Row::read(line.get("row")?.text())?))
    }

    fn append(&mut self, turn: u32, row: &Row) -> anyhow::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(&self.path, &mut |_| false)?),
        };
        let row = row.text.trim_end();
        append(file, &format!("{{\"turn\":{turn},\"row\":{row}}}\n"))
    }

    /// Empties the file, since its rows are in the other one. Those of a killed run stay until
    /// their lines come.
    fn clear(&mut self) -> anyhow::Result<()> {
        if let (Some(file), true) = (&self.file, self.left.is_empty()) {
            let emptied = file.file.set_len(0);
            emptied.with_context(|| self.path.display().to_string())?;
        }
        Ok(())
    }
}

fn append(file: &mut AppendedFile, line: &str) -> anyhow::Result<()> {
    let appended = file.append([line.as_bytes()].into_iter());
    appended.map_err(|failed| anyhow!("{}: a row cannot be written: {}", file.name, failed.error))
}

/// Opens a file of lines for appending, and locks it. Calls `take` with each line, which returns
/// false if the line is not one that this file has. A last line that a killed run has cut is
/// removed, since its row was not written.
fn open(path: &Path, take: &mut dyn FnMut(&str) -> bool) -> anyhow::Result<AppendedFile> {
    let name = path.display().to_string();
    let cannot = || format!("{name}: the rows cannot be kept there");
    let mut open = OpenOptions::new();
    let open = open.read(true).append(true).create(true).mode(0o600);
    // Do not wait for the other end of a pipe.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = open.custom_flags(flags).open(path).with_context(cannot)?;
    let Some(id) = FileId::of(&file) else {
        bail!("{name}: not an ordinary file, name another one with --rows");
    };
    if !store::lock(&file).with_context(cannot)? {
        bail!("another react works on {name}, wait until it has ended");
    }
    let mut reader = BufReader::new(file.try_clone().with_context(cannot)?);
    let (mut line, mut number, mut whole) = (Vec::new(), 0_u64, 0_u64);
    while reader.read_until(b'\n', &mut line).with_context(cannot)? > 0 {
        number += 1;
        let text = std::str::from_utf8(&line).unwrap_or_default();
        let is_taken = text.trim().is_empty() || take(text.trim_end());
        if !line.ends_with(b"\n") {
            let begins = |start: &str| line.iter().zip(start.as_bytes()).all(|(a, b)| a == b);
            let is_cut = begins(START) || begins(EARLY);
            let mut file = &file;
            match (is_taken, is_cut) {
                (true, _) => file.write_all(b"\n").with_context(cannot)?,
                (false, true) => file.set_len(whole).with_context(cannot)?,
                (false, false) => bail!(not_rows(&name, number)),
            }
        } else if !is_taken {
            bail!(not_rows(&name, number));
        }
        whole += line.len() as u64;
        line.clear();
    }
    Ok(AppendedFile {
        file,
        name,
        is_stdout: false,
        id,
    })
}

fn not_rows(name: &str, number: u64) -> String {
    format!("{name}, line {number}: not a row with an \"input\", name another file with --rows")
}
