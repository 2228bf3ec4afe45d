//! A buffer is copied onto itself.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let mut buffer = device.buffer::<f32>(4, &stream)?;
    stream.copy(&buffer, &mut buffer)?;
    Ok(())
}
