//! `iswitch cell`: caches the policies of a learner for nearby actors.

use std::sync::Arc;

use clap::Args;
use iswitch_models::cli::Command;

use super::ChildArgs;

/// Arguments of `iswitch cell`.
#[derive(Args)]
pub(crate) struct CellCommandArgs {
    #[command(flatten)]
    cell: iswitch_models::cli::CellArgs,
    #[command(flatten)]
    child: ChildArgs,
}

impl CellCommandArgs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.child.follow_parent(&Arc::default());
        Command::Cell(self.cell).run()
    }
}
