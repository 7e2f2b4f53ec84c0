//! `--only`: a part of a corpus.

use event::Glob;
use score::Label;

/// A field of labels and a pattern of its values.
#[derive(Clone, Debug)]
pub struct Only {
    field: Field,
    pattern: Glob,
}

#[derive(Clone, Copy, Debug)]
enum Field {
    Id,
    Api,
    Provider,
    Model,
    Source,
    Tag,
}

const FIELDS: [(&str, Field); 6] = [
    ("id", Field::Id),
    ("api", Field::Api),
    ("provider", Field::Provider),
    ("model", Field::Model),
    ("source", Field::Source),
    ("tag", Field::Tag),
];

impl std::str::FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = text.split_once('=').and_then(|(name, pattern)| {
            let (_, field) = FIELDS.into_iter().find(|(field, _)| *field == name)?;
            Some(Only {
                field,
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
    /// Whether the label matches. A field that it lacks is empty.
    pub fn matches(&self, label: &Label) -> bool {
        let matches =
            |value: &Option<String>| self.pattern.matches(value.as_deref().unwrap_or_default());
        match self.field {
            Field::Id => self.pattern.matches(&label.id),
            Field::Api => matches(&label.api),
            Field::Provider => matches(&label.provider),
            Field::Model => matches(&label.model),
            Field::Source => matches(&label.source),
            Field::Tag => label.tags.iter().any(|tag| self.pattern.matches(tag)),
        }
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
