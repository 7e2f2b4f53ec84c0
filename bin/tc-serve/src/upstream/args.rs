//! The options of a provider.

use ask::{AutoArgs, ConnectionArgs, ProviderArgs, ReplayArgs, ToolsModeArgs};

/// The provider that is asked.
#[derive(Clone, Debug, clap::Args)]
pub struct UpstreamArgs {
    #[command(flatten)]
    pub provider: ProviderArgs,
    #[command(flatten)]
    pub tools: ToolsModeArgs,
    #[command(flatten)]
    pub auto: AutoArgs,
    #[command(flatten)]
    pub connection: ConnectionArgs,
    #[command(flatten)]
    pub replay: ReplayArgs,
}
