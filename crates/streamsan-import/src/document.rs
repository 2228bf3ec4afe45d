//! The whole of a Chrome trace: an object with `traceEvents`, read as a stream.

use crate::event::Event;
use crate::lenient::{Number, Text, else_take};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Takes what a document holds, as it comes.
pub(crate) trait Sink {
    /// An event. `Err`: why reading stops.
    fn event(&mut self, event: Event) -> Result<(), String>;
    /// A device, with its name.
    fn device(&mut self, number: i64, name: String);
}

/// Reads a document into a sink.
pub(crate) struct Document<'a, S>(pub(crate) &'a mut S);

#[derive(Deserialize)]
#[serde(field_identifier)]
enum Key {
    #[serde(rename = "traceEvents")]
    Events,
    #[serde(rename = "deviceProperties")]
    Devices,
    #[serde(other)]
    Other,
}

#[derive(Debug, Default)]
struct Device {
    id: Number,
    name: Text,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum DeviceKey {
    Id,
    Name,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Device {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Device;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a device")
            }
            else_take!(Device::default());
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Device, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Device::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Device, A::Error> {
                let mut device = Device::default();
                while let Some(key) = entries.next_key()? {
                    match key {
                        DeviceKey::Id => device.id = entries.next_value()?,
                        DeviceKey::Name => device.name = entries.next_value()?,
                        DeviceKey::Other => {
                            entries.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(device)
            }
        }
        deserializer.deserialize_any(Keys)
    }
}

/// The devices of a document; none if there is something else in their place.
struct Devices<'a, S>(&'a mut S);

impl<'de, S: Sink> DeserializeSeed<'de> for Devices<'_, S> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, S: Sink> Visitor<'de> for Devices<'_, S> {
    type Value = ();
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of devices")
    }
    else_take!(());
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(device) = items.next_element::<Device>()? {
            if let (Some(number), Some(name)) = (device.id.whole(), device.name.0) {
                self.0.device(number, name);
            }
        }
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

impl<'de, S: Sink> DeserializeSeed<'de> for Document<'_, S> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, S: Sink> Visitor<'de> for Document<'_, S> {
    type Value = ();
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with `traceEvents`, as torch.profiler writes it")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(key) = entries.next_key()? {
            match key {
                Key::Events => {
                    found = true;
                    entries.next_value_seed(Events(&mut *self.0))?;
                }
                Key::Devices => entries.next_value_seed(Devices(&mut *self.0))?,
                Key::Other => {
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        if found { Ok(()) } else { Err(A::Error::custom("there are no `traceEvents` in it")) }
    }
}

struct Events<'a, S>(&'a mut S);

impl<'de, S: Sink> DeserializeSeed<'de> for Events<'_, S> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, S: Sink> Visitor<'de> for Events<'_, S> {
    type Value = ();
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of events")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(event) = items.next_element::<Event>()? {
            self.0.event(event).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}
