//! The host reads a buffer while a download into it is submitted.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let buffer = device.buffer::<f32>(4, &stream)?;
    let mut host = device.host_buffer::<f32>(4)?;
    let before = host.read()?;
    stream.download(&buffer, &mut host)?;
    println!("{}", before[0]);
    Ok(())
}
