//! The configuration file: models by name, defaults of options, and where each value is from.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// A home with this configuration.
struct Home(Scratch);

impl Home {
    fn new(text: &str) -> Home {
        let folder = Scratch::new();
        std::fs::create_dir(folder.path("toolpipe")).unwrap();
        let home = Home(folder);
        std::fs::write(home.file(), text).unwrap();
        home
    }

    fn file(&self) -> PathBuf {
        self.0.path("toolpipe/config.toml")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env("XDG_CONFIG_HOME", self.0.path(""));
        command
    }

    /// The body of the request that these arguments make.
    fn body(&self, args: &[&str]) -> Value {
        let ran = run(self.command(&[&["--dry-run", "hi"], args].concat()));
        assert_eq!(ran.status, 0, "{args:?}: {}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

const TWO: &str = r#"
model = "fast"
retries = 0

[models.fast]
api = "ollama"
base_url = "http://127.0.0.1:9"
model = "qwen3:8b"
aliases = ["quick"]
temperature = 0
max_tokens = 100
params = { think = false }

[models.big]
api = "anthropic"
model = "claude-x"
stop = ["END"]
api_key_env = "BIG"
"#;

#[test]
fn a_name_of_the_file_is_a_server_with_its_parameters() {
    let home = Home::new(TWO);
    let fast = json!({"temperature": 0, "num_predict": 100});
    for args in [&[][..], &["-m", "fast"], &["-m", "quick"]] {
        let body = home.body(args);
        assert_eq!(
            (&body["model"], &body["options"], &body["think"]),
            (&json!("qwen3:8b"), &fast, &json!(false)),
            "{args:?}"
        );
    }
    let body = home.body(&["-m", "big"]);
    assert_eq!(
        (&body["model"], &body["stop_sequences"]),
        (&json!("claude-x"), &json!(["END"]))
    );
    // A name that the file does not have is the server's.
    assert_eq!(home.body(&["-m", "other"])["model"], "other");
}

#[test]
fn an_option_goes_before_a_variable_and_that_before_the_file() {
    let home = Home::new(TWO);
    let shown = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = home.command(&[args, &["--show-config"]].concat());
        command.envs(variables.iter().copied());
        let ran = run(command);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        ran.stdout.lines().map(words).collect::<Vec<String>>()
    };
    let file = home.file().display().to_string();
    for (args, variables, want) in [
        (&[][..], &[][..], format!("model fast {file}:2")),
        (
            &[],
            &[("LLM_MODEL", "big")],
            "model big LLM_MODEL".to_owned(),
        ),
        (
            &["-m", "quick"],
            &[("LLM_MODEL", "big")],
            "model quick --model".to_owned(),
        ),
        (&[], &[], format!("temperature 0 {file}:10 [models.fast]")),
        (
            &[],
            &[("LLM_TEMPERATURE", "0.5")],
            "temperature 0.5 LLM_TEMPERATURE".to_owned(),
        ),
        (
            &["--temperature", "1"],
            &[("LLM_TEMPERATURE", "0.5")],
            "temperature 1 --temperature".to_owned(),
        ),
        (&[], &[], format!("retries 0 {file}:3")),
        (&[], &[], "connect_timeout 10s default".to_owned()),
        (
            &[],
            &[],
            format!("models.fast qwen3:8b (also quick) {file}:5"),
        ),
        // The server of a model is its own.
        (
            &["-m", "fast"],
            &[("LLM_API", "gemini")],
            format!("api ollama {file}:6 [models.fast]"),
        ),
        (
            &["-m", "other"],
            &[("LLM_API", "gemini")],
            "api gemini LLM_API".to_owned(),
        ),
    ] {
        let lines = shown(args, variables);
        assert!(lines.contains(&want), "{want}: {lines:#?}");
    }
}

#[test]
fn a_setting_has_the_name_that_each_api_has_for_it() {
    let home = Home::new("");
    let typed = [
        "--temperature",
        "0",
        "--max-tokens",
        "5",
        "--stop",
        "A",
        "--stop",
        "B",
        "--top-p",
        "0.50",
    ];
    for (api, want) in [
        (
            "openai-chat",
            json!({"temperature": 0, "max_completion_tokens": 5, "stop": ["A", "B"], "top_p": 0.5}),
        ),
        (
            "anthropic",
            json!({"temperature": 0, "max_tokens": 5, "stop_sequences": ["A", "B"], "top_p": 0.5}),
        ),
        (
            "gemini",
            json!({"generationConfig": {"temperature": 0, "maxOutputTokens": 5, "stopSequences": ["A", "B"], "topP": 0.5}}),
        ),
        (
            "ollama",
            json!({"options": {"temperature": 0, "num_predict": 5, "stop": ["A", "B"], "top_p": 0.5}}),
        ),
        (
            "mistral",
            json!({"temperature": 0, "max_tokens": 5, "stop": ["A", "B"], "top_p": 0.5}),
        ),
        (
            "cohere",
            json!({"temperature": 0, "max_tokens": 5, "stop_sequences": ["A", "B"], "p": 0.5}),
        ),
    ] {
        let body = home.body(&[&["-m", "m", "-a", api], &typed[..]].concat());
        for (name, value) in want.as_object().unwrap() {
            // The digits stay as they were typed.
            let typed = value.to_string().replace("0.5", "0.50");
            let typed: Value = serde_json::from_str(&typed).unwrap();
            assert_eq!(body[name], typed, "{api} {name}: {body}");
        }
    }
    // Of other servers of chat completions many ignore the name that OpenAI has.
    let local = home.body(&[
        "-m",
        "m",
        "--base-url",
        "http://127.0.0.1:9",
        "--max-tokens",
        "5",
        "--seed",
        "7",
    ]);
    assert_eq!(
        (&local["max_tokens"], &local["seed"]),
        (&json!(5), &json!(7))
    );
    for (api, option, says) in [
        (
            "openai-responses",
            "--stop",
            "stop: openai-responses has no such parameter",
        ),
        (
            "anthropic",
            "--seed",
            "seed: anthropic has no such parameter",
        ),
    ] {
        let ran = run(home.command(&["--dry-run", "-m", "m", "-a", api, option, "1", "hi"]));
        assert!(ran.refusal().contains(says), "{}", ran.stderr);
    }
    // Members of one object come together, and the typed one goes before.
    let body = home.body(&[
        "-m",
        "m",
        "-a",
        "ollama",
        "--seed",
        "7",
        "--temperature",
        "0",
        "--param",
        "options={\"num_ctx\":9,\"seed\":8}",
    ]);
    assert_eq!(
        body["options"],
        json!({"temperature": 0, "seed": 8, "num_ctx": 9})
    );
}

#[test]
fn the_key_of_a_model_goes_to_no_other_server() {
    let one = Server::new(vec![answer("200 OK", SSE, chat(&["one"]))]);
    let other = Server::new(vec![
        answer("200 OK", SSE, chat(&["two"])),
        answer("200 OK", SSE, chat(&["three"])),
    ]);
    let keys = File::new("config-key", "from-file\n");
    let home = Home::new(&format!(
        "base_url = {:?}\napi_key_env = \"HERS\"\n\n[models.m]\nbase_url = {:?}\napi_key_file = {:?}\nheaders = [\"X-Key: $HERS\"]\n",
        one.url,
        one.url,
        keys.path()
    ));
    let asked = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("HERS", "from-variable");
        run(command)
    };
    assert_eq!(asked(&["-m", "m", "hi"]).status, 0);
    assert_eq!(
        asked(&["-m", "m", "--base-url", &other.url, "hi"]).status,
        0
    );
    assert_eq!(
        asked(&["-m", "x", "--base-url", &other.url, "hi"]).status,
        0
    );
    let heads = |server: &Server| {
        format!(
            "{:?}",
            server
                .asked()
                .iter()
                .map(|request| &request.headers)
                .collect::<Vec<_>>()
        )
        .to_lowercase()
    };
    let own = heads(&one);
    assert!(
        own.contains("bearer from-file") && own.contains("from-variable"),
        "{own}"
    );
    let others = heads(&other);
    assert!(!others.contains("from-"), "{others}");
}

#[test]
fn a_mistake_in_the_file_has_its_line_and_what_was_meant() {
    for (text, says) in [
        (
            "temprature = 0",
            ":1: temprature is unknown in the file outside its tables, did you mean \"temperature\"?",
        ),
        (
            "[models.a]\nbase-ulr = \"x\"",
            ":2: base_ulr is unknown in [models.a], did you mean \"base_url\"?",
        ),
        (
            "[llm-stream]\nsytem = \"x\"",
            ":2: sytem is unknown in [llm-stream], did you mean \"system\"?",
        ),
        (
            "\n[modells.a]",
            ":2: [modells] is unknown, did you mean \"models.NAME\"?",
        ),
        (
            "[models.a]\napi_key = \"sk-1\"",
            ":2: api_key: name the place of the key instead: api_key_env = \"NAME\"",
        ),
        (
            "[models.m]\nheaders = [\"Authorization: Bearer x\"]",
            ":2: header Authorization: name the variable",
        ),
        (
            "[models.m]\nbase_url = \"http://127.0.0.1:9/v1?api_key=abcdef\"",
            ":2: base_url: it holds a key",
        ),
        (
            "[models.m]\nbase_url = \"http://me:pw@127.0.0.1:9/v1\"",
            ":2: base_url: it holds a key",
        ),
        (
            "[models.m]\nparams = { user = \"x\", extra = { api_key = \"abcdef\" } }",
            ":2: param: it holds a key",
        ),
        (
            "[models.m]\nparams = [\"api_key=abcdef\"]",
            ":2: param: it holds a key",
        ),
        (
            "[models.m]\nheaders = [\"X-Title: sk-proj-0a1B2c3D4e5F6g7H8i9J0k\"]",
            ":2: header: it holds a key",
        ),
        (
            "[models.m]\nheaders = [\"X-Title: sk-proj-0a1B2c3D4e5F6g7H8i9J0k $HOME\"]",
            ":2: header: it holds a key",
        ),
        (
            "[models.m]\nmax_tokens = \"x\"",
            ":2 [models.m]: invalid value 'x' for '--max-tokens <N>'",
        ),
        (
            "[models.m]\ntemperature = [0]",
            ":2: temperature: not one value",
        ),
        (
            "[models.m]\nno_such = 1979-05-27",
            ":2: no_such: a date is not a value here",
        ),
        (
            "[models.a]\naliases = [\"b\"]\n[models.b]",
            "the name \"b\" is there twice",
        ),
        (
            "[models.a]\naliases = [\"claude-*\"]",
            ":1: aliases: \"claude-*\" is a pattern, write each name that clients send",
        ),
        (
            "[models.a]\naliases = [\"a\"]",
            ":1: the name \"a\" is there twice",
        ),
        (
            "[models.a]\nfallbacks = [\"fst\"]\n[models.fast]",
            ":1: fallbacks: no model has the name \"fst\", did you mean \"fast\"?",
        ),
        (
            "[models.a]\nfallbacks = [\"b\"]\n[models.b]\nfallbacks = [\"a\"]",
            "fallbacks of \"a\" lead back to \"a\"",
        ),
        ("models.a = 1", ":1: models.a is not a table"),
        ("a = ", ":1: not TOML"),
    ] {
        let home = Home::new(text);
        let ran = run(home.command(&["-m", "m", "--dry-run", "hi"]));
        let want = format!("llm-stream: {}", home.file().display());
        assert!(
            ran.refusal().starts_with(&want) && ran.stderr.contains(says),
            "{says}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_file_that_others_can_write_is_refused() {
    let home = Home::new(TWO);
    std::fs::set_permissions(home.file(), PermissionsExt::from_mode(0o666)).unwrap();
    let ran = run(home.command(&["--dry-run", "hi"]));
    assert!(
        ran.refusal().contains("it can be written by other users"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("chmod go-w"), "{}", ran.stderr);
    // A recorded answer needs no configuration.
    let body = File::new("config-body.sse", chat(&["hello"]));
    assert_eq!(
        run(home.command(&["--replay", body.path()])).text(),
        "hello"
    );
}

#[test]
fn paths_begin_at_the_folder_of_the_file() {
    let home = Home::new("[models.m]\nbase_url = \"http://127.0.0.1:9\"\napi_key_file = \"key\"\n");
    let ran = run(home.command(&["-m", "m", "hi"]));
    let key = home.file().with_file_name("key");
    assert!(
        ran.refusal()
            .contains(&format!("{}: the key cannot be read", key.display())),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_fallback_is_asked_where_the_server_fails_before_the_first_event() {
    let good = Server::new(vec![
        answer("200 OK", SSE, chat(&["rescued"])),
        answer("200 OK", SSE, chat(&["rescued"])),
    ]);
    let busy = Server::new(vec![answer("503 Busy", JSON, "{}")]);
    let home = |url: &str| {
        Home::new(&format!(
            "retries = 0\n[models.fast]\nbase_url = {url:?}\nfallbacks = [\"good\"]\n[models.good]\nbase_url = {:?}\nmodel = \"theirs\"\n",
            good.url
        ))
    };
    for url in [busy.url.as_str(), "http://127.0.0.1:9"] {
        let ran = run(home(url).command(&["-m", "fast", "--temperature", "0", "hi"]));
        assert_eq!((ran.status, ran.text().as_str()), (0, "rescued"), "{ran:?}");
        let note = ran.event("warning");
        assert_eq!(note["code"], "fallback", "{note}");
        let message = note["message"].as_str().unwrap();
        assert!(
            message.starts_with("fast: ") && message.ends_with("asking good instead"),
            "{message}"
        );
        assert!(ran.stderr.contains("asking good instead"), "{}", ran.stderr);
        assert_eq!(ran.types().matches("message").count(), 1, "{}", ran.types());
    }
    let asked = good.asked();
    assert_eq!(
        (
            asked.len(),
            &asked[0].body["model"],
            &asked[0].body["temperature"]
        ),
        (2, &json!("theirs"), &json!(0))
    );
    // What is wrong with the request is wrong everywhere.
    let refusing = Server::new(vec![answer("400 Bad", JSON, "{}")]);
    let ran = run(home(&refusing.url).command(&["-m", "fast", "hi"]));
    assert_eq!((ran.status, ran.text().as_str()), (2, ""), "{ran:?}");
    // An answer that has begun is not begun again.
    let whole = chat(&["begun"]);
    let cut = Server::new(vec![answer("200 OK", SSE, &whole[..first(&whole)])]);
    let ran = run(home(&cut.url).command(&["-m", "fast", "hi"]));
    assert_eq!(ran.text(), "begun", "{ran:?}");
}

#[test]
fn a_turn_has_its_cost_where_the_model_has_a_price() {
    let counted = turn(&["hi"]).tokens(1000, 400, 100).stream(Protocol::Chat);
    let answers = (0..3).map(|_| answer("200 OK", SSE, &counted)).collect();
    let server = Server::new(answers);
    let home = Home::new(&format!(
        "[models.m]\nbase_url = {:?}\nprice = {{ input = 0.25, output = 2, cached = 0.025 }}\n[models.free]\nbase_url = {:?}\n",
        server.url, server.url
    ));
    for (args, cost) in [
        (&["-m", "m"][..], json!(360)),
        (&["-m", "m", "--price", "1/1"], json!(1100)),
        (&["-m", "free"], Value::Null),
    ] {
        let ran = run(home.command(&[args, &["hi"]].concat()));
        assert_eq!(ran.event("session_stats")["cost_microusd"], cost, "{ran:?}");
    }
    let wrong = Home::new("[models.m]\nprice = { inputs = 1, output = 2 }");
    let ran = run(wrong.command(&["-m", "m", "--dry-run", "hi"]));
    assert!(
        ran.refusal().contains(":2: price: inputs is unknown"),
        "{}",
        ran.stderr
    );
}

/// Models whose names are those of a provider, with the URL of its requests and its key.
const KNOWN: [(&str, &str, &str); 7] = [
    (
        "claude-sonnet-4-5",
        "https://api.anthropic.com/v1/messages",
        "ANTHROPIC_API_KEY",
    ),
    (
        "gemini-2.5-flash",
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent",
        "GEMINI_API_KEY",
    ),
    (
        "gpt-5-mini",
        "https://api.openai.com/v1/chat/completions",
        "OPENAI_API_KEY",
    ),
    (
        "mistral-large-latest",
        "https://api.mistral.ai/v1/chat/completions",
        "MISTRAL_API_KEY",
    ),
    (
        "command-a-03-2025",
        "https://api.cohere.com/v2/chat",
        "COHERE_API_KEY",
    ),
    (
        "grok-4",
        "https://api.x.ai/v1/chat/completions",
        "XAI_API_KEY",
    ),
    (
        "deepseek-chat",
        "https://api.deepseek.com/v1/chat/completions",
        "DEEPSEEK_API_KEY",
    ),
];

#[test]
fn the_name_of_a_model_selects_the_server_of_its_provider() {
    let home = Home::new("");
    for (model, url, key) in KNOWN {
        let ran = run(home.command(&["--dry-run", "hi", "-m", model]));
        assert!(ran.stderr.contains(url), "{model}: {}", ran.stderr);
        let says_so = ran
            .stderr
            .contains(&format!("for {model}; choose another server"));
        assert_eq!(says_so, key != "OPENAI_API_KEY", "{}", ran.stderr);
        // With every other key, this one is missing.
        let mut command = home.command(&["hi", "-m", model]);
        for (_, _, other) in KNOWN {
            command.env(other, "sk-other-key-1");
        }
        command.env_remove(key);
        let ran = run(command);
        assert_eq!(ran.status, 2, "{}", ran.stderr);
        assert!(
            ran.stderr.contains(&format!("export {key}")),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn the_chosen_server_is_reported_until_the_first_answer() {
    let home = Home::new("");
    let log = "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}\n";
    let command = home.command(&["--dry-run", "hi", "-m", "grok-4"]);
    let ran = run_with(command, log);
    assert!(
        !ran.stderr.contains("choose another server"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_name_of_a_model_selects_no_server_where_an_option_does() {
    let (model, known, _) = KNOWN[0];
    let anthropic = "https://api.anthropic.com";
    for (text, args, variables, url) in [
        (
            "",
            &["--api", "ollama"][..],
            &[][..],
            "http://localhost:11434",
        ),
        ("", &["--base-url", "http://h:1/v1"], &[], "http://h:1/v1"),
        ("", &[], &[("LLM_API", "mistral")], "https://api.mistral.ai"),
        (
            "",
            &[],
            &[("LLM_BASE_URL", "http://h:2/v1")],
            "http://h:2/v1",
        ),
        ("base_url = \"http://h:3/v1\"", &[], &[], "http://h:3/v1"),
        // The key is that of a server which only the user knows.
        (
            "",
            &["--api-key-env", "MINE"],
            &[],
            "https://api.openai.com",
        ),
        ("api_key_env = \"MINE\"", &[], &[], "https://api.openai.com"),
        (
            "",
            &["--header", "X-Key: $MINE"],
            &[],
            "https://api.openai.com",
        ),
        // A model of the file without a server.
        (
            "[models.claude-sonnet-4-5]\ntemperature = 0",
            &[],
            &[],
            anthropic,
        ),
        (
            "[models.m]\nmodel = \"claude-sonnet-4-5\"",
            &["-m", "m"],
            &[],
            anthropic,
        ),
    ] {
        let home = Home::new(text);
        let model = if args.contains(&"-m") {
            &[][..]
        } else {
            &["-m", model]
        };
        let mut command = home.command(&[&["--dry-run", "hi"], args, model].concat());
        command
            .envs(variables.iter().copied())
            .env("MINE", "sk-mine-1");
        let ran = run(command);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains(url), "{text} {args:?}: {}", ran.stderr);
        assert_eq!(
            ran.stderr.contains(known),
            url == anthropic,
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_slip_in_the_name_of_a_model_is_refused() {
    let home = Home::new("[models.large]\nbase_url = \"http://h/v1\"\naliases = [\"grand\"]\n");
    for (name, meant) in [("lrge", "large"), ("gradn", "grand")] {
        let ran = run(home.command(&["--dry-run", "hi", "-m", name]));
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
        let says = format!(
            "--model {name}: the configuration file has no such model, did you mean {meant:?}?"
        );
        assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    }
    for args in [
        &["-m", "other"][..],
        &["-m", "lrge", "--base-url", "http://h/v1"],
        &["-m", "lrge", "--api", "openai"],
    ] {
        assert_eq!(home.body(args)["model"], args[1]);
    }
}

/// A server that answers one request with this.
fn lists(status: &str, body: &str) -> Server {
    Server::new(vec![answer(status, JSON, body)])
}

#[test]
fn the_names_of_the_file_are_listed_and_then_those_of_the_server() {
    let server = lists(
        "200 OK",
        "{\"data\":[{\"id\":\"b\\u001b[2J\"},{\"id\":\"a\"}]}",
    );
    let home = Home::new(&format!(
        "model = \"own\"\n[models.own]\nbase_url = \"{}\"\napi_key_env = \"OWN\"\nmodel = \"b\"\n\
         aliases = [\"quick\"]\n[models.big]\napi = \"anthropic\"\napi_key_env = \"BIG\"",
        server.url
    ));
    let ran = |args: &[&str]| {
        let mut command = home.command(args);
        let keys = ["OWN", "BIG", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"];
        command.envs(keys.map(|name| (name, format!("key-of-{name}"))));
        run(command)
    };
    let listed = ran(&["--models"]);
    let port = server.port;
    let want = format!(
        "own         b in the configuration file\n\
         quick       another name of own\n\
         big         big in the configuration file\n\
         b\\u{{1b}}[2J  on 127.0.0.1:{port}\n\
         a           on 127.0.0.1:{port}\n"
    );
    assert_eq!(
        (listed.status, listed.stdout),
        (0, want),
        "{}",
        listed.stderr
    );
    let asked = server.asked();
    let [request] = &asked[..] else {
        panic!("{} requests", asked.len());
    };
    assert_eq!((request.method(), request.path()), ("GET", "/v1/models"));
    assert_eq!(request.header("authorization"), Some("Bearer key-of-OWN"));
    // Another server gets no key of the file.
    let other = lists("200 OK", "[\"x\"]");
    ran(&["--models", "--base-url", &other.url]);
    let asked = other.asked();
    let [request] = &asked[..] else {
        panic!("{} requests", asked.len());
    };
    assert_ne!(request.header("authorization"), Some("Bearer key-of-OWN"));
}

#[test]
fn the_names_of_the_file_are_listed_if_the_server_gives_no_list() {
    for (status, body, says) in [
        (
            "401 Unauthorized",
            "{\"error\":{\"message\":\"no secret-1\"}}",
            "gives no list: ",
        ),
        ("404 Not Found", "", "gives no list: "),
        ("200 OK", "<html>", "the answer lists no model"),
    ] {
        let server = lists(status, body);
        let home = Home::new(&format!(
            "model = \"own\"\n[models.own]\nbase_url = \"{}\"\napi_key_env = \"OWN\"",
            server.url
        ));
        let mut command = home.command(&["--models"]);
        command.env("OWN", "secret-1");
        let ran = run(command);
        assert_eq!(
            (ran.status, &*ran.stdout),
            (2, "own  own in the configuration file\n"),
            "{status}: {}",
            ran.stderr
        );
        let is_line = ran.stderr.lines().count() == 1 && !ran.stderr.contains("secret-1");
        assert!(
            is_line && ran.stderr.contains(says),
            "{status}: {}",
            ran.stderr
        );
    }
    // Without its key, the command sends no request.
    let home =
        Home::new("model = \"big\"\n[models.big]\napi = \"anthropic\"\napi_key_env = \"BIG\"");
    let ran = run(home.command(&["--models"]));
    assert_eq!(
        (ran.status, &*ran.stdout),
        (2, "big  big in the configuration file\n")
    );
    assert!(ran.stderr.contains("BIG"), "{}", ran.stderr);
}
