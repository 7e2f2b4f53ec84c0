//! The tests of this package, one program: each file is a module. A new file needs a line here.

mod begin;
mod chat;
mod choices;
mod fronts;
mod goes_back;
mod inbound;
mod inbound_laws;
mod kept;
mod laws;
mod recorded;
mod stored;
mod turns;
mod ui;
