//! Followers of sessions: their memory, how late a line reaches them, and the first byte of a resume
//! in a long session.

use crate::number;
use crate::server::{Server, tc_serve};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The session that is followed.
const ID: &str = "3fa90000000000000000000000000001";

/// The bytes of the long session.
const LONG: usize = 100 << 20;

/// Opens followers, appends lines, and resumes; prints KiB and milliseconds.
pub async fn run(words: &[&str]) -> Result<(), String> {
    let (mut followers, mut lines, mut sessions) = (1000, 200, 0);
    for pair in words.chunks(2) {
        match pair {
            ["--followers", n] => followers = number(n),
            ["--lines", n] => lines = number(n),
            ["--sessions", n] => sessions = number(n),
            _ => return Err(format!("{pair:?} is not an option")),
        }
    }
    let folder = std::env::temp_dir().join(format!("load-follow-{}", std::process::id()));
    let done = measure(&folder, followers, lines, sessions).await;
    let _ = std::fs::remove_dir_all(&folder);
    done
}

async fn measure(folder: &Path, followers: u64, lines: u64, sessions: u64) -> Result<(), String> {
    let text = |e: std::io::Error| e.to_string();
    for n in 0..sessions {
        session(
            folder,
            &format!(
                "{:032x}",
                u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
            ),
        )
        .map_err(text)?;
    }
    let file = session(folder, ID).map_err(text)?;
    let options = [
        "--sessions",
        folder.to_str().ok_or("the folder is not UTF-8")?,
        "--max-followers",
        "100000",
        "--keep-alive",
        "1h",
    ];
    let begun = Instant::now();
    // No provider is asked: port 9 discards.
    let served = Server::start("tc-serve", 1, &tc_serve(9, &options)).await?;
    println!(
        "start with {sessions} sessions: {} ms",
        begun.elapsed().as_millis()
    );
    for what in ["the first list", "a list"] {
        let begun = Instant::now();
        let mut stream = ask(served.port, "/v1/sessions").await.map_err(text)?;
        stream.read_u8().await.map_err(text)?;
        println!(
            "{what} of {sessions} sessions: {:.1} ms",
            ms(begun.elapsed())
        );
    }
    resume(served.port, folder).await.map_err(text)?;
    let held = || served.memory().unwrap_or_default();
    let before = held().0;
    let path = format!("/v1/sessions/{ID}/events?live=ndjson&offset=now");
    let mut open = Vec::new();
    for _ in 0..followers {
        let mut stream = ask(served.port, &path).await.map_err(text)?;
        head(&mut stream).await.map_err(text)?;
        open.push(stream);
    }
    let more = held().0.saturating_sub(before);
    println!(
        "{followers} followers: {more} KiB, {:.1} KiB each",
        more as f64 / followers as f64
    );
    let mut lateness = Vec::new();
    // The lateness of the hundred that are woken first, in the middle and last.
    let looked: Vec<usize> = (0..open.len()).step_by((open.len() / 100).max(1)).collect();
    for _ in 0..lines {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let begun = Instant::now();
        append(&file, b"{\"type\":\"content_delta\",\"text\":\"x\"}\n").map_err(text)?;
        for at in &looked {
            open[*at].read_exact(&mut [0; 1]).await.map_err(text)?;
            lateness.push(begun.elapsed());
        }
        for stream in &mut open {
            let mut block = [0; 4096];
            let _ = stream.try_read(&mut block);
        }
    }
    lateness.sort_unstable();
    let at = |part: usize| ms(lateness[(lateness.len() - 1) * part / 100]);
    println!(
        "from the append to the byte at one of {followers}: p50 {:.2} ms, p99 {:.2} ms",
        at(50),
        at(99)
    );
    let more = held().0.saturating_sub(before);
    println!(
        "{followers} followers after {lines} lines: {:.1} KiB each",
        more as f64 / followers as f64
    );
    Ok(())
}

/// Reads the end of a long session from an offset on, as often as makes a median.
async fn resume(port: u16, folder: &Path) -> std::io::Result<()> {
    let id = ID.replace('1', "2");
    let file = session(folder, &id)?;
    let line = format!(
        "{{\"type\":\"content_delta\",\"text\":\"{}\"}}\n",
        "x".repeat(200)
    );
    append(&file, line.repeat(LONG / line.len()).as_bytes())?;
    let path = format!("/v1/sessions/{id}/events?live=ndjson&offset={}", LONG / 2);
    let mut times = Vec::new();
    for _ in 0..101 {
        let begun = Instant::now();
        let mut stream = ask(port, &path).await?;
        head(&mut stream).await?;
        stream.read_u8().await?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    println!(
        "first byte of a resume in a session of 100 MiB: p50 {:.2} ms, most {:.2} ms",
        ms(times[50]),
        ms(times[100])
    );
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

async fn ask(port: u16, path: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// Reads the head of a response.
async fn head(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut last = [0; 4];
    while last != *b"\r\n\r\n" {
        last.rotate_left(1);
        last[3] = stream.read_u8().await?;
    }
    Ok(())
}

/// Begins a session file.
fn session(folder: &Path, id: &str) -> std::io::Result<PathBuf> {
    let inside = folder.join(&id[..2]);
    let mut made = std::fs::DirBuilder::new();
    made.mode(0o700).recursive(true).create(&inside)?;
    let path = inside.join(format!("{id}.ndjson"));
    append(
        &path,
        format!("{{\"type\":\"session\",\"v\":1,\"id\":\"{id}\",\"created\":1}}\n").as_bytes(),
    )?;
    Ok(path)
}

fn append(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.append(true).create(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}
