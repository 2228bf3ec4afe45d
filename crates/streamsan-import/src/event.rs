//! One event of a Chrome trace, as it stands in the file.

use crate::lenient::{Number, Text, else_take};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The keys that matter. What is missing or of another type is `None`; of keys that are there twice the last one counts.
#[derive(Debug, Default)]
pub(crate) struct Event {
    pub(crate) phase: Text,
    pub(crate) category: Text,
    pub(crate) name: Text,
    pub(crate) process: Text,
    pub(crate) thread: Text,
    /// Microseconds.
    pub(crate) start: Number,
    /// Microseconds.
    pub(crate) duration: Number,
    pub(crate) arguments: Arguments,
    /// It is no object at all.
    pub(crate) odd: bool,
}

/// What is kept of `args`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) device: Number,
    pub(crate) stream: Number,
    pub(crate) correlation: Number,
    pub(crate) bytes: Number,
    /// They are no object, and more than nothing.
    pub(crate) odd: bool,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum EventKey {
    Ph,
    Cat,
    Name,
    Pid,
    Tid,
    Ts,
    Dur,
    Args,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum ArgumentKey {
    Device,
    Stream,
    Correlation,
    Bytes,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Event;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an event of a trace")
            }
            else_take!(Event { odd: true, ..Event::default() });
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Event, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Event { odd: true, ..Event::default() })
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Event, A::Error> {
                let mut event = Event::default();
                while let Some(key) = entries.next_key()? {
                    match key {
                        EventKey::Ph => event.phase = entries.next_value()?,
                        EventKey::Cat => event.category = entries.next_value()?,
                        EventKey::Name => event.name = entries.next_value()?,
                        EventKey::Pid => event.process = entries.next_value()?,
                        EventKey::Tid => event.thread = entries.next_value()?,
                        EventKey::Ts => event.start = entries.next_value()?,
                        EventKey::Dur => event.duration = entries.next_value()?,
                        EventKey::Args => event.arguments = entries.next_value()?,
                        EventKey::Other => {
                            entries.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(event)
            }
        }
        deserializer.deserialize_any(Keys)
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Arguments;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the arguments of an event")
            }
            else_take!(Arguments { odd: true, ..Arguments::default() }, null: Arguments::default());
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Arguments, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Arguments { odd: true, ..Arguments::default() })
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Arguments, A::Error> {
                let mut arguments = Arguments::default();
                while let Some(key) = entries.next_key()? {
                    match key {
                        ArgumentKey::Device => arguments.device = entries.next_value()?,
                        ArgumentKey::Stream => arguments.stream = entries.next_value()?,
                        ArgumentKey::Correlation => arguments.correlation = entries.next_value()?,
                        ArgumentKey::Bytes => arguments.bytes = entries.next_value()?,
                        ArgumentKey::Other => {
                            entries.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(arguments)
            }
        }
        deserializer.deserialize_any(Keys)
    }
}
