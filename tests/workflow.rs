//! The workflow of docs/ci/toolpipe.yml: its steps run as they are written, in a folder that holds
//! what docs/ci.md tells a user to make, and each gate in it fails when it should.

use std::fs;
use std::path::{Path, PathBuf};
use testkit::needs;

const QUESTION: &str = "We are four and would like to spend Saturday night in a hut by a lake. Can you reserve one, and what should we pack?";

/// The script of each step that has one, by the name of the step, and the variables of the
/// workflow.
struct Workflow {
    steps: Pairs,
    variables: Pairs,
}

/// Names with their texts.
type Pairs = Vec<(String, String)>;

impl Workflow {
    /// Reads the part of YAML that the workflow uses: maps by indentation, and scripts on one line
    /// or behind `|`.
    fn read(text: &str) -> Self {
        let indent = |line: &str| line.len() - line.trim_start().len();
        let mut steps = Vec::new();
        let mut variables = Vec::new();
        let mut name = String::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if line == "env:" {
                while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
                    if let Some((key, value)) = line
                        .trim()
                        .split_once(": ")
                        .filter(|(key, _)| !key.starts_with('#'))
                    {
                        variables.push((key.to_owned(), value.to_owned()));
                    }
                }
            }
            if let Some(text) = line.trim().strip_prefix("- name: ") {
                name = text.to_owned();
            }
            let Some(script) = line.trim().strip_prefix("run: ") else {
                continue;
            };
            let mut script = format!("{script}\n");
            if script == "|\n" {
                script.clear();
                let depth = indent(line) + 2;
                while let Some(line) =
                    lines.next_if(|line| line.is_empty() || indent(line) >= depth)
                {
                    script += line.get(depth..).unwrap_or_default();
                    script.push('\n');
                }
                script = script.trim_end().to_owned() + "\n";
            }
            steps.push((name.clone(), script));
        }
        Workflow { steps, variables }
    }

    fn step(&self, name: &str) -> &str {
        &self
            .steps
            .iter()
            .find(|(known, _)| known == name)
            .unwrap_or_else(|| panic!("no step '{name}'"))
            .1
    }
}

fn workflow() -> Workflow {
    workflow_in("docs/ci/toolpipe.yml")
}

fn workflow_in(file: &str) -> Workflow {
    Workflow::read(&fs::read_to_string(testkit::root().join(file)).expect("the workflow"))
}

/// A repository of a user, removed when the test ends.
struct Repository {
    folder: PathBuf,
    workflow: Workflow,
}

impl Repository {
    /// Makes the files that the workflow needs from the recordings of this project.
    fn new(test: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("toolpipe-workflow-{}-{test}", std::process::id()));
        let fixtures = testkit::root().join("fixtures");
        let repository = Repository {
            folder,
            workflow: workflow(),
        };
        for part in ["tests/agent", "tests/recordings/openai-responses"] {
            fs::create_dir_all(repository.path(part)).expect("a folder");
        }
        fs::write(
            repository.path("tests/agent/question.txt"),
            format!("{QUESTION}\n"),
        )
        .expect("a file");
        for (from, to) in [
            ("tapes/huts.tape", "trip.tape"),
            ("tools/tools.json", "tools.json"),
        ] {
            fs::copy(fixtures.join(from), repository.path("tests/agent").join(to))
                .expect("a fixture");
        }
        // Tools of the fixtures are scripts beside their list.
        for entry in fs::read_dir(fixtures.join("tools"))
            .expect("the tools")
            .flatten()
        {
            let to = repository.path("tests/agent").join(entry.file_name());
            if entry.path().is_file() {
                fs::copy(entry.path(), to).expect("a fixture");
            }
        }
        let index = fs::read_to_string(fixtures.join("index.ndjson")).expect("the index");
        let labels: Vec<String> = index
            .lines()
            .filter(|label| {
                ["llamacpp-text", "row-21-text", "refusal"]
                    .iter()
                    .any(|name| label.contains(&format!("\"openai-responses/{name}")))
            })
            .map(|label| label.replace("\"file\":\"streams/", "\"file\":\""))
            .collect();
        assert!(labels.len() >= 3, "{labels:?}");
        fs::write(
            repository.path("tests/recordings/index.ndjson"),
            labels.join("\n") + "\n",
        )
        .expect("a file");
        for entry in fs::read_dir(fixtures.join("streams/openai-responses"))
            .expect("bodies")
            .flatten()
        {
            fs::copy(
                entry.path(),
                repository
                    .path("tests/recordings/openai-responses")
                    .join(entry.file_name()),
            )
            .expect("a body");
        }
        // What a user accepts once.
        let accepted = repository.run(
            "react --tape \"$TAPE\" --model \"$MODEL\" --tools \"$TOOLS\" --log \"$ACCEPTED\" \"$(cat \"$QUESTION\")\" >/dev/null\n\
             tc-eval \"$CORPUS\" --checker auto --checker full --save-baseline \"$BASELINE\" >/dev/null",
        );
        assert_eq!(accepted, (0, String::new()));
        repository
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs a script as GitHub Actions does; returns its status and all that it prints.
    fn run(&self, script: &str) -> (i32, String) {
        let mut bash = testkit::bash(
            &format!(
                "set -e\nPATH=$PATH:{}/bin\n{script}",
                testkit::root().display()
            ),
            &self.folder,
        );
        for (key, value) in &self.workflow.variables {
            bash.env(key, value);
        }
        bash.env("GITHUB_STEP_SUMMARY", self.path("summary.md"))
            .env("RESERVATIONS", self.path("reservations"));
        let output = bash.output().expect("bash runs");
        let text = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat();
        (output.status.code().unwrap_or(-1), text)
    }

    fn step(&self, name: &str) -> (i32, String) {
        self.run(self.workflow.step(name))
    }

    /// Changes a file.
    fn change(&self, name: &str, change: impl FnOnce(String) -> String) {
        let text = fs::read_to_string(self.path(name)).expect("a file");
        let changed = change(text.clone());
        assert_ne!(text, changed, "{name}");
        fs::write(self.path(name), changed).expect("a file");
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_parser_of_yaml_reads_the_same_steps() {
    let Some(python) = needs::python("yaml") else {
        return;
    };
    for file in ["docs/ci/toolpipe.yml", "docs/ci/agent.yml"] {
        same_steps(&python, file);
    }
}

fn same_steps(python: &Path, file: &str) {
    let ours = workflow_in(file);
    let program = "import json, sys, yaml\n\
        w = yaml.safe_load(open(sys.argv[1]))\n\
        assert True in w, 'the key on'\n\
        [job] = w['jobs'].values()\n\
        assert job['runs-on'] and all('run' in s or 'uses' in s for s in job['steps'])\n\
        runs = [[s['name'], s['run'].rstrip()] for s in job['steps'] if 'run' in s]\n\
        print(json.dumps([runs, list(w['env'].items())]))";
    let output = std::process::Command::new(python)
        .args(["-c", program])
        .arg(file)
        .current_dir(testkit::root())
        .output()
        .expect("python3 runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let theirs: (Pairs, Pairs) =
        serde_json::from_slice(&output.stdout).expect("what the program prints");
    let trimmed: Vec<_> = ours
        .steps
        .iter()
        .map(|(name, run)| (name.clone(), run.trim_end().to_owned()))
        .collect();
    assert_eq!((trimmed, ours.variables), theirs);
}

#[test]
fn every_step_passes_on_what_was_accepted() {
    let repository = Repository::new("passes");
    for (name, _) in &repository.workflow.steps {
        if name == "Install toolpipe" {
            continue;
        }
        let (status, text) = repository.step(name);
        assert_eq!(status, 0, "{name}: {text}");
    }
    for (file, holds) in [
        ("summary.md", "| checker |"),
        ("report.xml", "<testsuites"),
        ("report.html", "<html"),
        ("run.ndjson", "\"tool_result\""),
    ] {
        let text = fs::read_to_string(repository.path(file)).expect(file);
        assert!(text.contains(holds), "{file}: {text}");
    }
}

#[test]
fn each_gate_fails_when_its_recording_changes() {
    let repository = Repository::new("fails");
    repository.change("tests/agent/trip.ndjson", |log| {
        log.replace("\"hut\":\"Lake hut\"", "\"hut\":\"Hill hut\"")
    });
    let (status, text) = repository.step("The agent does what it did");
    assert_eq!(status, 1, "{text}");
    assert!(
        text.contains(
            "turn 2, call 1: argument hut is \"Hill hut\" in A (tests/agent/trip.ndjson:"
        ),
        "{text}"
    );

    // A tool that answers something else leads to another request, which is not on the tape.
    repository.change("tests/agent/huts.tsv", |huts| huts.replace("Lake", "Pond"));
    let (status, text) = repository.step("The agent does what it did");
    assert!(status == 2 && text.contains("tape_miss"), "{status} {text}");

    // A provider that writes its calls in another way: what was a call is text.
    repository.change(
        "tests/recordings/openai-responses/row-21-text-before-calls.sse",
        |body| body.replace("function_call", "functional_call"),
    );
    let (status, text) = repository.step("The checker finds the calls");
    assert_eq!(status, 1, "{text}");
    assert!(
        text.contains("auto: recall is ") && text.contains("required >= 0.995"),
        "{text}"
    );
    let (status, text) = repository.step("Summary");
    let summary = fs::read_to_string(repository.path("summary.md")).expect("a summary");
    assert!(
        status == 0 && summary.contains("auto: recall is 0"),
        "{text} {summary}"
    );
}

/// A repository of a user that holds the log of a run and its tools alone.
fn repository_of_a_log(test: &str, workflow: Workflow) -> Repository {
    let folder =
        std::env::temp_dir().join(format!("toolpipe-workflow-{}-{test}", std::process::id()));
    let repository = Repository { folder, workflow };
    fs::create_dir_all(repository.path("tests/agent")).expect("a folder");
    for file in ["tools.json", "trip.ndjson"] {
        let from = testkit::root().join("fixtures/replay").join(file);
        fs::copy(from, repository.path("tests/agent").join(file)).expect("a fixture");
    }
    repository
}

#[test]
fn the_workflow_of_a_log_passes_and_fails_when_it_should() {
    if !needs::programs(&["jq"]) {
        return;
    }
    let repository = repository_of_a_log("log", workflow_in("docs/ci/agent.yml"));
    let [same, lost] = [
        "The agent does what it did",
        "A connection that is lost reserves nothing",
    ];
    for step in [same, lost] {
        let (status, text) = repository.step(step);
        assert_eq!(status, 0, "{step}: {text}");
    }
    repository.change("tests/agent/tools.json", |tools| {
        tools.replace("of a day", "of any day")
    });
    let (status, text) = repository.step(same);
    assert_eq!(status, 2, "{text}");
}

/// With pytest, and without it as the functions that they are.
#[test]
fn the_example_for_pytest_passes_and_fails_when_it_should() {
    let repository = repository_of_a_log("pytest", workflow_in("docs/ci/agent.yml"));
    let file = testkit::root().join("docs/ci/test_agent.py");
    fs::copy(file, repository.path("test_agent.py")).expect("a copy");
    // Without a framework they are functions.
    let all = "import test_agent as t; [f() for n, f in sorted(vars(t).items()) if n.startswith('test_')]";
    if needs::python("subprocess").is_some() {
        fails_when_it_should(&repository, &format!("python3 -B -c \"{all}\""));
    }
    if let Some(python) = needs::python("pytest") {
        let run = format!(
            "{} -m pytest -q -p no:cacheprovider test_agent.py",
            python.display()
        );
        fails_when_it_should(&repository, &run);
    }
}

fn fails_when_it_should(repository: &Repository, run: &str) {
    let tools = fs::read(repository.path("tests/agent/tools.json")).expect("the tools");
    let (status, text) = repository.run(run);
    assert_eq!(status, 0, "{text}");
    repository.change("tests/agent/tools.json", |tools| {
        tools.replace("of a day", "of any day")
    });
    let (status, text) = repository.run(run);
    assert!(
        status == 1 && text.contains("differs first at tools[1]"),
        "{status} {text}"
    );
    fs::write(repository.path("tests/agent/tools.json"), tools).expect("the tools");
}

#[test]
fn the_test_command_of_the_readme_is_the_one_that_is_checked() {
    let text = |file: &str| fs::read_to_string(testkit::root().join(file)).expect(file);
    let readme = text("README.md");
    let mut commands = readme.lines().filter(|line| line.starts_with("cargo test"));
    let typed = commands.next().expect("a command in README.md");
    let (command, _) = typed.split_once('#').unwrap_or((typed, ""));
    let steps = text(".ci/run");
    let is_step = steps.lines().any(|line| line.trim() == command.trim());
    assert!(is_step, ".ci/run has no line {command:?}");
}
