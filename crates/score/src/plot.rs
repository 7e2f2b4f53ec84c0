//! Plots as SVG, to be put into a page.
//!
//! What it is: values in, the text of an `<svg>` element out. What it is not: it reads no report,
//! so that a plot can be drawn and tested from a few numbers.
//!
//! No plot loads anything and none measures a font of the system: the same values give the same
//! bytes on every machine. Each colour is one of [`INKS`], which a page may replace by its style
//! (`svg [fill="#1F1F1F"] { fill: … }`); without a style the plots are fit for white paper. Nothing
//! is shown by colour alone.

mod canvas;
mod curve;
mod histogram;
mod placing;

pub use canvas::{Description, INKS};
pub use curve::{Curve, Point};
pub use histogram::{Bar, Histogram};
