//! Values of JSON that may be of any type: one odd field must not spoil a profile.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A number, also one in a string; `None` for all else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Number(pub(crate) Option<f64>);

impl Number {
    /// As a whole number that a handle, a size or an id can have.
    pub(crate) fn whole(self) -> Option<i64> {
        // Larger ones are not exact, and nothing of a profile is that large.
        self.0.filter(|value| value.abs() < 9.0e15).map(|value| value as i64)
    }
}

/// A text, or a number as text; `None` for all else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Option<String>);

/// For a visitor of objects: scalars become the given value. A list is left to the visitor.
macro_rules! else_take {
    ($odd:expr) => {
        else_take!($odd, null: $odd);
    };
    ($odd:expr, null: $null:expr) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($odd)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($odd)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($odd)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($odd)
        }
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($odd)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($null)
        }
    };
}
pub(crate) use else_take;

/// Takes whatever comes.
macro_rules! take_all {
    ($target:ty, $expecting:literal, $wanted:ty, number: $number:expr, text: $text:expr) => {
        impl<'de> Deserialize<'de> for $target {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Any;
                impl<'de> Visitor<'de> for Any {
                    type Value = $wanted;
                    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                        formatter.write_str($expecting)
                    }
                    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                        Ok(None)
                    }
                    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
                        Ok(Some($number(value as f64, &value)))
                    }
                    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
                        Ok(Some($number(value as f64, &value)))
                    }
                    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
                        Ok(Some($number(value, &value)))
                    }
                    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
                        Ok($text(value))
                    }
                    fn visit_unit<E>(self) -> Result<Self::Value, E> {
                        Ok(None)
                    }
                    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                        while items.next_element::<IgnoredAny>()?.is_some() {}
                        Ok(None)
                    }
                    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                        Ok(None)
                    }
                }
                deserializer.deserialize_any(Any).map(Self)
            }
        }
    };
}

take_all!(Number, "a number", Option<f64>, number: |value: f64, _| value, text: |text: &str| text.trim().parse().ok());
take_all!(Text, "a text", Option<String>, number: |_, shown: &dyn ToString| shown.to_string(), text: |text: &str| Some(text.to_owned()));

#[cfg(test)]
mod tests {
    use super::{Number, Text};

    #[test]
    fn anything_is_taken() {
        let number = |json: &str| serde_json::from_str::<Number>(json).unwrap().0;
        assert_eq!(number("3"), Some(3.0));
        assert_eq!(number("-3.5"), Some(-3.5));
        assert_eq!(number("\" 7 \""), Some(7.0));
        let text = |json: &str| serde_json::from_str::<Text>(json).unwrap().0;
        assert_eq!(text("\"a\\n\"").as_deref(), Some("a\n"));
        assert_eq!(text("443").as_deref(), Some("443"));
        for odd in ["null", "true", "[1, [2]]", "{\"a\": {\"b\": 1}}"] {
            assert_eq!((number(odd), text(odd)), (None, None), "{odd}");
        }
        assert_eq!(Number(Some(1.0e300)).whole(), None);
        assert_eq!(Number(Some(f64::NAN)).whole(), None);
    }
}
