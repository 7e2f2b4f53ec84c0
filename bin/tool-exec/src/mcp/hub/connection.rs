//! One connection to a hub.

use super::protocol::{Connection, HubRequest, Reply, VERSION};
use crate::mcp::CallOutcome;
use crate::mcp::pool::Pool;
use std::rc::Rc;
use tokio::net::UnixStream;
use tool::{CallFailure, hex};
use trace::TraceContext;

/// Serves the request of a client. If the client disconnects, its call is cancelled.
pub(super) async fn serve(stream: UnixStream, pool: Rc<Pool>) {
    let mut client = Connection::new(stream);
    let Some(HubRequest::Hello { version, servers }) = client.next().await else {
        return;
    };
    let refusal = if version != VERSION {
        Some(format!(
            "it speaks version {version}, and the hub version {VERSION}"
        ))
    } else if servers != hex(&pool.hash()) {
        Some(
            "its mcpServers, or its --sandbox, are not those that the hub was started with, or \
            the cwd of a server leads to another folder now"
                .to_owned(),
        )
    } else {
        None
    };
    if let Some(why) = refusal {
        let _ = client.send(&Reply::Refused { why }).await; // fails if the client has left
        return;
    }
    let welcome = Reply::Welcome { version: VERSION };
    if client.send(&welcome).await.is_err() {
        return;
    }
    let reply = match client.next().await {
        Some(HubRequest::Call {
            server,
            tool,
            definition,
            arguments,
            traceparent,
            tracestate,
        }) => {
            let arguments = serde_json::Value::Object(arguments).to_string();
            let trace = traceparent.and_then(|span| TraceContext::of(&span, tracestate.as_deref()));
            call(
                &mut client,
                &pool,
                [&server, &tool, &definition],
                &arguments,
                trace.as_ref(),
            )
            .await
        }
        Some(HubRequest::Check {}) => {
            let changes = pool.check_all().await;
            Some(Reply::Checked {
                changes: changes.unwrap_or_else(|e| vec![format!("{e:#}")]),
            })
        }
        _ => None,
    };
    if let Some(reply) = reply {
        let _ = client.send(&reply).await; // fails if the client has left
    }
}

/// Runs one call. Returns `None` if the client disconnected and the call was cancelled.
async fn call(
    client: &mut Connection,
    pool: &Pool,
    [server, tool, definition]: [&str; 3],
    arguments: &str,
    trace: Option<&TraceContext>,
) -> Option<Reply> {
    let failed = |failure: CallFailure| {
        Some(Reply::Failed {
            failure,
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
        let open = session.call(tool, arguments, trace).await?;
        Ok((session, open))
    };
    let sent = tokio::select! {
        sent = sending => sent,
        _ = client.next::<HubRequest>() => return None,
    };
    let (session, mut open) = match sent {
        Ok(sent) => sent,
        Err(why) => return not_sent(why),
    };
    loop {
        let outcome = tokio::select! {
            biased;
            _ = client.next::<HubRequest>() => None,
            outcome = session.next(&mut open) => Some(outcome),
        };
        let is_there = match outcome {
            Some(CallOutcome::Done(Ok(result))) => return Some(Reply::Result(result)),
            Some(CallOutcome::Done(Err(failure))) => return failed(failure),
            Some(CallOutcome::Step(step)) => client.send(&Reply::Step(step)).await.is_ok(),
            None => false,
        };
        if !is_there {
            session.cancel(&open, "the call was cancelled").await;
            return None;
        }
    }
}
