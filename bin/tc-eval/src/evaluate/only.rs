//! `--only`: selects a part of a corpus.

use event::Glob;
use score::Label;

/// The values that a label has of a field.
type Values = fn(&Label) -> Vec<&str>;

/// A field of labels and a pattern of its values.
#[derive(Clone, Debug)]
pub(crate) struct Only {
    values: Values,
    pattern: Glob,
}

/// The fields, each with a function that returns its values in a label. An absent field has an
/// empty value.
const FIELDS: [(&str, Values); 6] = [
    ("id", |label| vec![&label.id]),
    ("api", |label| {
        vec![label.api.as_deref().unwrap_or_default()]
    }),
    ("provider", |label| {
        vec![label.provider.as_deref().unwrap_or_default()]
    }),
    ("model", |label| {
        vec![label.model.as_deref().unwrap_or_default()]
    }),
    ("source", |label| {
        vec![label.source.as_deref().unwrap_or_default()]
    }),
    ("tag", |label| {
        label.tags.iter().map(String::as_str).collect()
    }),
];

impl std::str::FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = text.split_once('=').and_then(|(name, pattern)| {
            let (_, values) = FIELDS.into_iter().find(|(field, _)| *field == name)?;
            Some(Only {
                values,
                pattern: Glob::new(pattern),
            })
        });
        known.ok_or_else(|| {
            format!(
                "use {}",
                FIELDS.map(|(name, _)| format!("{name}=GLOB")).join(", ")
            )
        })
    }
}

impl Only {
    /// Whether the label matches.
    pub(crate) fn matches(&self, label: &Label) -> bool {
        let values = (self.values)(label);
        values.iter().any(|value| self.pattern.matches(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_matches_by_any_of_its_tags_and_by_its_other_fields() {
        let label = Label {
            id: "a/b".into(),
            api: Some("gemini".into()),
            tags: vec!["text".into(), "row-18".into()],
            ..Label::default()
        };
        let matches = |text: &str| text.parse::<Only>().unwrap().matches(&label);
        assert!(
            ["id=a/*", "api=gemini", "tag=row-18", "tag=row-*", "model="]
                .into_iter()
                .all(matches)
        );
        assert!(
            !["id=a", "api=gem", "tag=row", "model=?*"]
                .into_iter()
                .any(matches)
        );
        assert!(
            ["api", "=x", "apis=x"]
                .into_iter()
                .all(|text| text.parse::<Only>().is_err())
        );
    }
}
