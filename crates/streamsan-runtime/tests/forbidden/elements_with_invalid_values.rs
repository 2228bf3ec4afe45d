//! A buffer of a type that has invalid values.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let _ = device.buffer::<bool>(4, &stream)?;
    Ok(())
}
