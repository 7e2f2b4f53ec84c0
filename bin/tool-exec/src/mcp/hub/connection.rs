//! One client of a hub.

use super::protocol::{LONGEST, Reply, Request, VERSION, line, read};
use crate::mcp::pool::Pool;
use crate::mcp::session::Outcome;
use crate::mcp::stdio::Lines;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::{Notify, mpsc};
use tool::{CallFailure, hex};

/// How many replies wait for a slow client.
const WAITING: usize = 64;
/// The most calls that a client may have open.
const OPEN: usize = 4096;

/// The calls that a client has open.
type Calls = Rc<RefCell<HashMap<u64, Rc<Notify>>>>;

/// Serves a client until it leaves, and cancels the calls that it then has open.
pub async fn serve(stream: UnixStream, pool: Rc<Pool>) {
    let (from, mut write) = stream.into_split();
    let (replies, mut waiting) = mpsc::channel::<Reply>(WAITING);
    let writer = tokio::task::spawn_local(async move {
        while let Some(reply) = waiting.recv().await {
            if write.write_all(&line(&reply)).await.is_err() {
                return;
            }
        }
    });
    let calls = Calls::default();
    let mut lines = Lines::new(from, LONGEST);
    let mut is_welcome = false;
    while let Ok(Some(line)) = lines.next().await {
        let Some(request) = read(&line) else {
            break;
        };
        match request {
            Request::Hello { version, servers } => {
                is_welcome = version == VERSION && servers == hex(&pool.hash());
                let reply = if is_welcome {
                    Reply::Welcome { version: VERSION }
                } else {
                    Reply::Refused {
                        why: refusal(version),
                    }
                };
                if replies.send(reply).await.is_err() || !is_welcome {
                    break;
                }
            }
            _ if !is_welcome => break,
            Request::Call {
                id,
                server,
                tool,
                definition,
                arguments,
            } => {
                let stop = Rc::new(Notify::new());
                if calls.borrow().len() >= OPEN
                    || calls.borrow_mut().insert(id, Rc::clone(&stop)).is_some()
                {
                    break; // a client that counts wrong
                }
                let (pool, replies, calls) = (Rc::clone(&pool), replies.clone(), Rc::clone(&calls));
                tokio::task::spawn_local(async move {
                    let reply = call(
                        id,
                        &pool,
                        (&server, &tool, &definition),
                        &serde_json::Value::Object(arguments).to_string(),
                        &stop,
                        &replies,
                    )
                    .await;
                    calls.borrow_mut().remove(&id);
                    if let Some(reply) = reply {
                        let _ = replies.send(reply).await; // the client has left
                    }
                });
            }
            Request::Cancel { id, .. } => {
                if let Some(stop) = calls.borrow().get(&id) {
                    stop.notify_one();
                }
            }
            Request::Check {} => {
                let (pool, replies) = (Rc::clone(&pool), replies.clone());
                tokio::task::spawn_local(async move {
                    let changes = pool
                        .check_all()
                        .await
                        .unwrap_or_else(|e| vec![format!("{e:#}")]);
                    let _ = replies.send(Reply::Checked { changes }).await;
                });
            }
        }
    }
    calls.borrow().values().for_each(|stop| stop.notify_one());
    drop(replies);
    let _ = writer.await;
}

fn refusal(version: u64) -> String {
    if version == VERSION {
        "its mcpServers, or its --sandbox, are not those that the hub was started with, or the cwd of a server leads to another folder now".to_owned()
    } else {
        format!("it speaks version {version}, and the hub version {VERSION}")
    }
}

/// Runs one call; `None` if it was cancelled.
async fn call(
    id: u64,
    pool: &Pool,
    (server, tool, definition): (&str, &str, &str),
    arguments: &str,
    stop: &Notify,
    replies: &mpsc::Sender<Reply>,
) -> Option<Reply> {
    let failed = |failure: CallFailure| {
        Some(Reply::Failed {
            id,
            why: failure.why,
            ran: failure.ran,
            blocked: pool.is_blocked(),
        })
    };
    let not_sent = |why: String| failed(CallFailure::not_run(why));
    if pool
        .definition(server, tool)
        .is_none_or(|locked| hex(&locked.hash()) != definition)
    {
        return not_sent(
            "the lock file has changed since the hub was started, start it again".to_owned(),
        );
    }
    let sending = async {
        let session = pool.session(server, tool).await?;
        let open = session.call(tool, arguments).await?;
        Ok((session, open))
    };
    let sent = tokio::select! {
        sent = sending => sent,
        () = stop.notified() => return None,
    };
    let (session, mut open) = match sent {
        Ok(sent) => sent,
        Err(why) => return not_sent(why),
    };
    loop {
        tokio::select! {
            biased;
            () = stop.notified() => {
                session.cancel(&open, "the call was cancelled").await;
                return None;
            }
            outcome = session.next(&mut open) => match outcome {
                Outcome::Step(step) => {
                    // What a slow client cannot take is left out.
                    let _ = replies.try_send(Reply::Step { id, progress: step.progress, message: step.message });
                }
                Outcome::Done(Ok(result)) => return Some(Reply::Result { id, result }),
                Outcome::Done(Err(failure)) => return failed(failure),
            },
        }
    }
}
