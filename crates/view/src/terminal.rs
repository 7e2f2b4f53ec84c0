//! A page on a terminal: cards that change in place, and text drawn as Markdown.

mod draft;
mod markdown;
mod pen;
mod render;
pub(crate) mod screen;
mod table;
