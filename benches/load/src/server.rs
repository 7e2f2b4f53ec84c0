//! The processes that are measured: where they listen, how much time they use, how much memory they
//! hold.

use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    /// Its name in the table.
    pub name: String,
    /// Its port on this machine.
    pub port: u16,
    /// `None`: it was started by somebody else.
    child: Option<Child>,
}

impl Server {
    /// Starts a command on one processor, and waits for the line with its port or address.
    pub async fn start(name: &str, core: usize, words: &[String]) -> Result<Server, String> {
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string()]).args(words);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|e| format!("{name}: {e}"))?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        let mut line = String::new();
        let mut reader = BufReader::new(stdout);
        let read = reader.read_line(&mut line);
        tokio::time::timeout(Duration::from_secs(20), read)
            .await
            .map_err(|_| format!("{name} printed no port"))?
            .map_err(|e| e.to_string())?;
        let digits = line
            .trim()
            .trim_end_matches('/')
            .rsplit(":")
            .next()
            .unwrap_or_default();
        let port = digits
            .parse()
            .map_err(|_| format!("{name} printed {line:?}, not its port"))?;
        Ok(Server {
            name: name.to_owned(),
            port,
            child: Some(child),
        })
    }

    /// A server that runs already.
    pub fn running(name: &str, port: u16) -> Server {
        Server {
            name: name.to_owned(),
            port,
            child: None,
        }
    }

    fn pid(&self) -> Option<u32> {
        self.child.as_ref()?.id()
    }

    /// Seconds of processor time that it has used.
    pub fn processor(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()?)).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let ticks: f64 =
            fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
        Some(ticks / 100.0)
    }

    /// KiB of memory that it holds, and the most that it has held.
    pub fn memory(&self) -> Option<(u64, u64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()?)).ok()?;
        let of = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        Some((of("VmRSS:")?, of("VmHWM:")?))
    }
}

/// The words that start tc-serve in front of the mock.
pub fn tc_serve(upstream: u16, more: &[&str]) -> Vec<String> {
    let command =
        std::env::var("TC_SERVE").unwrap_or_else(|_| "target/release/tc-serve".to_owned());
    let base = format!("http://127.0.0.1:{upstream}");
    let mut words = vec![
        command,
        "--listen".into(),
        "127.0.0.1:0".into(),
        "--base-url".into(),
        base,
    ];
    words.extend(["--max-streams", "100000", "--max-connections", "100000"].map(String::from));
    words.extend(more.iter().map(|word| (*word).to_owned()));
    words
}

/// The words that start this program.
pub fn own(words: &[&str]) -> Vec<String> {
    let exe = std::env::current_exe().expect("this program has a path");
    std::iter::once(exe.display().to_string())
        .chain(words.iter().map(|w| (*w).to_owned()))
        .collect()
}
