//! The host writes to a buffer while an upload from it is submitted.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let mut buffer = device.buffer::<f32>(4, &stream)?;
    let mut host = device.host_buffer::<f32>(4)?;
    let mut elements = host.write()?;
    stream.upload(&host, &mut buffer)?;
    elements[0] = 1.0;
    Ok(())
}
