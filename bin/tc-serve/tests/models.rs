//! Models of the configuration: each request goes to the server of the model that it names, and to a
//! fallback where that server fails.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::service::{SSE, Server, Service, answer, provider};
use serde_json::{Value, json};
use std::process::Command;
use testkit::{Scratch, chat_chunk, chat_end};

/// A whole answer with this text, as a provider of chat completions writes it without its name of
/// the model.
fn text(text: &str) -> Vec<u8> {
    let delta = json!({"content": text}).to_string();
    let frames = chat_chunk(&delta, "null") + &chat_chunk("{}", "\"stop\"") + &chat_end();
    frames.replace(r#""model":"m","#, "").into_bytes()
}

/// A provider that answers each request with this text.
fn saying(words: &'static str) -> Server {
    provider(move |_, _, stream| answer(stream, "200 OK", SSE, &text(words), None))
}

/// A provider that refuses each request with this status.
fn failing(status: &'static str) -> Server {
    provider(move |_, _, stream| answer(stream, status, "retry-after: 0\r\n", b"{}", None))
}

/// The variable that names the folder of this configuration.
fn configured(folder: &Scratch, text: &str) -> String {
    std::fs::create_dir_all(folder.path("toolpipe")).unwrap();
    folder.write("toolpipe/config.toml", text);
    format!("XDG_CONFIG_HOME={}", folder.path("").display())
}

fn asking(model: &str) -> String {
    json!({"model": model, "messages": [{"role": "user", "content": "hi"}]}).to_string()
}

/// The text of an answer, and its model.
fn said(service: &Service, model: &str) -> (String, String) {
    let response = service.post("/v1/chat/completions", &asking(model));
    let body: Value = serde_json::from_str(&response.body).unwrap();
    let text = &body["choices"][0]["message"]["content"];
    let text = text.as_str().unwrap_or_else(|| panic!("{body}"));
    (text.to_owned(), body["model"].as_str().unwrap().to_owned())
}

fn listed(service: &Service) -> Vec<String> {
    let body: Value = serde_json::from_str(&service.reply("GET", "/v1/models", "").1).unwrap();
    let models = body["data"].as_array().unwrap_or_else(|| panic!("{body}"));
    let name = |model: &Value| model["id"].as_str().unwrap().to_owned();
    models.iter().map(name).collect()
}

/// The models that a provider was asked for.
fn models_asked(server: &Server) -> Vec<String> {
    let asked = server.asked();
    let model = |request: &testkit::Request| request.body["model"].as_str().map(str::to_owned);
    asked.iter().filter_map(model).collect()
}

#[test]
fn a_budget_of_reasoning_fits_into_the_most_tokens_of_a_model() {
    let server = saying("one");
    let folder = Scratch::new();
    let model = |name: &str, most: u32| {
        format!(
            "[models.{name}]\napi = \"anthropic\"\nbase_url = {:?}\nmodel = \"claude-haiku-4-5\"\nmax_tokens = {most}\n",
            server.url
        )
    };
    let variable = configured(&folder, &(model("few", 4000) + &model("fewest", 2000)));
    let service = Service::with_variables(&[&variable], &[]);
    let say = |model: &str, path: &str, more: Value| {
        let mut body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9000});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        service.post(path, &body.to_string());
        let asked = server.asked().pop().unwrap().body;
        (asked["max_tokens"].clone(), asked.get("thinking").cloned())
    };
    let effort = json!({"reasoning_effort": "high"});
    let own = json!({"thinking": {"type": "enabled", "budget_tokens": 8000}});
    let budget = Some(json!({"type": "enabled", "budget_tokens": 2976}));
    for (path, asked) in [("/v1/chat/completions", effort), ("/v1/messages", own)] {
        let few = say("few", path, asked.clone());
        assert_eq!(few, (json!(4000), budget.clone()), "{path}");
        assert_eq!(say("fewest", path, asked), (json!(2000), None), "{path}");
    }
}

#[test]
fn each_request_goes_to_the_server_of_its_model() {
    let (one, two) = (saying("one"), saying("two"));
    let folder = Scratch::new();
    let variable = configured(
        &folder,
        &format!(
            "model = \"fast\"\n[models.fast]\nbase_url = {:?}\nmodel = \"qwen\"\naliases = [\"quick\"]\nmax_tokens = 50\n[models.big]\nbase_url = {:?}\n",
            one.url, two.url
        ),
    );
    let service = Service::with_variables(&[&variable], &[]);
    assert_eq!(listed(&service), ["fast", "quick", "big"]);
    // A client of the server's own API reads the server's name of the model.
    for (model, want, theirs) in [
        ("fast", "one", "qwen"),
        ("quick", "one", "qwen"),
        ("big", "two", "big"),
    ] {
        assert_eq!(said(&service, model), (want.to_owned(), theirs.to_owned()));
    }
    // A request without a model gets the file's.
    let body = r#"{"messages":[{"role":"user","content":"hi"}],"max_tokens":9}"#;
    assert!(
        service
            .post("/v1/chat/completions", body)
            .body
            .contains("one")
    );
    assert_eq!(models_asked(&two), ["big"]);
    // The cap is the most that a client gets, and it may ask for fewer.
    let asked: Vec<[Value; 2]> = one
        .asked()
        .iter()
        .map(|asked| ["model", "max_tokens"].map(|name| asked.body[name].clone()))
        .collect();
    let want = [50, 50, 9].map(|cap| [json!("qwen"), json!(cap)]);
    assert_eq!(asked, want);
    // Another front goes to the same server.
    let body = r#"{"model":"quick","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
    let answer = service.post("/v1/messages", body).body;
    assert!(
        answer.contains("one") && answer.contains("\"model\":\"quick\""),
        "{answer}"
    );
    let unknown = service.post("/v1/chat/completions", &asking("gpt-5"));
    assert_eq!(unknown.status, 400, "{unknown:?}");
    assert!(
        unknown.body.contains("model_not_found") && unknown.body.contains("/v1/models"),
        "{unknown:?}"
    );
    assert_eq!(
        service.reply("GET", "/health?upstream", "").1,
        "{\"status\":\"ok\"}"
    );
}

/// The certificates that the system trusts are a pipe, whose content comes once: whoever read it
/// again would wait for ever.
#[test]
fn servers_of_https_share_what_is_read_of_the_certificates() {
    let folder = Scratch::new();
    let pipe = folder.path("authorities.pem");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    // Nobody listens at these ports.
    let model = |port: u16| {
        format!("[models.m{port}]\nbase_url = \"https://127.0.0.1:{port}\"\nretries = 0\n")
    };
    let variable = configured(&folder, &(model(1) + &model(2) + &model(3)));
    let writer = {
        let pipe = pipe.clone();
        let authority = testkit::root().join("crates/client/tests/tls/ca.pem");
        std::thread::spawn(move || std::fs::write(pipe, std::fs::read(authority).unwrap()))
    };
    let file = format!("SSL_CERT_FILE={}", pipe.display());
    let service = Service::with_variables(&[&variable, &file], &[]);
    writer.join().unwrap().unwrap();
    for name in ["m1", "m2", "m3", "m1"] {
        let response = service.post("/v1/chat/completions", &asking(name));
        assert!(
            response.body.contains("Connection refused"),
            "{}",
            response.body
        );
    }
}

#[test]
fn with_a_server_of_its_own_the_service_asks_that_for_all_other_names() {
    let (one, two) = (saying("one"), saying("two"));
    let folder = Scratch::new();
    let variable = configured(
        &folder,
        &format!("[models.fast]\nbase_url = {:?}\n", one.url),
    );
    let service = Service::with_variables(&[&variable], &["--base-url", &two.url]);
    assert_eq!(said(&service, "fast").0, "one");
    assert_eq!(said(&service, "anything").0, "two");
    // With --model all requests go to that model, and answers say so.
    let only = Service::with_variables(&[&variable], &["--model", "fast"]);
    assert_eq!(listed(&only), ["fast"]);
    assert_eq!(
        said(&only, "anything"),
        ("one".to_owned(), "fast".to_owned())
    );
    // Without the file nothing of this is there.
    let plain = Service::with_variables(&[], &["--base-url", &two.url]);
    assert_eq!(said(&plain, "fast").0, "two");
}

#[test]
fn the_model_of_the_environment_is_what_is_asked_and_what_answers_say() {
    let server = saying("hello");
    for variable in ["LLM_MODEL=mine", "TC_SERVE_MODEL=mine"] {
        let service = Service::with_variables(&[variable], &["--base-url", &server.url]);
        assert_eq!(said(&service, "theirs").1, "mine");
        let body =
            r#"{"model":"theirs","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
        let answer = service.post("/v1/messages", body).body;
        assert!(answer.contains("\"model\":\"mine\""), "{answer}");
        assert_eq!(listed(&service), ["mine"]);
    }
    assert!(models_asked(&server).iter().all(|model| model == "mine"));
}

#[test]
fn a_fallback_is_asked_where_a_server_fails_before_the_first_event() {
    let good = saying("rescued");
    for (status, is_rescued) in [
        ("503 Busy", true),
        ("429 Slow", true),
        ("500 Oops", true),
        ("400 Bad", false),
        ("401 Key", false),
    ] {
        let bad = failing(status);
        let folder = Scratch::new();
        let variable = configured(
            &folder,
            &format!(
                "[models.fast]\nbase_url = {:?}\nfallbacks = [\"dead\"]\nretries = 0\n[models.dead]\nbase_url = \"http://127.0.0.1:9\"\nfallbacks = [\"good\"]\nretries = 0\n[models.good]\nbase_url = {:?}\nmodel = \"theirs\"\n",
                bad.url, good.url
            ),
        );
        let service = Service::with_variables(&[&variable], &[]);
        if !is_rescued {
            let refused = service.post("/v1/chat/completions", &asking("fast"));
            assert_eq!(refused.status.to_string(), status[..3], "{refused:?}");
            continue;
        }
        assert_eq!(
            said(&service, "fast"),
            ("rescued".to_owned(), "theirs".to_owned()),
            "{status}"
        );
        assert_eq!(models_asked(&good).last().unwrap(), "theirs");
        let events = service.post("/events", &asking("fast")).body;
        let notes: Vec<Value> = events
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|event| event["code"] == "fallback")
            .collect();
        assert_eq!(notes.len(), 2, "{events}");
        let words = [&notes[0], &notes[1]].map(|note| note["message"].as_str().unwrap());
        assert!(
            words[0].ends_with("asking dead instead") && words[1].ends_with("asking good instead"),
            "{words:?}"
        );
        // With --model, too.
        let only = Service::with_variables(&[&variable], &["--model", "fast"]);
        assert_eq!(said(&only, "x").0, "rescued");
    }
}

#[test]
fn an_answer_that_has_begun_has_no_fallback() {
    let good = saying("rescued");
    let cut = provider(|_, _, stream| {
        answer(
            stream,
            "200 OK",
            SSE,
            &text("begun"),
            Some(text("begun").len() - 20),
        )
    });
    let folder = Scratch::new();
    let variable = configured(
        &folder,
        &format!(
            "[models.fast]\nbase_url = {:?}\nfallbacks = [\"good\"]\n[models.good]\nbase_url = {:?}\n",
            cut.url, good.url
        ),
    );
    let service = Service::with_variables(&[&variable], &[]);
    let cut_answer = service.post("/events", &asking("fast")).body;
    assert!(!cut_answer.contains("rescued"), "{cut_answer}");
}

#[test]
fn a_model_whose_key_is_missing_is_left_out() {
    let server = saying("one");
    let folder = Scratch::new();
    let variable = configured(
        &folder,
        &format!(
            "[models.fast]\nbase_url = {:?}\n[models.big]\napi = \"anthropic\"\napi_key_env = \"NO_SUCH_KEY\"\n",
            server.url
        ),
    );
    let mut service = Service::with_variables(&[&variable], &[]);
    let line = service.line(|line| line.contains("big"));
    assert!(line.contains("NO_SUCH_KEY"), "{line}");
    assert_eq!(listed(&service), ["fast"]);
}

#[test]
fn a_slip_in_the_name_of_a_model_is_refused_at_the_start() {
    let folder = Scratch::new();
    let variable = configured(
        &folder,
        "[models.large]\nbase_url = \"http://127.0.0.1:9\"\n",
    );
    let mut command = Command::new("env");
    command.arg(variable).arg(testkit::program("tc-serve"));
    command.args(["--model", "lrge"]);
    let said = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("did you mean \"large\"?"), "{stderr}");
}
