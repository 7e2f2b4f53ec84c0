//! Tagged parameters, read and written by one description.

mod head;
mod outside;
mod plain;
mod read;
#[cfg(test)]
mod tests;
mod value;
mod write;

pub(crate) use head::element_name;
pub(crate) use outside::Outside;
pub(crate) use read::Params;
