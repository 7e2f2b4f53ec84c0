//! Files of users: dialects in TOML, or a checkpoint's own description in JSON.

use crate::dialect::Dialect;
use crate::notation::{self, NotationError};
use crate::response_template;
use crate::table::Dialects;

impl Dialects {
    /// Adds the dialects of a file, whose name is for errors and names the dialect of a checkpoint.
    ///
    /// # Errors
    /// The file has a mistake, or the notation has no place for what it describes; then no dialect
    /// is added.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), NotationError> {
        let known: Vec<&Dialect> = self.all().collect();
        let read = if response_template::is_json(text) {
            let toml = response_template::to_toml(file, text, |name| self.named(name).is_some())?;
            notation::read(&[(file, &toml)], &known)
                .map_err(|error| response_template::error_of(error, text))?
        } else {
            notation::read(&[(file, text)], &known)?
        };
        self.extend(read);
        Ok(())
    }
}
