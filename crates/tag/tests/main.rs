//! The tests of this package, one program: each file is a module. A new file needs a line here.

mod damage;
mod dialects_md;
mod generated;
mod laws;
mod names;
mod neutral;
mod reading;
mod written;
