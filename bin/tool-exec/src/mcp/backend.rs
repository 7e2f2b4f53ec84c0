//! Where the servers of a run are: started by it, or by a hub that runs already.

use super::hub::{HubCall, HubClient};
use super::pool::Pool;
use super::session::{OpenCall, Outcome, Session};
use std::rc::Rc;
use tool::McpRun;

/// Where the servers are.
#[derive(Clone, Debug)]
pub enum Backend {
    /// This process starts them.
    Own(Rc<Pool>),
    /// A hub has started them.
    Hub(HubClient),
}

/// A call that a server has taken.
pub enum TakenCall {
    /// By a server of this process.
    Own(Rc<Session>, Box<OpenCall>),
    /// By a server of a hub.
    Hub(HubCall),
}

impl Backend {
    /// Starts the server of a tool, unless it runs; a hub does that by itself.
    ///
    /// # Errors
    /// Why it does not run, for the model.
    pub async fn ready(&self, tool: &McpRun) -> Result<(), String> {
        match self {
            Backend::Own(pool) => pool.ready(&tool.server).await,
            Backend::Hub(_) => Ok(()),
        }
    }

    /// Hands a call with arguments, a JSON object, to its server; starts the server first where
    /// that is needed. Whoever drops the future before it is done has sent nothing.
    ///
    /// # Errors
    /// Why nothing of it was sent, for the model.
    pub async fn call(&self, tool: &McpRun, arguments: &str) -> Result<TakenCall, String> {
        match self {
            Backend::Own(pool) => {
                let session = pool.session(&tool.server, &tool.tool).await?;
                let call = session.call(&tool.tool, arguments).await?;
                Ok(TakenCall::Own(session, Box::new(call)))
            }
            Backend::Hub(hub) => hub.call(tool, arguments).await.map(TakenCall::Hub),
        }
    }

    /// Whether a server was found whose tools are not as they were locked.
    pub fn is_blocked(&self) -> bool {
        match self {
            Backend::Own(pool) => pool.is_blocked(),
            Backend::Hub(hub) => hub.is_blocked(),
        }
    }

    /// Ends the servers that this process has started.
    pub async fn close(&self) {
        if let Backend::Own(pool) = self {
            pool.close().await;
        }
    }
}

impl TakenCall {
    /// Waits for the next news of the call. May be dropped while it waits, and called again.
    pub async fn next(&mut self) -> Outcome {
        match self {
            TakenCall::Own(session, call) => session.next(call).await,
            TakenCall::Hub(call) => call.next().await,
        }
    }

    /// Tells the server that nobody waits for the call any more.
    pub async fn cancel(&self, why: &str) {
        match self {
            TakenCall::Own(session, call) => session.cancel(call, why).await,
            TakenCall::Hub(call) => call.cancel(why).await,
        }
    }
}
