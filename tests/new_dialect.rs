//! docs/new-dialect.md works as written: its file, its commands one after the other, and what they
//! print.

use std::process::Stdio;
use testkit::needs;

/// The blocks of the page, each with its word.
fn blocks(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(word) = lines.by_ref().find_map(|line| line.strip_prefix("```")) {
        blocks.push((
            word,
            lines.by_ref().take_while(|line| *line != "```").collect(),
        ));
    }
    blocks
}

#[test]
fn every_block_works_as_written() {
    if !needs::programs(&["jq", "sed"]) {
        return;
    }
    let folder = std::env::temp_dir().join(format!("new-dialect-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the files of the page");
    let page = std::fs::read_to_string(testkit::root().join("docs/new-dialect.md"))
        .expect("docs/new-dialect.md");
    let mut commands = 0;
    for (word, lines) in blocks(&page) {
        match word {
            "json" => {
                std::fs::write(folder.join("tokenizer_config.json"), lines.join("\n"))
                    .expect("a file can be written");
            }
            // The file has the name of its dialect.
            "toml" => {
                let name = lines.first().and_then(|line| line.split('"').nth(1));
                let file = folder.join(format!("{}.toml", name.expect("a name")));
                std::fs::write(file, lines.join("\n")).expect("a file can be written");
            }
            "console" => {
                // A typed line follows `$ ` and continues after `> `.
                let is_typed = |line: &&&str| line.starts_with("$ ") || line.starts_with("> ");
                let typed: Vec<&str> = lines
                    .iter()
                    .filter(is_typed)
                    .map(|line| &line[2..])
                    .collect();
                let printed: Vec<&str> = lines
                    .iter()
                    .filter(|line| !is_typed(line))
                    .copied()
                    .collect();
                let output = testkit::bash(&typed.join("\n"), &folder)
                    .stdin(Stdio::null())
                    .output()
                    .expect("bash runs");
                let out = String::from_utf8_lossy(&output.stdout);
                assert_eq!(
                    out.trim_end(),
                    printed.join("\n"),
                    "{typed:?}: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
                commands += 1;
            }
            _ => {}
        }
    }
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    assert_eq!(commands, 7, "blocks with commands");
}
