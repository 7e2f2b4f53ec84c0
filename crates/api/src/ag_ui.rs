//! The AG-UI protocol. Source: the package `@ag-ui/core`, version 1.0.0 (<https://docs.ag-ui.com>).

mod inbound;
mod stream;

use crate::ui::UiRow;

/// AG-UI's row in the table of protocols.
pub(crate) const ROW: UiRow = UiRow {
    name: "ag-ui",
    path: "/api/ag-ui",
    headers: &[],
    goes_on: false,
    writer: |options| Box::new(stream::AgUiWriter::new(options)),
    read: inbound::read,
};
