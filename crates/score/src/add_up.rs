//! Adds up counts field by field.

use std::collections::BTreeMap;

/// A type whose values can be added up.
pub(crate) trait AddUp {
    /// Adds the counts of `other`.
    fn add_up(&mut self, other: &Self);
}

impl AddUp for u64 {
    fn add_up(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }
}

impl AddUp for u32 {
    fn add_up(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }
}

impl<T: AddUp, const N: usize> AddUp for [T; N] {
    fn add_up(&mut self, other: &Self) {
        self.iter_mut()
            .zip(other)
            .for_each(|(mine, more)| mine.add_up(more));
    }
}

impl<T: AddUp> AddUp for Vec<T> {
    fn add_up(&mut self, other: &Self) {
        self.iter_mut()
            .zip(other)
            .for_each(|(mine, more)| mine.add_up(more));
    }
}

impl<K: Ord + Copy, T: AddUp + Default> AddUp for BTreeMap<K, T> {
    fn add_up(&mut self, other: &Self) {
        for (key, more) in other {
            self.entry(*key).or_default().add_up(more);
        }
    }
}

/// Defines a struct of counts that implements `AddUp` by adding up each field.
macro_rules! counts {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
        #[allow(unreachable_pub, reason = "some are the crate's own")]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        impl AddUp for $name {
            fn add_up(&mut self, other: &Self) {
                $(self.$field.add_up(&other.$field);)*
            }
        }
    };
}
